"""The update of the labels in one pass: Q = softmax(dropout((S + G)/λ)), zero on padding."""

# Type checkers of Python do not understand the kernels, which are in Triton's language.
# pyright: reportPossiblyUnboundVariable=false, reportCallIssue=false
# pyright: reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from probformer.kernels.crf.tiles import dropout_factors, whole_rows

_ROWS = 4
"""Words per program."""


def updated_labels(
    unary: Tensor,
    message: Tensor,
    mask: Tensor,
    weight: float,
    rate: float,
    seed: Tensor | None,
) -> Tensor:
    """Q (R, d) for the next messages, in G's precision, from S (R, d), G (R, d) and mask (R,)."""
    unary, message, mask = unary.contiguous(), message.contiguous(), mask.contiguous()
    return _UpdatedLabels.apply(unary, message, mask, weight, rate, seed)


class _UpdatedLabels(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        unary: Tensor,
        message: Tensor,
        mask: Tensor,
        weight: float,
        rate: float,
        seed: Tensor | None,
    ) -> Tensor:
        q = torch.empty_like(message)
        _run(_forward, q, (unary, message, q, mask.view(torch.uint8)), weight, rate, seed)
        ctx.save_for_backward(q, seed)
        ctx.weight, ctx.rate, ctx.of_unary = weight, rate, unary.dtype
        return q

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dq: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        q, seed = ctx.saved_tensors
        d_message, d_unary = torch.empty_like(q), torch.empty_like(q, dtype=ctx.of_unary)
        tensors = (q, dq.contiguous(), d_message, d_unary)
        _run(_backward, q, tensors, ctx.weight, ctx.rate, seed)
        return d_unary, d_message, None, None, None, None


def _run(
    kernel: Any,
    q: Tensor,
    tensors: tuple[Tensor, ...],
    weight: float,
    rate: float,
    seed: Tensor | None,
) -> None:
    rows, d = q.shape
    kernel[(triton.cdiv(rows, _ROWS),)](
        *tensors,
        *(seed, rows, d, 1 / weight, rate),
        ROWS=_ROWS,
        D=triton.next_power_of_2(d),
        DROPOUT=rate > 0,
        num_warps=4,
    )


@triton.jit
def _forward(
    UNARY, MESSAGE, Q, MASK, SEED, rows, d, inverse_weight, rate,
    ROWS: tl.constexpr, D: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    row, label, place, valid = whole_rows(rows, d, ROWS, D)
    message = tl.load(MESSAGE + place, mask=valid, other=0.0).to(tl.float32)
    score = (tl.load(UNARY + place, mask=valid, other=0.0) + message) * inverse_weight
    score = score * dropout_factors(SEED, row, label, rate, DROPOUT)
    score = tl.where(valid, score, float("-inf"))
    largest = tl.where(row < rows, tl.max(score, 1), 0.0)
    q = tl.exp(score - largest[:, None])
    word = tl.load(MASK + row, mask=row < rows, other=0) != 0
    total = tl.where(word, tl.sum(q, 1), float("inf"))
    tl.store(Q + place, (q / total[:, None]).to(Q.dtype.element_ty), mask=valid)


@triton.jit
def _backward(
    Q, DQ, D_MESSAGE, D_UNARY, SEED, rows, d, inverse_weight, rate,
    ROWS: tl.constexpr, D: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    row, label, place, valid = whole_rows(rows, d, ROWS, D)
    q = tl.load(Q + place, mask=valid, other=0.0).to(tl.float32)
    dq = tl.load(DQ + place, mask=valid, other=0.0).to(tl.float32)
    d_score = q * (dq - tl.sum(q * dq, 1)[:, None])
    d_score = d_score * inverse_weight * dropout_factors(SEED, row, label, rate, DROPOUT)
    tl.store(D_MESSAGE + place, d_score.to(D_MESSAGE.dtype.element_ty), mask=valid)
    tl.store(D_UNARY + place, d_score.to(D_UNARY.dtype.element_ty), mask=valid)
