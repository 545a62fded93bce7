"""Attachment scores: directed (UAS) and undirected (UUAS), and simple baselines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probformer.data.attachment import is_punctuation
from probformer.data.breakdown import LENGTHS
from probformer.data.sentence import Sentence
from probformer.sentinels import ROOT, UNOBSERVED

BASELINES = LEFT, RIGHT, RANDOM = "left chain", "right chain", "random"

_RANDOM_DRAWS = 5

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Accuracy:
    """Attachment scores as shares of 1; None where there is nothing to count."""

    uas: float | None
    """The share of words with their gold head, of those that have one; ROOT is the head of the root
    word."""
    uuas: float | None
    """The share of gold arcs between words that were found, in either direction."""
    uas_without_punctuation: float | None
    uuas_without_punctuation: float | None
    """The same for dependents that are not punctuation."""


class Score:
    """Hits of each way to find heads, by groups of sentences of similar length."""

    def __init__(self) -> None:
        # Groups × (all words, without punctuation) × (words with a gold head, right heads, arcs
        # between words, arcs found).
        self._counts = defaultdict[str, Floats](lambda: np.zeros((len(LENGTHS) + 1, 2, 4)))

    def add(self, sentence: Sentence, hits: Mapping[str, Floats]) -> None:
        """Add a sentence: for each way, the result of `hits_of`."""
        gold, ones = np.array(sentence.heads), np.ones(len(sentence))
        words = ~is_punctuation(sentence.words, sentence.columns.get("upos"))
        known, arcs = gold != UNOBSERVED, gold >= 0
        for way, (right, found) in hits.items():
            values = np.stack([known, right, arcs, found])
            self._counts[way][group_of(sentence)] += np.stack([values @ ones, values @ words])

    def accuracy(self, way: str, group: int | None = None) -> Accuracy:
        """On all sentences, or on those of a group."""
        counts = self._counts[way]
        sums = counts.sum(0) if group is None else counts[group]
        shares = [
            hit / total if total else None
            for words, right, arcs, found in sums.tolist()
            for hit, total in ((right, words), (found, arcs))
        ]
        return Accuracy(*shares)


def group_of(sentence: Sentence) -> int:
    return int(np.searchsorted(LENGTHS, len(sentence)))


def hits_of(gold: Ints, heads: Ints) -> Floats:
    """1 for each word with its gold head, and 1 for each whose gold arc was found either way round.

    Args:
        gold: (n,), `UNOBSERVED` where the gold head is not known: 0 in both.
        heads: (…, n)

    Returns:
        (2, …, n)
    """
    right = heads == gold
    turned = heads[..., gold] == np.arange(len(gold))
    return np.stack([right, (gold >= 0) & (right | turned)]).astype(float)


def baseline_hits(gold: Ints, chance: np.random.Generator) -> dict[str, Floats]:
    """Hits of the left chain, the right chain, and uniformly drawn heads."""
    n = len(gold)
    before = np.arange(-1, n - 1)
    after = np.append(np.arange(1, n), ROOT)
    draws = chance.integers(0, n, size=(_RANDOM_DRAWS, n))
    anywhere = np.where(draws == np.arange(n), ROOT, draws)  # ROOT instead of the word itself
    return {
        LEFT: hits_of(gold, before),
        RIGHT: hits_of(gold, after),
        RANDOM: hits_of(gold, anywhere).mean(1),
    }
