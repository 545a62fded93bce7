"""Corpora without files: any number of English-like sentences, drawn from a grammar.

`builtin_corpus` has tags, names, trees and classes; `builtin_cogs` has logical forms, and a split
that tests generalisation. The same arguments give the same sentences on every machine. Each split
has its own random stream, so a larger corpus begins with the smaller one, and its own share of all
possible sentences, so no sentence is in two splits.
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
    """Sentences with tags, entities, heads, relations and labels.

    The columns are "upos", "xpos", "entity" (BIOES) and "deprel", each word's relation to its head
    as in Universal Dependencies: "nsubj", "obj", "acl:relcl", …, and "root" where the head is ROOT.
    The label is the opinion that the sentence voices, as defined in
    `probformer.data.builtin.opinions`.

    Args:
        size: The number of sentences in "train"; "dev" and "test" have an eighth of it each.
        seed: Another seed gives other sentences.

    Returns:
        The splits "train", "dev" and "test".
    """
    require_whole("size", size)
    return _splits("corpus", _draw_tagged, size, seed, distinct=False)


def builtin_cogs(size: int = 4000, seed: int = 0) -> dict[str, BuiltinSplit]:
    """Sentences with logical forms in the notation of COGS.

    "train" begins with a sentence from which each case of generalisation can be learned. "gen" has
    the cases in turn: structures, and words in roles, that "train" never has; the label of its
    sentences names the case.

    Args:
        size: The number of sentences in "train", at least the number of cases; "dev" and "test"
            have an eighth of it each, "gen" about a quarter.
        seed: Another seed gives other sentences.

    Returns:
        The splits "train", "dev", "test" and "gen".
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
    phrases, heads = laid_out(root)
    tokens = [phrase.token for phrase in phrases]
    columns = {
        "upos": tuple([token.upos for token in tokens]),
        "xpos": tuple([token.xpos for token in tokens]),
        "entity": tuple([token.entity for token in tokens]),
        "deprel": tuple([phrase.relation for phrase in phrases]),
    }
    return Sentence(
        _spelled([token.word for token in tokens]), columns, heads, opinion_voiced(root)
    )


def _spelled(words: list[str]) -> tuple[str, ...]:
    """With "an" before a vowel."""
    pairs = zip(words, [*words[1:], "."], strict=True)
    return tuple(["an" if w == "a" and after[0] in "aeiou" else w for w, after in pairs])
