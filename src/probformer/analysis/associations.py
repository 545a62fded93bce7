"""How much two variables tell about each other, from a table of how often they go together.

A table is counts or probabilities, rows × columns; all information is in bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_LIFT = 1.1
"""What goes together less than that much more often than by chance is not worth a mention."""


def entropy(weights: Floats) -> float:
    """Of one variable; the weights need not add up to 1."""
    weights = weights[weights > 0]
    shares = weights / max(weights.sum(), np.finfo(float).tiny)
    return max(0.0, float(-(shares * np.log2(shares)).sum()))


def mutual_information(joint: Floats) -> float:
    """Σ P(a, b) log₂ P(a, b) / (P(a) P(b))."""
    return max(0.0, float(excess(joint).sum()))


def excess(joint: Floats) -> Floats:
    """What each pair adds to the mutual information: it is large for pairs that are both frequent
    and more so than chance has it, where a plain ratio would prefer the rarest ones."""
    joint = shares_of(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = joint * np.log2(lift(joint))
    return np.where(joint > 0, found, 0.0)


def lift(joint: Floats) -> Floats:
    """How many times as often as by chance: P(a, b) / (P(a) P(b)); 0 for what never happens."""
    joint = shares_of(joint)
    chance = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    return np.divide(joint, chance, out=np.zeros_like(joint), where=joint > 0)


def shares_of(joint: Floats) -> Floats:
    """Adding up to 1, unless there is nothing."""
    return joint / (joint.sum() or 1.0)


def numbered(texts: Iterable[Sequence[str]], most: int) -> tuple[list[str], list[Integers]]:
    """The most frequent values, and for each text its values as their places in that list.

    All others have the number after the last, so that tables stay small.
    """
    texts = list(texts)
    counts = Counter(value for text in texts for value in text)
    names = sorted(counts, key=lambda name: (-counts[name], name))[:most]
    places = {name: place for place, name in enumerate(names)}
    rest = len(names)
    return names, [np.array([places.get(value, rest) for value in text]) for text in texts]
