"""A predicted parse of a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Parse:
    """The tree of n words, with the probabilities of what was predicted."""

    heads: Sequence[int]
    """n positions, or `sentinels.ROOT`."""
    head_probabilities: Sequence[float]
    """n times P(this head)."""
    labels: Sequence[str] | None = None
    """n labels of the arcs to the words; None where arcs have none."""
    label_probabilities: Sequence[float] | None = None
    """n times P(this label | this head)."""
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """n tags each, by column."""
    tag_probabilities: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """n times P(this tag), by column."""
