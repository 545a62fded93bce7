"""Launches the kernels of `short_passes.py`: short sentences, each whole in one program."""

# Type checkers cannot match arguments that are passed to kernels in groups.
# pyright: reportCallIssue=false

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from probformer.kernels.crf import short_passes
from probformer.kernels.crf.problem import Contexts, Gradients, Problem, Vectors
from probformer.kernels.launching import constants_of, inputs_of, sizes_of, width_of

LONGEST = 64
"""The largest number of words that a program can hold in half precision."""


def forward(problem: Problem, vectors: Vectors, out: Contexts) -> None:
    best = (4, 128) if vectors.scale is None else (1, 64)
    for shortest, n in _sizes(problem, vectors):
        short_passes.forward[_grid(problem)](
            *inputs_of(problem, vectors),
            *(out.to_dependents, out.to_heads, out.normaliser, out.beliefs),
            *sizes_of(problem, vectors),
            shortest,
            N=n,
            **_constants(problem, vectors, n, *best),
        )


def backward(
    problem: Problem, vectors: Vectors, normaliser: Tensor, gradients: Contexts, out: Gradients
) -> None:
    """`gradients` are the gradients by the contexts, shaped as A and B."""
    a, d_scale = vectors.dependents, None
    if vectors.scale is not None:
        sentences = len(problem.packing.starts)
        d_scale = a.new_zeros(sentences, *vectors.scale.shape, dtype=torch.float32)
    best = (4 if a.shape[-1] > 64 else 2, 64) if vectors.scale is None else (2, 32)
    for shortest, n in _sizes(problem, vectors):
        short_passes.backward[_grid(problem)](
            *inputs_of(problem, vectors),
            normaliser,
            *(gradients.to_dependents, gradients.to_heads, gradients.normaliser, gradients.beliefs),
            *(out.dependents[0], out.heads[0], d_scale, out.rest, out.old),
            *(out.dependents[1], out.heads[1]),
            *sizes_of(problem, vectors),
            shortest,
            N=n,
            **_constants(problem, vectors, n, *best),
        )
    if out.scale is not None and d_scale is not None:
        out.scale.add_(d_scale.sum(0))


def most_words(dtype: torch.dtype) -> int:
    """The longest sentence that a program can hold: half as long in float32, for lack of memory."""
    return LONGEST * 2 // dtype.itemsize


def _grid(problem: Problem) -> tuple[int]:
    return (len(problem.packing.starts) * problem.channels,)


def _sizes(problem: Problem, vectors: Vectors) -> list[tuple[int, int]]:
    """Launches (shortest, n): sentences of shortest < length ≤ n words, in blocks of n."""
    packing = problem.packing
    longest = min(packing.longest, most_words(vectors.dependents.dtype))
    n = max(16, triton.next_power_of_2(longest))
    return [(0, n)] if packing.alike or n <= 32 else [(0, 32), (32, n)]


def _constants(
    problem: Problem, vectors: Vectors, n: int, warps: int, columns: int
) -> dict[str, Any]:
    """The fastest as measured on an H200, where the number of programs that fit at once decides.

    `warps` and `columns` (components in a tile) are the best for small blocks in half precision.
    """
    half = vectors.dependents.dtype != torch.float32
    stages = 4 if vectors.dependents.shape[1] > 1 else 2 if vectors.scale is None else 1
    if not half:
        warps, columns, stages = 8, 64, 1
    elif n > 32:
        warps, columns, stages = 4, 64, min(stages, _stages_of_large_blocks(vectors.dependents))
    constants = constants_of(problem, vectors)
    if problem.angles is None:
        constants["WIDTH"] = width_of(vectors.dependents.shape[-1], columns)
    return {"num_warps": warps, "num_stages": stages, **constants}


def _stages_of_large_blocks(x: Tensor) -> int:
    """3 where a block may have more than 128 KiB of shared memory, else 1."""
    properties = torch.cuda.get_device_properties(x.device)
    return 3 if properties.shared_memory_per_block_optin > 2**17 else 1
