"""A transformer's attention in packed sentences, each whole in one program.

Kernels for long sentences spend most of their products on the padding of short ones. A program that
holds a whole sentence needs no results of the forward pass to compute gradients.
"""

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

from probformer.kernels.crf.tiles import dropout_factors, load_rows, store_rows
from probformer.kernels.launching import precision_of_products, width_of
from probformer.packing import Packing

_LONGEST = 128
"""The largest number of words that a program can hold in half precision."""


def most_words(dtype: torch.dtype) -> int:
    """The longest sentence that a program can hold: half as long in float32."""
    return _LONGEST * 2 // dtype.itemsize


def attend(projected: Tensor, packing: Packing, rate: float, seed: Tensor | None) -> Tensor:
    """Contexts (R, heads, w) from queries, keys and values (R, 3, heads, w) of a row of words.

    With two parts instead of three, keys are the values. Rows after the last sentence are zero.
    """
    return _Attention.apply(projected.contiguous(), packing, rate, seed)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, packing: Packing, rate: float, seed: Tensor | None
    ) -> Tensor:
        context = projected.new_empty(len(projected), *projected.shape[2:])
        _run(_forward, projected, (projected, context), packing, rate, seed)
        ctx.save_for_backward(projected, seed)
        ctx.packing, ctx.rate = packing, rate
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_context: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        projected, seed = ctx.saved_tensors
        found = torch.empty_like(projected)
        tensors = projected, d_context.contiguous(), found
        _run(_backward, projected, tensors, ctx.packing, ctx.rate, seed)
        return found, None, None, None


