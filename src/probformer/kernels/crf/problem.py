"""What the kernels are asked: the pairwise part of an iteration, for words laid out in rows.

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
    """All that stays the same in an iteration and has no gradient."""

    packing: Packing
    """The rows of each sentence, padding included: every row belongs to one."""
    mask: Tensor
    """(R,) bool: true for words, false for padding."""
    channels: int
    gamma: int | None
    weight: float
    """λ_H."""
    angles: tuple[Tensor, Tensor] | None
    """Cosine and sine (n, r/2) by which vectors turn with their position, or none."""
    rate: float
    """Of dropout."""
    seed: Tensor | None
    """(1,) int64: what dropout is drawn from, if there is any."""
    step: float = 1.0
    """α_H, of heads that were something before: see `mixing.py`."""
    remembers: bool = False
    """Whether the next iteration mixes its heads with those of this one."""

    @property
    def buckets(self) -> int:
        return 1 if self.gamma is None else 2 * self.gamma + 2

    def empty_beliefs(self) -> Tensor:
        """About the heads of all words, (R, h, longest)."""
        shape = len(self.mask), self.channels, self.packing.longest
        return self.mask.new_empty(shape, dtype=torch.float32)


@dataclass(frozen=True, eq=False)
class Vectors:
    """What words offer each other."""

    dependents: Tensor
    """A (R, K or 1, h or 1, r)."""
    heads: Tensor
    """B (R, K or 1, h or 1, r)."""
    scale: Tensor | None
    """D (K, h, r): A[k]^c is multiplied by D[k]^c."""
    rest: Tensor | None
    """(R, h): the logarithm of what heads other than words weigh, or none."""
    old: Tensor | None = None
    """(R, h, longest): beliefs about heads in the iteration before, if they are mixed with."""


@dataclass(frozen=True, eq=False)
class Contexts:
    """What words hear."""

    to_dependents: Tensor
    """P·B (R, K or 1, h, r), as A has buckets."""
    to_heads: Tensor
    """Pᵀ·A (R, K or 1, h, r), as B has buckets."""
    normaliser: Tensor
    """(R, h): the logarithm of the softmax's denominator, rest included; +inf for no choice."""
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
    """Of a loss, by what `Vectors` holds.

    Beside the gradients by A and B stand the contexts, which the gradient of the weights needs:
    `dependents` holds dA and P·B, `heads` dB and Pᵀ·A, in one tensor each.
    """

    dependents: Tensor
    """(2, R, K or 1, h, r), to be added up over channels where A is shared."""
    heads: Tensor
    scale: Tensor | None
    rest: Tensor | None
    old: Tensor | None

    @classmethod
    def empty(cls, problem: Problem, vectors: Vectors) -> Gradients:
        """For kernels to write to; D's they add to."""
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
    """For what vectors (R, K, h or 1, r) become, a channel each.

    Where all channels share the vectors, they are to be added up: in float32, so that only the sum
    is rounded.
    """
    added = x.shape[2] < channels
    dtype = torch.promote_types(x.dtype, torch.float32) if added else x.dtype
    return x.new_empty(*copies, *x.shape[:2], channels, x.shape[-1], dtype=dtype)
