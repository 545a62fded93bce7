"""What a channel does: direction and distance of its heads, and the classes of words it links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from probformer.analysis.describe.associations import (
    MIN_LIFT,
    Floats,
    Integers,
    excess,
    lift,
    shares_of,
)

ROOT_NAME = "ROOT"
"""The name of ROOT as a head; of a transformer, it stands for CLS."""
_ROUNDING = 1e-9
_MIN_SHARE = 0.0005  # smaller ones print as 0.0 % and are mostly rounding errors


@dataclass(frozen=True)
class Spread:
    """Where heads are, in expectation over all words of a text.

    `left`, `right`, `itself`, `root` and `elsewhere` add up to 1.
    """

    left: float
    """The probability of a head before the word."""
    right: float
    itself: float
    """That of the word itself, which only attention of transformers has."""
    root: float
    elsewhere: float
    """The rest: global features, or a sentence of one word that has no head."""
    distance: float
    """Mean |i−j| of heads that are words."""
    median_distance: int
    offsets: dict[int, float]
    """The distribution of j−i over heads that are words: negative is to the left."""
    entropy: float
    """Of a word's distribution over words, ROOT and `elsewhere`, in bits, on average."""


@dataclass(frozen=True)
class Link:
    """A class of dependents and a class of heads that occur together more often than by chance."""

    dependent: str
    head: str
    share: float
    """The probability that a word of the text is such a dependent with such a head."""
    lift: float
    """How many times as often as if dependents and heads were independent."""


class SpreadCounts:
    """Sums up where the heads of sentences are, for h channels."""

    def __init__(self, channels: int, longest: int) -> None:
        self._offsets = np.zeros((2 * longest - 1, channels))
        self._longest = longest
        self._root, self._entropy = np.zeros((2, channels))
        self._words = 0

    def add(self, heads: Floats, root: Floats | None) -> None:
        """Add a sentence: heads (h, n, n) and, if there is a ROOT, its probability (h, n)."""
        h, n, _ = heads.shape
        at = np.arange(n)
        places = at[None, :] - at[:, None] + self._longest - 1
        np.add.at(self._offsets, places.ravel(), heads.reshape(h, -1).T)
        if root is None:
            root = np.zeros((h, n))
        self._root += root.sum(1)
        nowhere = np.clip(1 - heads.sum(-1) - root, 0, 1)
        choices = np.concatenate([heads, root[..., None], nowhere[..., None]], axis=-1)
        logs = np.log2(choices, out=np.zeros_like(choices), where=choices > 0)
        self._entropy -= (choices * logs).sum((1, 2))
        self._words += n

    def spreads(self) -> list[Spread]:
        return [self._spread(channel) for channel in range(len(self._root))]

    def _spread(self, channel: int) -> Spread:
        counts, middle = self._offsets[:, channel], self._longest - 1
        left, itself, right = counts[:middle].sum(), counts[middle], counts[middle + 1 :].sum()
        root, words = self._root[channel], self._words
        by_distance = counts[middle:] + counts[middle::-1]
        by_distance[0] = itself
        shares = shares_of(by_distance)
        signed = shares_of(counts)
        return Spread(
            left=float(left / words),
            right=float(right / words),
            itself=float(itself / words),
            root=float(root / words),
            elsewhere=max(0.0, float(1 - (left + itself + right + root) / words)),
            distance=float(shares @ np.arange(len(shares))),
            median_distance=int(np.argmax(np.cumsum(shares) >= 0.5 - _ROUNDING)),
            offsets={int(k) - middle: float(signed[k]) for k in np.flatnonzero(signed)},
            entropy=float(self._entropy[channel] / words),
        )


class LinkCounts:
    """Sums up which classes of words the channels link: labels, tags or words themselves."""

    def __init__(self, channels: int, names: Sequence[str]) -> None:
        self._names = names
        rest = len(names)  # the class of all other values: in the totals, but not reported
        self._root = rest + 1
        self._joint = np.zeros((rest + 1, rest + 2, channels))
        self._words = 0

    def add(self, classes: Integers, heads: Floats, root: Floats | None) -> None:
        """Add a sentence: classes (n,), heads (h, n, n), and the probability of ROOT (h, n)."""
        pairs = (classes[:, None], classes[None, :])
        np.add.at(self._joint, pairs, heads.transpose(1, 2, 0))
        if root is not None:
            np.add.at(self._joint[:, self._root], classes, root.T)
        self._words += len(classes)

    def links(self, channel: int, most: int) -> list[Link]:
        """The pairs that add most to the mutual information of dependent and head."""
        joint = self._joint[..., channel]
        named = np.r_[: len(self._names), self._root]
        cells = np.ix_(named[:-1], named)
        gains, lifts = excess(joint)[cells], lift(joint)[cells]
        shares = joint[cells] / max(self._words, 1)
        gains[(lifts < MIN_LIFT) | (shares < _MIN_SHARE)] = 0
        heads = [*self._names, ROOT_NAME]
        best = np.argsort(-gains, axis=None, kind="stable")[:most]
        pairs = [divmod(int(place), len(heads)) for place in best]
        return [
            Link(self._names[a], heads[b], float(shares[a, b]), float(lifts[a, b]))
            for a, b in pairs
            if gains[a, b] > 0
        ]


def uniform_heads(n: int, itself: bool, root: bool) -> tuple[Floats, Floats | None]:
    """One channel (1, n, n) of uniformly distributed heads, to compare the others with."""
    allowed = np.ones((n, n)) if itself else 1 - np.eye(n)
    total = np.maximum(allowed.sum(1) + root, 1)
    return (allowed / total[:, None])[None], (1 / total)[None] if root else None