def _run(
    kernel: Any,
    projected: Tensor,
    tensors: tuple[Tensor, ...],
    packing: Packing,
    rate: float,
    seed: Tensor | None,
) -> None:
    """Launches blocks of up to 32 words, and larger ones for the sentences that need them.

    Large blocks load fewer columns at a time, to fit into shared memory.
    """
    rows, parts, heads, width = projected.shape
    n = max(16, triton.next_power_of_2(packing.longest))
    for shortest, size in [(0, n)] if n <= 32 else [(0, 32), (32, n)]:
        kernel[((len(packing.starts) + 1) * heads,)](
            *tensors,
            *(packing.starts, packing.lengths, seed),
            *(rows, len(packing.starts), heads, width, width**-0.5, rate, shortest),
            N=size,
            WIDTH=width_of(width, min(128, 8192 // (size * projected.itemsize))),
            PARTS=parts,
            DROPOUT=rate > 0,
            PRECISION=precision_of_products(),
            num_warps=8 if size > 64 else 4,
            num_stages=2 if size * projected.itemsize <= 128 else 1,
        )


@triton.jit
def _sentence_of(STARTS, LENGTHS, rows, sentences, heads):
    """First row and length of a program's sentence, its head, and whether it is a sentence.

    The last programs, one per head, have the rows after the last sentence instead.
    """
    number, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    is_sentence = number < sentences
    last = tl.minimum(number, sentences - 1)
    start, length = tl.load(STARTS + last), tl.load(LENGTHS + last)
    start = tl.where(is_sentence, start, start + length).to(tl.int64)
    return start, tl.where(is_sentence, length, rows - start).to(tl.int32), head, is_sentence


@triton.jit
def _clear(POINTER, length, row, width, shortest, N: tl.constexpr, WIDTH: tl.constexpr):
    """Write zeros; only the launch for the shortest sentences does so."""
    for first in range(0, tl.where(shortest == 0, length, 0), N):
        position = first + tl.arange(0, N)
        for start in range(0, width, WIDTH):
            column = start + tl.arange(0, WIDTH)
            zeros = tl.zeros((N, WIDTH), tl.float32)
            store_rows(POINTER, position, length, row, column, column < width, zeros)


@triton.jit
def _attention(scores, position, length, scale):
    scores = tl.where((position < length)[None, :], scores * scale, float("-inf"))
    p = tl.exp(scores - tl.max(scores, 1)[:, None])
    return p / tl.sum(p, 1)[:, None]


@triton.jit
def _forward(
    X, CONTEXT, STARTS, LENGTHS, SEED, rows, sentences, heads, width, scale, rate, shortest,
    N: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr, DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    start, length, head, is_sentence = _sentence_of(STARTS, LENGTHS, rows, sentences, heads)
    part = heads * width
    CONTEXT += start * part + head * width
    if not is_sentence:
        _clear(CONTEXT, length, part, width, shortest, N, WIDTH)
    elif (length > shortest) & (length <= N):
        row = PARTS * part
        X += start * row + head * width
        position = tl.arange(0, N)
        scores = tl.zeros((N, N), tl.float32)
        for first in range(0, width, WIDTH):
            column = first + tl.arange(0, WIDTH)
            q = load_rows(X, position, length, row, column, column < width)
            k = load_rows(X + part, position, length, row, column, column < width)
            scores += tl.dot(q, tl.trans(k), input_precision=PRECISION)
        p = _attention(scores, position, length, scale)
        p = p * dropout_factors(SEED, position, position, rate, DROPOUT)
        for first in range(0, width, WIDTH):
            column = first + tl.arange(0, WIDTH)
            v = load_rows(X + (PARTS - 1) * part, position, length, row, column, column < width)
            context = tl.dot(p.to(v.dtype), v, input_precision=PRECISION)
            store_rows(CONTEXT, position, length, part, column, column < width, context)


@triton.jit
def _backward(
    X, D_CONTEXT, D_X, STARTS, LENGTHS, SEED, rows, sentences, heads, width, scale, rate, shortest,
    N: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr, DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    start, length, head, is_sentence = _sentence_of(STARTS, LENGTHS, rows, sentences, heads)
    part = heads * width
    row = PARTS * part
    D_X += start * row + head * width
    if not is_sentence:
        for number in range(PARTS):
            _clear(D_X + number * part, length, row, width, shortest, N, WIDTH)
    elif (length > shortest) & (length <= N):
        X += start * row + head * width
        D_CONTEXT += start * part + head * width
        position = tl.arange(0, N)
        scores = tl.zeros((N, N), tl.float32)
        d_p = tl.zeros((N, N), tl.float32)
        for first in range(0, width, WIDTH):
            column = first + tl.arange(0, WIDTH)
            q = load_rows(X, position, length, row, column, column < width)
            k = load_rows(X + part, position, length, row, column, column < width)
            scores += tl.dot(q, tl.trans(k), input_precision=PRECISION)
            v = load_rows(X + (PARTS - 1) * part, position, length, row, column, column < width)
            d_context = load_rows(D_CONTEXT, position, length, part, column, column < width)
            d_p += tl.dot(d_context, tl.trans(v), input_precision=PRECISION)
        p = _attention(scores, position, length, scale)
        factor = dropout_factors(SEED, position, position, rate, DROPOUT)
        d_p = d_p * factor
        d_scores = p * (d_p - tl.sum(p * d_p, 1)[:, None]) * scale
        p = (p * factor).to(X.dtype.element_ty)
        d_scores = d_scores.to(X.dtype.element_ty)
        for first in range(0, width, WIDTH):
            column = first + tl.arange(0, WIDTH)
            there = column < width
            q = load_rows(X, position, length, row, column, there)
            k = load_rows(X + part, position, length, row, column, there)
            d_context = load_rows(D_CONTEXT, position, length, part, column, there)
            d_q = tl.dot(d_scores, k, input_precision=PRECISION)
            store_rows(D_X, position, length, row, column, there, d_q)
            d_k = tl.dot(tl.trans(d_scores), q, input_precision=PRECISION)
            d_v = tl.dot(tl.trans(p), d_context, input_precision=PRECISION)
            if PARTS == 2:
                d_k += d_v
            else:
                store_rows(D_X + 2 * part, position, length, row, column, there, d_v)
            store_rows(D_X + part, position, length, row, column, there, d_k)
