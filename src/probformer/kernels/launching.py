"""Arguments that several kernels have in common."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from probformer.kernels.crf.problem import Problem, Vectors

_WIDEST = 64
"""The largest number of a vector's components in a tile; longer vectors take several tiles."""


def inputs_of(problem: Problem, vectors: Vectors) -> tuple[Tensor | None, ...]:
    """A, B, SCALE, COS, SIN, REST, MASK, STARTS, LENGTHS, SEED, OLD."""
    packing = problem.packing
    return (
        *(vectors.dependents, vectors.heads, vectors.scale),
        *(problem.angles or (None, None)),
        *(vectors.rest, problem.mask.view(torch.uint8), packing.starts, packing.lengths),
        *(problem.seed, vectors.old),
    )


def sizes_of(problem: Problem, vectors: Vectors) -> tuple[float, ...]:
    """Channels, r, `longest`, strides of inputs and of outputs, 1/λ, dropout rate, α."""
    a, b = vectors.dependents, vectors.heads
    h, r = problem.channels, a.shape[-1]
    out_a, out_b = (x.shape[1] * h * r for x in (a, b))
    strides = (*strides_of(a), *strides_of(b), out_a, h * r, out_b, h * r)
    longest = problem.packing.longest
    return (h, r, longest, *strides, 1 / problem.weight, problem.rate, problem.step)


def strides_of(x: Tensor) -> tuple[int, int, int]:
    """Strides of rows, buckets and channels; zero for an axis that is shared."""
    row, bucket, channel, _ = x.stride()
    return row, bucket if x.shape[1] > 1 else 0, channel if x.shape[2] > 1 else 0


def width_of(r: int, widest: int | None = None) -> int:
    """Components in a tile, without rotation: both halves of a rotated vector are in one tile."""
    return min(max(16, triton.next_power_of_2(r)), widest or _WIDEST)


def constants_of(problem: Problem, vectors: Vectors) -> dict[str, Any]:
    a, b = vectors.dependents, vectors.heads
    rotary = problem.angles is not None
    r = a.shape[-1]
    return {
        "GAMMA": -1 if problem.gamma is None else problem.gamma,
        "K": problem.buckets,
        "WIDTH": max(32, triton.next_power_of_2(r)) if rotary else width_of(r),
        "A_SHARED": a.shape[1] == 1,
        "B_SHARED": b.shape[1] == 1,
        "SCALED": vectors.scale is not None,
        "ROTARY": rotary,
        "HAS_REST": vectors.rest is not None,
        "DROPOUT": problem.rate > 0,
        "PRECISION": precision_of_products(),
    }


def precision_of_products() -> str:
    """For float32: three tf32 products are as exact as one without tensor cores, and far faster."""
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"
