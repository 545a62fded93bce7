"""Arguments and results of the kernels: the pairwise part of an iteration, words in rows.

The rows of all tensors are the words of all sentences, R of them; r components, h channels and
K distance buckets. Vectors may be shared by all buckets or by all channels, which then is an axis
of size one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from probformer.packing import Packing


@dataclass(frozen=True, eq=False)
class Problem:
    """All arguments without a gradient."""

    packing: Packing
    """The rows of each sentence, padding included: every row belongs to one."""
    mask: Tensor
    """(R,) bool: true for words, false for padding."""
    channels: int
    gamma: int | None
    weight: float
    """λ_H."""
    angles: tuple[Tensor, Tensor] | None
    """Cosine and sine (n, r/2) of the angles by which rotary vectors turn; None for no rotation."""
    rate: float
    """The rate of dropout."""
    seed: Tensor | None
    """(1,) int64: the seed of dropout; None without dropout."""
    step: float = 1.0
    """α_H, which counts only with `Vectors.old`: see `mixing.py`."""
    remembers: bool = False
    """Whether Q_H is returned, for the next iteration to mix it into its own."""

    @property
    def buckets(self) -> int:
        return 1 if self.gamma is None else 2 * self.gamma + 2

    def empty_beliefs(self) -> Tensor:
        """Memory for Q_H, (R, h, longest)."""
        shape = len(self.mask), self.channels, self.packing.longest
        return self.mask.new_empty(shape, dtype=torch.float32)


@dataclass(frozen=True, eq=False)
class Vectors:
    """The inputs of kernels that have gradients."""

    dependents: Tensor
    """A (R, K or 1, h or 1, r)."""
    heads: Tensor
    """B (R, K or 1, h or 1, r)."""
    scale: Tensor | None
    """D (K, h, r): A[k]^c is multiplied by D[k]^c."""
    rest: Tensor | None
    """(R, h): log Σ exp(score/λ) over heads that are not words, such as ROOT; None without such."""
    old: Tensor | None = None
    """(R, h, longest): Q_H of the iteration before, if it is mixed in."""


@dataclass(frozen=True, eq=False)
class Contexts:
    """The outputs of kernels: what the label messages are computed from, and the normaliser."""

    to_dependents: Tensor
    """P·B (R, K or 1, h, r), as A has buckets."""
    to_heads: Tensor
    """Pᵀ·A (R, K or 1, h, r), as B has buckets."""
    normaliser: Tensor
    """(R, h): the log of the softmax's denominator, rest included; +inf for rows without heads."""
    beliefs: Tensor | None = None
    """(R, h, longest): Q_H, if it is remembered."""

    @classmethod
    def empty(cls, problem: Problem, vectors: Vectors) -> Contexts:
        """For kernels to write to."""
        a, b, h = vectors.dependents, vectors.heads, problem.channels
        return cls(
            _empty_like(a, h),
            _empty_like(b, h),
            a.new_empty(len(a), h, dtype=torch.float32),
            problem.empty_beliefs() if problem.remembers else None,
        )


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of a loss by the fields of `Vectors`, and the contexts again.

    The gradients by U and V need the contexts: `dependents` holds dA and P·B, `heads` dB and Pᵀ·A,
    in one tensor each.
    """

    dependents: Tensor
    """(2, R, K or 1, h, r), to be summed over channels where these share A."""
    heads: Tensor
    scale: Tensor | None
    rest: Tensor | None
    old: Tensor | None

    @classmethod
    def empty(cls, problem: Problem, vectors: Vectors) -> Gradients:
        """For kernels to write to; that of D is zero, as they add to it."""
        a, b, h = vectors.dependents, vectors.heads, problem.channels
        scale, rest, old = vectors.scale, vectors.rest, vectors.old
        return cls(
            _empty_like(a, h, 2),
            _empty_like(b, h, 2),
            None if scale is None else torch.zeros_like(scale, dtype=torch.float32),
            None if rest is None else torch.empty_like(rest),
            None if old is None else torch.empty_like(old),
        )


def _empty_like(x: Tensor, channels: int, *copies: int) -> Tensor:
    """Memory for results by channel, from vectors x (R, K, h or 1, r).

    Where all channels share the vectors, the results are summed over channels later: they are in
    float32, so that only the sum is rounded.
    """
    added = x.shape[2] < channels
    dtype = torch.promote_types(x.dtype, torch.float32) if added else x.dtype
    return x.new_empty(*copies, *x.shape[:2], channels, x.shape[-1], dtype=dtype)
