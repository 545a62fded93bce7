"""A corpus without files: English-like sentences from a grammar of our own, any number of them.

`builtin_corpus` has tags, names, heads and classes; `builtin_cogs` has logical forms, and a split
that takes generalisation. The same arguments give the same sentences anywhere. Each split has a
random stream of its own, so that a larger corpus begins with the smaller one, and a share of all
possible sentences of its own, so that no sentence of one is in another.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from probformer.data.builtin.generalisations import (
    GENERALISATIONS,
    draw_generalisation,
    draw_in_distribution,
)
from probformer.data.builtin.grammar import Grammar
from probformer.data.builtin.opinions import opinion_voiced
from probformer.data.builtin.phrases import laid_out
from probformer.data.builtin.splits import BuiltinSplit
from probformer.data.sentence import Sentence
from probformer.errors import is_whole, require, require_whole

__all__ = ["BuiltinSplit", "builtin_cogs", "builtin_corpus"]


def builtin_corpus(size: int = 4000, seed: int = 0) -> dict[str, BuiltinSplit]:
    """Splits "train" (`size` sentences), "dev" and "test" (an eighth of it each).

    Columns "upos", "xpos" and "entity" (BIOES); gold heads; the label is the opinion voiced,
    as `probformer.data.builtin.opinions` says.
    """
    require_whole("size", size)
    return _splits("corpus", _draw_tagged, size, seed, distinct=False)


def builtin_cogs(size: int = 4000, seed: int = 0) -> dict[str, BuiltinSplit]:
    """The same splits with logical forms in the notation of COGS, and "gen".

    "gen" has about a quarter of `size`, the cases of generalisation in turn: structures, and
    words in roles, that "train" never has. The label of its sentences names the case. "train"
    begins with what each case can be learnt from, and so has no fewer sentences than there are
    cases.
    """
    cases = len(GENERALISATIONS)
    require_whole("size", size, low=cases)
    splits = _splits("cogs", draw_in_distribution, size, seed, distinct=True)
    drawn = max(1, size // (4 * cases)) * cases
    splits["gen"] = BuiltinSplit(drawn, f"cogs gen {seed}", draw_generalisation, distinct=True)
    return splits


def _splits(
    name: str, draw: Callable[[Random, int], Sentence], size: int, seed: int, distinct: bool
) -> dict[str, BuiltinSplit]:
    require(is_whole(seed), f"seed must be a whole number, got {seed!r}")
    eighth = max(1, size // 8)
    return {
        split: BuiltinSplit(count, f"{name} {split} {seed}", draw, quarters, distinct)
        for split, count, quarters in (
            ("train", size, (0, 1)),
            ("dev", eighth, (2,)),
            ("test", eighth, (3,)),
        )
    }


def _draw_tagged(random: Random, _: int) -> Sentence:
    root = Grammar(random).sentence()
    tokens, heads = laid_out(root)
    columns = {
        "upos": tuple([token.upos for token in tokens]),
        "xpos": tuple([token.xpos for token in tokens]),
        "entity": tuple([token.entity for token in tokens]),
    }
    return Sentence(
        _spelled([token.word for token in tokens]), columns, heads, opinion_voiced(root)
    )


def _spelled(words: list[str]) -> tuple[str, ...]:
    """With "an" where the next word asks for it."""
    pairs = zip(words, [*words[1:], "."], strict=True)
    return tuple(["an" if w == "a" and after[0] in "aeiou" else w for w, after in pairs])
