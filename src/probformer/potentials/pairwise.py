"""The part of inference that looks at pairs of words, for every potential alike.

A potential projects the label distributions to two vectors a word, one as a dependent (A) and
one as a head (B), for each distance bucket k and channel c. All that is left is

    F[c,i,j] = Σ_l A[k]_icl B[k]_jcl            the score of j as the head of i      (eq. 3)
    to i as a dependent: Σ_j P[c,i,j] B[k]_j    to j as a head: Σ_i P[c,i,j] A[k]_i  (eq. 4)

with k = f(i−j). Only the two open-ended buckets need all n × n pairs. A near bucket is one
diagonal, so it costs n products: A and B laid side by side, B rolled by the distance. What rolls
around the end lands outside the matrix, where scores are dropped and P is zero.

Shapes: A[k] (B, n, h, r); B[k] (B, n, h, r), or (B, n, 1, r) where all channels share it;
F, P (B, h, n, n). Contractions have two operands, and tensors are unbound rather than sliced:
the gradient of each slice would be a tensor of zeros as large as the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probformer.potentials.buckets import Buckets, band_from_matrix, matrix_from_band

Vectors = Sequence[Tensor]
"""One tensor a distance bucket, (B, n, h or 1, r)."""


@dataclass(frozen=True)
class Pairs:
    """What the words of a sentence offer each other, laid out for both messages."""

    buckets: Buckets
    far_dependents: Vectors
    """A of the open-ended buckets, first those with the head to the right: (B, h, n, r)."""
    far_heads: Vectors
    near_dependents: Vectors
    """A of the near buckets, in their order: (B, n, h, r)."""
    near_heads: Vectors
    """B of the near buckets, rolled: at position i stands the head that is meant for i."""

    @classmethod
    def of(cls, dependents: Vectors, heads: Vectors, buckets: Buckets) -> Pairs:
        far = [0] if buckets.gamma is None else [0, -1]
        near = zip(buckets.near, heads[1:-1], strict=True)
        return cls(
            buckets,
            [dependents[k].transpose(1, 2).contiguous() for k in far],
            [heads[k].transpose(1, 2).contiguous() for k in far],
            dependents[1:-1],
            [head.roll(-shift, dims=1) for shift, head in near],
        )

    def scores(self) -> Tensor:
        """F (B, h, n, n). The diagonal means nothing: no word heads itself."""
        gamma = self.buckets.gamma
        pairs = zip(self.far_dependents, self.far_heads, strict=True)
        far = [torch.einsum("bhil,bhjl->bhij", *pair) for pair in pairs]
        if gamma is None:
            return far[0]
        scores = far[0].triu(gamma + 1) + far[1].tril(-gamma - 1)
        if gamma == 0:
            return scores
        near = zip(self.near_dependents, self.near_heads, strict=True)
        diagonals = [(dependent * head).sum(-1) for dependent, head in near]
        diagonals.insert(gamma, torch.zeros_like(diagonals[0]))
        band = torch.stack(diagonals[::-1], dim=-1)  # (B, n, h, 2γ+1), from j−i = −γ to γ
        return scores + matrix_from_band(band.transpose(1, 2))

    def contexts(self, p: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """What dependents and heads hear, bucket by bucket, shaped as the potential projected."""
        gamma = self.buckets.gamma
        parts = [p] if gamma is None else [p.triu(gamma + 1), p.tril(-gamma - 1)]
        far = zip(parts, self.far_dependents, self.far_heads, strict=True)
        contexts = [(_over_heads(part, b), _over_dependents(part, a, b)) for part, a, b in far]
        if gamma:
            contexts[1:1] = self._near_contexts(band_from_matrix(p, gamma).transpose(1, 2))
        to_dependents, to_heads = zip(*contexts, strict=True)
        return list(to_dependents), list(to_heads)

    def _near_contexts(self, band: Tensor) -> list[tuple[Tensor, Tensor]]:
        diagonals = band.unbind(-1)  # (B, n, h) each, from j−i = −γ to γ
        near = zip(self.buckets.near, self.near_dependents, self.near_heads, strict=True)
        contexts = []
        for shift, dependent, head in near:
            weight = diagonals[len(diagonals) // 2 + shift].unsqueeze(-1)
            to_head = (weight * dependent).sum_to_size(head.shape).roll(shift, dims=1)
            contexts.append((weight * head, to_head))
        return contexts


def _over_heads(p: Tensor, heads: Tensor) -> Tensor:
    return torch.einsum("bhij,bhjl->bihl", p, heads)


def _over_dependents(p: Tensor, dependents: Tensor, heads: Tensor) -> Tensor:
    if heads.shape[1] == dependents.shape[1]:
        return torch.einsum("bhij,bhil->bjhl", p, dependents)
    return torch.einsum("bhij,bhil->bjl", p, dependents).unsqueeze(2)  # shared: channels add up
