"""Observed variables: the way to ask "what if this word had that head, or that label?"."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Evidence:
    """Indices of observed values, `sentinels.UNOBSERVED` elsewhere.

    An observed variable keeps a point mass. Scores are still computed for it: they tell what
    inference would have said.
    """

    labels: Tensor | None = None
    """(B, n): the label of a word."""
    heads: Tensor | None = None
    """(B, h, n): the position of a word's head, or `sentinels.ROOT`."""
    root: Tensor | None = None
    """(B,): the label of ROOT."""
    globals: Tensor | None = None
    """(B, h, n), with single-split (B, 1, n): the global feature that a word attaches to."""


@dataclass(frozen=True, eq=False)
class Clamp:
    """Point masses for the observed ones among the variables of a kind."""

    observed: Tensor  # (…, 1)
    point_mass: Tensor  # (…, m)

    @classmethod
    def at(cls, index: Tensor | None, size: int) -> Clamp | None:
        """From indices (…), `UNOBSERVED` where it is not, into `size` values."""
        if index is None:
            return None
        index = index.unsqueeze(-1)
        values = torch.arange(size, device=index.device)
        return cls(observed=index >= 0, point_mass=values == index)

    def __call__(self, marginals: Tensor) -> Tensor:
        return torch.where(self.observed, self.point_mass.to(marginals.dtype), marginals)
