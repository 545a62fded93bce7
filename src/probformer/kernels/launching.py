"""Arguments that all kernels have in common."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from probformer.kernels.problem import Problem, Vectors

_WIDEST = 64
"""Components of vectors in a tile; more come one tile after the other."""


def inputs_of(problem: Problem, vectors: Vectors) -> tuple[Tensor | None, ...]:
    """A, B, SCALE, COS, SIN, REST, MASK, STARTS, LENGTHS, SEED."""
    layout = problem.layout
    return (
        *(vectors.dependents, vectors.heads, vectors.scale),
        *(problem.angles or (None, None)),
        *(vectors.rest, layout.mask.view(torch.uint8), layout.starts, layout.lengths, problem.seed),
    )


def sizes_of(problem: Problem, vectors: Vectors) -> tuple[float, ...]:
    """Channels, r, strides of what is read and of what is written, 1/λ, dropout's rate.

    A stride of zero is an axis that is shared.
    """
    a, b = vectors.dependents, vectors.heads
    h, r = problem.channels, a.shape[-1]
    strides = (_stride(x, axis) for x in (a, b) for axis in range(3))
    written = (x.shape[1] * h * r for x in (a, b))
    out_a, out_b = written
    return (h, r, *strides, out_a, h * r, out_b, h * r, 1 / problem.weight, problem.rate)


def _stride(x: Tensor, axis: int) -> int:
    return x.stride(axis) if x.shape[axis] > 1 or axis == 0 else 0


def constants_of(problem: Problem, vectors: Vectors) -> dict[str, Any]:
    a, b = vectors.dependents, vectors.heads
    rotary = problem.angles is not None
    width = max(16, triton.next_power_of_2(a.shape[-1]))
    exact = not torch.backends.cuda.matmul.allow_tf32
    return {
        "GAMMA": -1 if problem.gamma is None else problem.gamma,
        "K": problem.buckets,
        "WIDTH": max(32, width) if rotary else min(width, _WIDEST),  # halves of at least 16
        "A_SHARED": a.shape[1] == 1,
        "B_SHARED": b.shape[1] == 1,
        "SCALED": vectors.scale is not None,
        "ROTARY": rotary,
        "HAS_REST": vectors.rest is not None,
        "DROPOUT": problem.rate > 0,
        "PRECISION": "ieee" if exact else "tf32",
    }
