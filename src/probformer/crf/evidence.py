"""Observed variables: the way to ask "what if this word had that head, or that label?"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Evidence:
    """Indices of observed values, `sentinels.UNOBSERVED` elsewhere.

    An observed variable keeps a point mass. Its scores are still computed: they tell what inference
    would have said.
    """

    labels: Tensor | None = None
    """(B, n): the label of a word."""
    heads: Tensor | None = None
    """(B, h, n): the position of a word's head, or `sentinels.ROOT`."""
    root: Tensor | None = None
    """(B,): the label of ROOT."""
    globals: Tensor | None = None
    """(B, h, n), with single-split (B, 1, n): the global feature that a word attaches to."""
    others: Mapping[str, Tensor] = field(default_factory=dict)
    """Indices of the variables of other factors, by their names."""

    def index(self, name: str) -> Tensor | None:
        """The indices of the variables of that name, if any is observed."""
        return getattr(self, name) if name in _NAMES else self.others.get(name)

    def given(self) -> Iterator[tuple[str, Tensor]]:
        """Name and indices of the kinds of variables some of which are observed."""
        for name in (*_NAMES, *self.others):
            if (index := self.index(name)) is not None:
                yield name, index


_NAMES = ("labels", "heads", "root", "globals")
