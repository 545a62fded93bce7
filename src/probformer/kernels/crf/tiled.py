"""Sentences of any length, in tiles of pairs: memory grows with words, not with pairs.

A pass over all pairs computes the normalisers of rows; with these, contexts and gradients are sums
over independent pairs. Dependents and heads have a pass each, in which a program computes whole
sums of its words: no two programs add to the same place, so that results are the same in every run.
Padding must hold finite numbers. Only step sizes below one need memory for pairs: see `mixing.py`.
"""

# Type checkers of Python do not understand the kernels, which are in Triton's language.
# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from probformer.kernels.crf import tiled_backward, tiled_forward
from probformer.kernels.crf.problem import Contexts, Gradients, Problem, Vectors
from probformer.kernels.crf.tiles import columns_of, load_angles, load_rows, store_rows, turn
from probformer.kernels.launching import constants_of, strides_of, width_of

# M own and N other words in a tile, for each pass: the fastest of those measured on an H200.
NORMALISE = {"M": 64, "N": 64, "num_warps": 4, "num_stages": 3}
CONTEXTS = {"M": 64, "N": 32, "num_warps": 4, "num_stages": 3, "maxnreg": 128}
CORRECT = {"M": 64, "N": 64, "num_warps": 4, "num_stages": 3, "maxnreg": 168}
GRADIENTS = {"M": 64, "N": 64, "num_warps": 4, "num_stages": 2}
EXACT = {"M": 64, "N": 32, "num_warps": 4, "num_stages": 1}
"""For all passes in float32."""

_TURNED = 32
"""Words per program of `_turn`."""


def forward(problem: Problem, vectors: Vectors, out: Contexts) -> None:
    a = _turned(problem, vectors.dependents)
    b = _turned(problem, vectors.heads)
    by_row, by_side = _fitting(NORMALISE, a), _fitting(CONTEXTS, a)
    absent, longest = _absent(problem), problem.packing.longest
    shift = a.new_empty(problem.channels, len(a), dtype=torch.float32)
    tiled_forward.normalise[_grid(problem, by_row)](
        *(a, b, vectors.scale, absent, vectors.rest, *_sentences(problem), shift, out.normaliser),
        *(_blocks(problem, by_row), problem.channels, a.shape[-1], len(a)),
        *(*strides_of(a), *strides_of(b), _exponent(problem)),
        **_constants(problem, vectors, by_row),
        HAS_REST=vectors.rest is not None,
    )
    both = out.to_dependents, out.to_heads
    for side, heard in zip(_sides(a, b, shift, absent), both, strict=True):
        tiles = _tiles(a.shape[-1])
        tiled_forward.contexts[_grid(problem, by_side, tiles)](
            *(side.own, side.other, vectors.scale, side.own_shift, side.other_shift),
            *(*_sentences(problem), problem.seed, vectors.old, heard),
            side.only_once(out.beliefs),
            *(_blocks(problem, by_side), problem.channels, tiles, a.shape[-1], longest),
            *(*side.strides, *heard.stride()[:2], _exponent(problem), problem.rate, problem.step),
            **_constants(problem, vectors, by_side),
            **side.constants(vectors),
            DROPOUT=problem.rate > 0,
        )
        _turned(problem, heard, back=True)


def backward(
    problem: Problem, vectors: Vectors, normaliser: Tensor, gradients: Contexts, out: Gradients
) -> None:
    """`gradients` are the gradients by the contexts, shaped as A and B."""
    a, b, y, z = (
        _turned(problem, x)
        for x in (vectors.dependents, vectors.heads, gradients.to_dependents, gradients.to_heads)
    )
    by_row, by_side = _fitting(CORRECT, a), _fitting(GRADIENTS, a)
    absent, longest = _absent(problem), problem.packing.longest
    shift = (normaliser.mT / math.log(2)).contiguous()
    d_normaliser = torch.empty_like(shift)
    tiled_backward.correct[_grid(problem, by_row)](
        *(a, b, y, z, vectors.scale, shift, absent, *_sentences(problem), problem.seed),
        *(vectors.old, gradients.beliefs, vectors.rest, gradients.normaliser),
        *(d_normaliser, out.rest),
        *(_blocks(problem, by_row), problem.channels, a.shape[-1], len(a), longest),
        *(*strides_of(a), *strides_of(b), _exponent(problem), problem.rate, problem.step),
        **_constants(problem, vectors, by_row),
        DROPOUT=problem.rate > 0,
    )
    blocks = _blocks(problem, by_side)
    d_scale = None
    if vectors.scale is not None:
        parts = len(problem.packing.starts) * blocks
        d_scale = a.new_zeros(parts, *vectors.scale.shape, dtype=torch.float32)
    both = out.dependents, out.heads
    for side, by_own, d_own, d_other in zip(
        _sides(a, b, shift, absent), both, (y, z), (z, y), strict=True
    ):
        tiles = _tiles(a.shape[-1])
        tiled_backward.gradients[_grid(problem, by_side, tiles)](
            *(side.own, side.other, d_own, d_other, vectors.scale),
            *(side.own_shift, side.other_shift, d_normaliser),
            *(*_sentences(problem), problem.seed, vectors.old, gradients.beliefs),
            *(by_own[0], by_own[1], d_scale, side.only_once(out.old)),
            *(blocks, problem.channels, tiles, a.shape[-1], len(a), longest),
            *(*side.strides, *by_own[0].stride()[:2]),
            *(_exponent(problem), 1 / problem.weight, problem.rate, problem.step),
            **_constants(problem, vectors, by_side),
            **side.constants(vectors),
            DROPOUT=problem.rate > 0,
        )
        for x in by_own:
            _turned(problem, x, back=True)
    if out.scale is not None and d_scale is not None:
        out.scale.add_(d_scale.sum(0))


