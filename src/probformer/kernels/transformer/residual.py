"""Norm(x + dropout(update + bias)) in one pass, after attention and after the feed-forward part."""

# Type checkers of Python do not understand the kernels, which are in Triton's language.
# pyright: reportPossiblyUnboundVariable=false, reportCallIssue=false
# pyright: reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from probformer.kernels.crf.tiles import dropout_factors, whole_rows

_ROWS = 4
"""Words per program."""


def add_and_normalise(
    x: Tensor,
    update: Tensor,
    bias: Tensor | None,
    norm: nn.LayerNorm,
    rate: float,
    seed: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Norm(…) (R, d) twice: in x's precision for the next sum, in `update`'s for products."""
    x, update = x.contiguous(), update.contiguous()
    return _Residual.apply(x, update, bias, norm.weight, norm.bias, norm.eps, rate, seed)


class _Residual(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        update: Tensor,
        bias: Tensor | None,
        weight: Tensor,
        shift: Tensor,
        eps: float,
        rate: float,
        seed: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        y, rounded = torch.empty_like(x), torch.empty_like(update)
        rows, d = x.shape
        ctx.sizes = rows, d, eps, rate
        ctx.constants = {
            "ROWS": _ROWS,
            "D": triton.next_power_of_2(d),
            "DROPOUT": rate > 0,
            "num_warps": 4,
        }
        _forward[(triton.cdiv(rows, _ROWS),)](
            *(x, update, bias, weight, shift, y, rounded, seed), *ctx.sizes, **ctx.constants
        )
        ctx.save_for_backward(x, update, bias, weight, seed)
        return y, rounded

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_y: Tensor, d_rounded: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, update, bias, weight, seed = ctx.saved_tensors
        rows, d, *_ = ctx.sizes
        d_x, d_update = torch.empty_like(x), torch.empty_like(update)
        blocks = triton.cdiv(rows, _ROWS)
        sums = x.new_empty(blocks, 3, d, dtype=torch.float32)
        _backward[(blocks,)](
            *(x, update, bias, weight, d_y.contiguous(), d_rounded.contiguous()),
            *(d_x, d_update, sums, seed),
            *ctx.sizes,
            **ctx.constants,
        )
        d_weight, d_shift, d_bias = sums.sum(0).to(weight.dtype)
        d_bias = None if bias is None else d_bias
        return d_x, d_update, d_bias, d_weight, d_shift, None, None, None


@triton.jit
def _load(POINTER, place, valid):
    return tl.load(POINTER + place, mask=valid, other=0.0).to(tl.float32)


@triton.jit
def _normalised(X, UPDATE, BIAS, place, column, valid, factor, d, eps):
    """(x + u − mean)/σ and 1/σ, where u is the update with its bias after dropout."""
    update = _load(UPDATE, place, valid)
    if BIAS is not None:
        update += _load(BIAS, column, column < d)[None, :]
    total = tl.where(valid, _load(X, place, valid) + update * factor, 0.0)
    centred = tl.where(valid, total - (tl.sum(total, 1) / d)[:, None], 0.0)
    inverse = 1 / tl.sqrt(tl.sum(centred * centred, 1) / d + eps)
    return centred * inverse[:, None], inverse


@triton.jit
def _forward(
    X, UPDATE, BIAS, WEIGHT, SHIFT, Y, ROUNDED, SEED, rows, d, eps, rate,
    ROWS: tl.constexpr, D: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    row, column, place, valid = whole_rows(rows, d, ROWS, D)
    factor = dropout_factors(SEED, row, column, rate, DROPOUT)
    normalised, _ = _normalised(X, UPDATE, BIAS, place, column, valid, factor, d, eps)
    weight, shift = _load(WEIGHT, column, column < d), _load(SHIFT, column, column < d)
    y = normalised * weight[None, :] + shift[None, :]
    tl.store(Y + place, y.to(Y.dtype.element_ty), mask=valid)
    tl.store(ROUNDED + place, y.to(ROUNDED.dtype.element_ty), mask=valid)


@triton.jit
def _backward(
    X, UPDATE, BIAS, WEIGHT, D_Y, D_ROUNDED, D_X, D_UPDATE, SUMS, SEED, rows, d, eps, rate,
    ROWS: tl.constexpr, D: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    row, column, place, valid = whole_rows(rows, d, ROWS, D)
    factor = dropout_factors(SEED, row, column, rate, DROPOUT)
    normalised, inverse = _normalised(X, UPDATE, BIAS, place, column, valid, factor, d, eps)
    d_y = _load(D_Y, place, valid) + _load(D_ROUNDED, place, valid)
    d_normalised = d_y * _load(WEIGHT, column, column < d)[None, :]
    mean = tl.sum(d_normalised, 1) / d
    along = tl.sum(d_normalised * normalised, 1) / d
    d_total = (d_normalised - mean[:, None] - normalised * along[:, None]) * inverse[:, None]
    tl.store(D_X + place, d_total.to(D_X.dtype.element_ty), mask=valid)
    d_update = tl.where(valid, d_total * factor, 0.0)
    tl.store(D_UPDATE + place, d_update.to(D_UPDATE.dtype.element_ty), mask=valid)
    SUMS += tl.program_id(0) * 3 * d + column
    tl.store(SUMS, tl.sum(d_y * normalised, 0), mask=column < d)
    tl.store(SUMS + d, tl.sum(d_y, 0), mask=column < d)
    tl.store(SUMS + 2 * d, tl.sum(d_update, 0), mask=column < d)
