"""The part of inference that looks at pairs of words, for every low-rank potential alike.

A potential projects the label distributions to two vectors a word, one as a dependent (A) and
one as a head (B), for each distance bucket k and channel c. All that is left is

    F[c,i,j] = Σ_l A[k]_icl B[k]_jcl            the score of j as the head of i      (eq. 3)
    to i as a dependent: Σ_j P[c,i,j] B[k]_j    to j as a head: Σ_i P[c,i,j] A[k]_i  (eq. 4)

with k = f(i−j). Only the two open-ended buckets need all n × n pairs. A near bucket is one
diagonal, so it costs n products: A and B laid side by side, B rolled by the distance. What rolls
around the end lands outside the matrix, where scores are dropped and P is zero.

Shapes: A[k] (B, n, h, r); B[k] (B, n, h, r), or (B, n, 1, r) where all channels share it;
F, P (B, h, n, n). Contractions are pairwise and lists are never sliced: a slice's gradient is
a full-sized tensor of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from probformer.potentials.buckets import Buckets, band_from_matrix, matrix_from_band


def head_scores(dependents: Sequence[Tensor], heads: Sequence[Tensor], buckets: Buckets) -> Tensor:
    """F of eq. 3, (B, h, n, n). The diagonal means nothing: no word heads itself."""
    gamma = buckets.gamma
    if gamma is None:
        return _all_pairs(dependents[0], heads[0])
    scores = _all_pairs(dependents[0], heads[0]).triu(gamma + 1)
    scores = scores + _all_pairs(dependents[-1], heads[-1]).tril(-gamma - 1)
    if gamma == 0:
        return scores
    diagonals = [
        (dependent * head.roll(-shift, dims=1)).sum(-1)
        for shift, dependent, head in zip(buckets.near, dependents[1:-1], heads[1:-1], strict=True)
    ]
    diagonals.insert(gamma, torch.zeros_like(diagonals[0]))
    band = torch.stack(diagonals[::-1], dim=-1)  # (B, n, h, 2γ+1), from j−i = −γ to γ
    return scores + matrix_from_band(band.transpose(1, 2))


def contexts(
    p: Tensor, dependents: Sequence[Tensor], heads: Sequence[Tensor], buckets: Buckets
) -> tuple[list[Tensor], list[Tensor]]:
    """The sums over words of eq. 4, bucket by bucket, shaped like `dependents` and `heads`."""
    gamma = buckets.gamma
    if gamma is None:
        return [_over_heads(p, heads[0])], [_over_dependents(p, dependents[0], heads[0])]

    right, left = p.triu(gamma + 1), p.tril(-gamma - 1)
    to_dependents = [_over_heads(right, heads[0])]
    to_heads = [_over_dependents(right, dependents[0], heads[0])]
    diagonals = band_from_matrix(p, gamma).transpose(1, 2).unbind(-1)  # 2γ+1 times (B, n, h)
    for shift, dependent, head in zip(buckets.near, dependents[1:-1], heads[1:-1], strict=True):
        weight = diagonals[gamma + shift].unsqueeze(-1)
        to_dependents.append(weight * head.roll(-shift, dims=1))
        to_heads.append((weight * dependent).sum_to_size(head.shape).roll(shift, dims=1))
    to_dependents.append(_over_heads(left, heads[-1]))
    to_heads.append(_over_dependents(left, dependents[-1], heads[-1]))
    return to_dependents, to_heads


def _all_pairs(dependents: Tensor, heads: Tensor) -> Tensor:
    return torch.einsum("bihl,bjhl->bhij", dependents, heads)


def _over_heads(p: Tensor, heads: Tensor) -> Tensor:
    return torch.einsum("bhij,bjhl->bihl", p, heads)


def _over_dependents(p: Tensor, dependents: Tensor, heads: Tensor) -> Tensor:
    if heads.shape[2] == dependents.shape[2]:
        return torch.einsum("bhij,bihl->bjhl", p, dependents)
    return torch.einsum("bhij,bihl->bjl", p, dependents).unsqueeze(2)  # shared: channels add up
