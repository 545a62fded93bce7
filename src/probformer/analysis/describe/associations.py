"""Association of two variables, from a table of how often their values occur together.

A table holds counts or probabilities, rows × columns; information is in bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MIN_LIFT = 1.1
"""Pairs with a smaller lift are not reported."""


def entropy(weights: Floats) -> float:
    """The entropy of one variable; its weights need not add up to 1."""
    weights = weights[weights > 0]
    shares = weights / max(weights.sum(), np.finfo(float).tiny)
    return max(0.0, float(-(shares * np.log2(shares)).sum()))


def mutual_information(joint: Floats) -> float:
    """Σ P(a, b) log₂ P(a, b) / (P(a) P(b))."""
    return max(0.0, float(excess(joint).sum()))


def excess(joint: Floats) -> Floats:
    """What each pair adds to the mutual information.

    It is large for pairs that are frequent, and more frequent than by chance; the lift alone is
    largest for the rarest pairs.
    """
    joint = shares_of(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = joint * np.log2(lift(joint))
    return np.where(joint > 0, found, 0.0)


def lift(joint: Floats) -> Floats:
    """How many times as often as by chance: P(a, b) / (P(a) P(b)); 0 where the joint is 0."""
    joint = shares_of(joint)
    chance = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    return np.divide(joint, chance, out=np.zeros_like(joint), where=joint > 0)


def shares_of(joint: Floats) -> Floats:
    """Normalised to a sum of 1; a table of zeros is returned as it is."""
    return joint / (joint.sum() or 1.0)


def numbered(texts: Iterable[Sequence[str]], most: int) -> tuple[list[str], list[Integers]]:
    """The `most` most frequent values, and each text as indices into that list.

    All other values have the index after the last, so that tables stay small.
    """
    texts = list(texts)
    counts = Counter(value for text in texts for value in text)
    names = sorted(counts, key=lambda name: (-counts[name], name))[:most]
    places = {name: place for place, name in enumerate(names)}
    rest = len(names)
    return names, [np.array([places.get(value, rest) for value in text]) for text in texts]
