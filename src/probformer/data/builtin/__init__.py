"""A corpus without files: English-like sentences from a grammar of our own, any number of them.

`builtin_corpus` has tags, names, heads and classes; `builtin_cogs` has logical forms, and a split
that takes generalisation. The same arguments give the same sentences anywhere. Each split has a
random stream of its own, so that a larger corpus begins with the smaller one, and a share of all
possible sentences of its own, so that no sentence of one is in another.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from zlib import crc32

from probformer.data.builtin.grammar import Grammar
from probformer.data.builtin.lexicon import Phrase
from probformer.data.builtin.logical_forms import GENERALISATIONS, generalisation, in_distribution
from probformer.data.sentence import Sentence
from probformer.errors import InputError, is_whole, require_whole

__all__ = ["builtin_cogs", "builtin_corpus"]

LONGEST = 40
LABELS = {1: "positive", 0: "neutral", -1: "negative"}
SHARES = {"train": (0, 1), "dev": (2,), "test": (3,)}
"""The quarters of all sentences, by their checksum, that a split draws from."""


def builtin_corpus(size: int = 4000, seed: int = 0) -> dict[str, list[Sentence]]:
    """Splits "train" (`size` sentences), "dev" and "test" (an eighth of it each).

    Columns "upos", "xpos" and "entity" (BIOES); gold heads; the label is the opinion voiced.
    """
    return _splits("corpus", _tagged_sentence, size, seed)


def builtin_cogs(size: int = 4000, seed: int = 0) -> dict[str, list[Sentence]]:
    """The same splits with logical forms in the notation of COGS, and "gen".

    "gen" has about a quarter of `size`, the cases of generalisation in turn: structures, and
    words in roles, that "train" never has. The label of its sentences names the case.
    """
    corpus = _splits("cogs", in_distribution, size, seed)
    random, rounds = Random(f"cogs gen {seed}"), max(1, size // (4 * len(GENERALISATIONS)))
    corpus["gen"] = [generalisation(random, c) for _ in range(rounds) for c in GENERALISATIONS]
    return corpus


def _splits(
    name: str, draw: Callable[[Random], Sentence], size: int, seed: int
) -> dict[str, list[Sentence]]:
    require_whole("size", size)
    if not is_whole(seed):
        raise InputError(f"seed must be a whole number, got {seed!r}")
    counts = {"train": size, "dev": max(1, size // 8), "test": max(1, size // 8)}
    corpus: dict[str, list[Sentence]] = {split: [] for split in counts}
    for split, sentences in corpus.items():
        # A string seeds the generator by its digest, the same in every process.
        random = Random(f"{name} {split} {seed}")
        while len(sentences) < counts[split]:
            sentence = draw(random)
            text = " ".join(sentence.words)
            if len(sentence) <= LONGEST and crc32(text.encode()) % 4 in SHARES[split]:
                sentences.append(sentence)
    return corpus


def _tagged_sentence(random: Random) -> Sentence:
    root = Grammar(random).sentence()
    columns = {
        name: tuple(getattr(token, name) for token in root.tokens)
        for name in ("upos", "xpos", "entity")
    }
    return Sentence(_spelled(root), columns, root.heads, LABELS[root.polarity])


def _spelled(root: Phrase) -> tuple[str, ...]:
    """The words, with "an" where the next one asks for it."""
    words = [token.word for token in root.tokens]
    pairs = zip(words, [*words[1:], "."], strict=True)
    return tuple("an" if w == "a" and after[0] in "aeiou" else w for w, after in pairs)