@dataclass(frozen=True, eq=False)
class _Side:
    """Dependents as own words and heads as the others, or the other way round.

    The probability of a pair is 2 ^ (score − own shift − other shift): a dependent's shift is the
    logarithm of its normaliser, a head's is 0. Where there is no word, the shift is +∞.
    """

    rows: bool
    own: Tensor
    other: Tensor
    own_shift: Tensor
    other_shift: Tensor

    @property
    def strides(self) -> tuple[int, ...]:
        shifts = self.own_shift.stride(0), self.other_shift.stride(0)
        return *strides_of(self.own), *strides_of(self.other), *shifts

    def only_once(self, pairs: Tensor | None) -> Tensor | None:
        """`pairs` for the dependents' side alone: one side is enough to write them."""
        return pairs if self.rows else None

    def constants(self, vectors: Vectors) -> dict[str, Any]:
        shared = self.own.shape[1] == 1
        alike = vectors.scale is None or vectors.scale.shape[0] == 1
        return {"ROWS": self.rows, "SHARED": shared, "CARRY": shared and alike}


def _sides(a: Tensor, b: Tensor, shift: Tensor, absent: Tensor) -> Iterator[_Side]:
    absent = absent.expand_as(shift)
    yield _Side(True, a, b, shift, absent)
    yield _Side(False, b, a, absent, shift)


def _absent(problem: Problem) -> Tensor:
    """(R,): 0 for words, +∞ for padding."""
    return torch.where(problem.mask, 0.0, math.inf)


def _exponent(problem: Problem) -> float:
    """By which a score is multiplied to be an exponent of 2: exp(s/λ) = 2 ^ (s · exponent)."""
    return 1 / (problem.weight * math.log(2))


def _sentences(problem: Problem) -> tuple[Tensor, Tensor]:
    return problem.packing.starts, problem.packing.lengths


def _fitting(sizes: dict[str, int], x: Tensor) -> dict[str, int]:
    return EXACT if x.dtype == torch.float32 else sizes


def _blocks(problem: Problem, sizes: dict[str, int]) -> int:
    return triton.cdiv(problem.packing.longest, sizes["M"])


def _tiles(r: int) -> int:
    """The number of tiles of components; each is written by programs of its own."""
    return triton.cdiv(r, width_of(r))


def _grid(problem: Problem, sizes: dict[str, int], tiles: int = 1) -> tuple[int]:
    return (_blocks(problem, sizes) * problem.channels * tiles * len(problem.packing.starts),)


def _constants(problem: Problem, vectors: Vectors, sizes: dict[str, int]) -> dict[str, Any]:
    common = constants_of(problem, vectors)
    r = vectors.heads.shape[-1]
    return {
        **sizes,
        **{name: common[name] for name in ("GAMMA", "K", "SCALED", "PRECISION")},
        "RADIUS": problem.gamma or 0,
        "WIDTH": width_of(r),
        "WIDE": _tiles(r) > 1,
    }


@triton.jit
def _turn(
    X, OUT, COS, SIN, STARTS, LENGTHS, blocks, channels, r, x_row, x_channel, out_row,
    BACK: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    channel = program // blocks % channels
    sentence = program // (blocks * channels)
    position = program % blocks * N + tl.arange(0, N)
    length = tl.load(LENGTHS + sentence)
    start = tl.load(STARTS + sentence).to(tl.int64)
    column, there = columns_of(0, r, WIDTH, True)
    cos, sin = load_angles(COS, SIN, position, position < length, r, WIDTH)
    x = load_rows(X + start * x_row + channel * x_channel, position, length, x_row, column, there)
    x = turn(x, cos, -sin if BACK else sin, N, WIDTH)
    store_rows(OUT + start * out_row + channel * r, position, length, out_row, column, there, x)


def _turned(problem: Problem, x: Tensor, back: bool = False) -> Tensor:
    """Vectors (R, 1, h, r) rotated by their positions; with `back`, rotated back in place."""
    if problem.angles is None:
        return x
    out = x if back else torch.empty_like(x)
    blocks, (_, _, h, r) = triton.cdiv(problem.packing.longest, _TURNED), x.shape
    _turn[(blocks * h * len(problem.packing.starts),)](
        *(x, out, *problem.angles, *_sentences(problem), blocks, h, r),
        *(x.stride(0), x.stride(2), out.stride(0)),
        BACK=back,
        N=_TURNED,
        WIDTH=max(32, triton.next_power_of_2(r)),
    )
    return out
