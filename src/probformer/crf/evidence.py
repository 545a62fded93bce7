"""Observed variables: inference given that some words have certain heads or labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Evidence:
    """Indices of observed values, of type long; `sentinels.UNOBSERVED` (−2) elsewhere.

    The distribution of an observed variable is a point mass. Its scores are still computed: they
    are what would be normalised if it were not observed.
    """

    labels: Tensor | None = None
    """(B, n): the label of a word."""
    heads: Tensor | None = None
    """(B, h, n): the position of a word's head, or `sentinels.ROOT`."""
    root: Tensor | None = None
    """(B,): the label of ROOT."""
    globals: Tensor | None = None
    """(B, h, n), with single-split (B, 1, n): the global feature that a word attaches to."""
    arc_labels: Tensor | None = None
    """(B, n): the label of the arc to a word, in the channel whose arcs have labels."""
    others: Mapping[str, Tensor] = field(default_factory=dict)
    """Indices for other factors, by `Variable.name` or `Factor.column_evidence`."""

    def index(self, name: str) -> Tensor | None:
        """The indices given under this name, or None."""
        return getattr(self, name) if name in _NAMES else self.others.get(name)

    def given(self) -> Iterator[tuple[str, Tensor]]:
        """The names for which indices are given, with these indices."""
        for name in (*_NAMES, *self.others):
            if (index := self.index(name)) is not None:
                yield name, index


_NAMES = ("labels", "heads", "root", "globals", "arc_labels")
