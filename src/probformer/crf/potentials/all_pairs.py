"""Scores and contexts of all pairs of words as the equations have them, for exported models.

`pairwise.py` is fast because it writes diagonals in place. An exported graph that holds for all
lengths cannot, as the slices differ for sentences shorter than γ. Here every bucket computes all
n × n pairs and keeps its own, K times the work: exported models run on short sentences and without
gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from probformer.crf.potentials.buckets import Buckets


@dataclass(frozen=True)
class AllPairs:
    """The same interface as `Pairs`."""

    scores: Tensor
    """F (B, h, n, n), eq. 3."""
    dependents: Tensor
    """A (B, K, h, n, r)."""
    heads: Tensor
    """B, the same, with 1 for K or h where all buckets or channels share it."""
    chosen: Tensor
    """(K, 1, n, n): the bucket that a pair belongs to."""

    @classmethod
    def of(cls, dependents: Tensor, heads: Tensor, buckets: Buckets) -> AllPairs:
        a, b = dependents.permute(0, 2, 3, 1, 4), heads.permute(0, 2, 3, 1, 4)
        chosen = _chosen(buckets, a.shape[3], a.device)
        scores = torch.where(chosen, a @ b.mT, 0.0).sum(1)
        return cls(scores, a, b, chosen)

    def contexts(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """The contexts of dependents and heads (eq. 4), shaped as the arguments of `of`."""
        a, b = self.dependents, self.heads
        p = torch.where(self.chosen, p.unsqueeze(1), 0.0)
        to_a, to_b = p @ b, p.mT @ a
        shared = [axis for axis in (1, 2) if b.shape[axis] == 1]
        if shared:
            to_b = to_b.sum(shared, keepdim=True)
        return to_a.permute(0, 3, 1, 2, 4), to_b.permute(0, 3, 1, 2, 4)


def _chosen(buckets: Buckets, n: int, device: torch.device) -> Tensor:
    position = torch.arange(n, device=device)
    offset = position[:, None] - position  # i − j
    if buckets.gamma is None:
        return torch.ones_like(offset, dtype=torch.bool)[None, None]
    furthest = buckets.gamma + 1
    number = offset.clamp(-furthest, furthest) + torch.where(offset < 0, furthest, buckets.gamma)
    return (number == torch.arange(buckets.count, device=device)[:, None, None]).unsqueeze(1)
