"""What the kernels are asked: the pairwise part of an iteration, for words laid out in rows.

The rows of all tensors are the words of all sentences, R of them; r components, h channels and
K distance buckets. Vectors may be shared by all buckets or by all channels, which then is an axis
of size one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Layout:
    """Which rows belong to which sentence."""

    starts: Tensor
    """(S,) int32: the first row of each sentence."""
    lengths: Tensor
    """(S,) int32: how many rows it has, padding included."""
    longest: int
    """No sentence has more rows."""
    mask: Tensor
    """(R,) bool: true where there is a word."""

    alike: bool
    """Whether all sentences have the same number of rows."""

    @classmethod
    def padded(cls, mask: Tensor) -> Layout:
        """Of a padded batch (B, n)."""
        batch, n = mask.shape
        starts = torch.arange(batch, device=mask.device, dtype=torch.int32) * n
        return cls(starts, torch.full_like(starts, n), n, mask.contiguous().flatten(), alike=True)

    @classmethod
    def packed(cls, starts: Tensor, lengths: Tensor, longest: int, mask: Tensor) -> Layout:
        """Of sentences end to end, some of which may be missing (length 0).

        Rows after the last one are sentences, too, of padding, so that kernels write all rows.
        """
        rows = len(mask)
        end = (starts + lengths).max()
        tail = end + torch.arange(0, rows, longest, device=mask.device, dtype=torch.int32)
        of_tail = (rows - tail).clamp(0, longest)
        starts, lengths = torch.cat([starts, tail]), torch.cat([lengths, of_tail])
        return cls(starts, lengths, longest, mask, alike=False)

    def without_short_sentences(self, most: int) -> Layout:
        """Those of up to `most` rows are missing: their rows are somebody else's."""
        return replace(self, lengths=torch.where(self.lengths > most, self.lengths, 0))


@dataclass(frozen=True, eq=False)
class Problem:
    """All that stays the same in an iteration and has no gradient."""

    layout: Layout
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
        mask, longest = self.layout.mask, self.layout.longest
        return mask.new_empty(len(mask), self.channels, longest, dtype=torch.float32)


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
