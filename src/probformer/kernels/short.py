"""Short sentences: a program has one of them, in one channel, whole.

All pairs of all buckets are cheap then, as tensor cores do them. Each kernel reads the vectors
twice, once for the scores and once for the contexts; the second time they come from a cache.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from probformer.kernels.launching import constants_of, inputs_of, sizes_of
from probformer.kernels.problem import Contexts, Gradients, Problem, Vectors
from probformer.kernels.tiles import (
    bucket_of,
    columns_of,
    dropout_factor,
    dropout_key,
    load,
    load_angles,
    store,
    turn,
)

LONGEST = 64
"""Rows of a sentence that a program can hold."""


@triton.jit
def _words_of(STARTS, LENGTHS, MASK, sentence, N: tl.constexpr):
    """Where the sentence starts, positions in it, and which of them hold words."""
    start = tl.load(STARTS + sentence).to(tl.int64)
    position = tl.arange(0, N)
    inside = position < tl.load(LENGTHS + sentence)
    return start, position, inside & (tl.load(MASK + start + position, mask=inside, other=0) != 0)


@triton.jit
def _turned(x, cos, sin, N: tl.constexpr, WIDTH: tl.constexpr, ROTARY: tl.constexpr):
    if ROTARY:
        return turn(x, cos, sin, N, WIDTH).to(x.dtype)
    else:
        return x


@triton.jit
def _scale_of(SCALE, bucket, channel, channels, r, column, there, SCALED: tl.constexpr):
    """D of a bucket and channel, one row; 1 for potentials without it."""
    if SCALED:
        place = (bucket * channels + channel) * r + column
        return tl.load(SCALE + place, mask=there, other=0.0)[None, :].to(tl.float32)
    else:
        return tl.full((1, 1), 1.0, tl.float32)


@triton.jit
def _forward(
    A, B, SCALE, COS, SIN, REST, MASK, STARTS, LENGTHS, SEED, TO_DEPENDENTS, TO_HEADS, NORMALISER,
    channels, r,
    a_row, a_bucket, a_channel, b_row, b_bucket, b_channel,
    out_a_row, out_a_bucket, out_b_row, out_b_bucket,
    inverse_weight, rate,
    GAMMA: tl.constexpr, K: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr,
    A_SHARED: tl.constexpr, B_SHARED: tl.constexpr, SCALED: tl.constexpr, ROTARY: tl.constexpr,
    HAS_REST: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Scores, softmax, dropout and both contexts.

    What is read of A and B may be shared by channels (a stride of zero); what is written is not.
    """
    channel = tl.program_id(0) % channels
    sentence = tl.program_id(0) // channels
    start, position, word = _words_of(STARTS, LENGTHS, MASK, sentence, N)
    dtype = A.dtype.element_ty
    A += start * a_row + channel * a_channel
    B += start * b_row + channel * b_channel
    TO_DEPENDENTS += start * out_a_row + channel * r
    TO_HEADS += start * out_b_row + channel * r
    cos, sin = 0.0, 0.0
    if ROTARY:
        cos, sin = load_angles(COS, SIN, position, word, r, WIDTH)
    bucket = bucket_of(position, position, GAMMA)

    score = tl.zeros((N, N), tl.float32)
    for k in range(K):
        part = tl.zeros((N, N), tl.float32)
        for first in range(0, r, WIDTH):
            column, there = columns_of(first, r, WIDTH, ROTARY)
            valid = word[:, None] & there[None, :]
            d = _scale_of(SCALE, k, channel, channels, r, column, there, SCALED)
            a = load(A + k * a_bucket, position[:, None] * a_row, column, valid)
            b = load(B + k * b_bucket, position[:, None] * b_row, column, valid)
            a = _turned((a * d).to(dtype) if SCALED else a, cos, sin, N, WIDTH, ROTARY)
            b = _turned(b, cos, sin, N, WIDTH, ROTARY)
            part = tl.dot(a, tl.trans(b), part, input_precision=PRECISION)
        score = tl.where(bucket == k, part, score)

    allowed = word[:, None] & word[None, :] & (position[:, None] != position[None, :])
    score = tl.where(allowed, score * inverse_weight, float("-inf"))
    largest = tl.max(score, 1)
    rest = tl.full((N,), float("-inf"), tl.float32)
    if HAS_REST:
        place = (start + position) * channels + channel
        rest = tl.load(REST + place, mask=word, other=float("-inf"))
        largest = tl.maximum(largest, rest)
    largest = tl.where(largest == float("-inf"), 0.0, largest)
    p = tl.exp(score - largest[:, None])
    total = tl.sum(p, 1) + tl.exp(rest - largest)
    # Nothing to choose from: with +inf, all probabilities come out as zero in the backward pass.
    nothing = total == 0
    total = tl.where(nothing, 1.0, total)
    normaliser = tl.where(nothing, float("inf"), largest + tl.log(total))
    p = p / total[:, None]
    place = (start + position) * channels + channel
    inside = position < tl.load(LENGTHS + sentence)
    tl.store(NORMALISER + place, normaliser, mask=inside)
    if DROPOUT:
        key = dropout_key(SEED, sentence, channel, channels)
        p = p * dropout_factor(key, position, position, rate)

    for first in range(0, r, WIDTH):
        column, there = columns_of(first, r, WIDTH, ROTARY)
        valid, held = word[:, None] & there[None, :], inside[:, None] & there[None, :]
        all_dependents = tl.zeros((N, WIDTH), tl.float32)
        all_heads = tl.zeros((N, WIDTH), tl.float32)
        for k in range(K):
            d = _scale_of(SCALE, k, channel, channels, r, column, there, SCALED)
            a = load(A + k * a_bucket, position[:, None] * a_row, column, valid)
            b = load(B + k * b_bucket, position[:, None] * b_row, column, valid)
            a = _turned((a * d).to(dtype) if SCALED else a, cos, sin, N, WIDTH, ROTARY)
            b = _turned(b, cos, sin, N, WIDTH, ROTARY)
            p_k = tl.where(bucket == k, p, 0.0).to(dtype)
            to_dependents = tl.dot(p_k, b, input_precision=PRECISION) * d
            to_heads = tl.dot(tl.trans(p_k), a, input_precision=PRECISION)
            if A_SHARED:
                all_dependents += to_dependents
            else:
                places = position[:, None] * out_a_row
                store(TO_DEPENDENTS + k * out_a_bucket, places, column, held, to_dependents)
            if B_SHARED:
                all_heads += to_heads
            else:
                places = position[:, None] * out_b_row
                store(TO_HEADS + k * out_b_bucket, places, column, held, to_heads)
        if A_SHARED:
            all_dependents = _turned(all_dependents, cos, -sin, N, WIDTH, ROTARY)
            store(TO_DEPENDENTS, position[:, None] * out_a_row, column, held, all_dependents)
        if B_SHARED:
            all_heads = _turned(all_heads, cos, -sin, N, WIDTH, ROTARY)
            store(TO_HEADS, position[:, None] * out_b_row, column, held, all_heads)


@triton.jit
def _backward(
    A, B, SCALE, COS, SIN, REST, MASK, STARTS, LENGTHS, SEED, NORMALISER,
    D_TO_DEPENDENTS, D_TO_HEADS, D_NORMALISER,
    DA, DB, D_SCALE, D_REST, TO_DEPENDENTS, TO_HEADS,
    channels, r,
    a_row, a_bucket, a_channel, b_row, b_bucket, b_channel,
    out_a_row, out_a_bucket, out_b_row, out_b_bucket,
    inverse_weight, rate,
    GAMMA: tl.constexpr, K: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr,
    A_SHARED: tl.constexpr, B_SHARED: tl.constexpr, SCALED: tl.constexpr, ROTARY: tl.constexpr,
    HAS_REST: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of everything that `_forward` reads, and once more the contexts it wrote.

    The scores, and the gradient of what P becomes, are both sums over buckets of products that
    need no P: one pass gives both.
    """
    channel = tl.program_id(0) % channels
    sentence = tl.program_id(0) // channels
    start, position, word = _words_of(STARTS, LENGTHS, MASK, sentence, N)
    inside = position < tl.load(LENGTHS + sentence)
    dtype = A.dtype.element_ty
    A += start * a_row + channel * a_channel
    B += start * b_row + channel * b_channel
    D_TO_DEPENDENTS += start * a_row + channel * a_channel
    D_TO_HEADS += start * b_row + channel * b_channel
    DA += start * out_a_row + channel * r
    DB += start * out_b_row + channel * r
    TO_DEPENDENTS += start * out_a_row + channel * r
    TO_HEADS += start * out_b_row + channel * r
    cos, sin = 0.0, 0.0
    if ROTARY:
        cos, sin = load_angles(COS, SIN, position, word, r, WIDTH)
    bucket = bucket_of(position, position, GAMMA)

    score = tl.zeros((N, N), tl.float32)
    d_p = tl.zeros((N, N), tl.float32)
    for k in range(K):
        part = tl.zeros((N, N), tl.float32)
        d_part = tl.zeros((N, N), tl.float32)
        for first in range(0, r, WIDTH):
            column, there = columns_of(first, r, WIDTH, ROTARY)
            valid = word[:, None] & there[None, :]
            d = _scale_of(SCALE, k, channel, channels, r, column, there, SCALED)
            a = load(A + k * a_bucket, position[:, None] * a_row, column, valid)
            b = load(B + k * b_bucket, position[:, None] * b_row, column, valid)
            y = load(D_TO_DEPENDENTS + k * a_bucket, position[:, None] * a_row, column, valid)
            z = load(D_TO_HEADS + k * b_bucket, position[:, None] * b_row, column, valid)
            a = _turned((a * d).to(dtype) if SCALED else a, cos, sin, N, WIDTH, ROTARY)
            b = _turned(b, cos, sin, N, WIDTH, ROTARY)
            y = _turned((y * d).to(dtype) if SCALED else y, cos, sin, N, WIDTH, ROTARY)
            z = _turned(z, cos, sin, N, WIDTH, ROTARY)
            part = tl.dot(a, tl.trans(b), part, input_precision=PRECISION)
            d_part = tl.dot(y, tl.trans(b), d_part, input_precision=PRECISION)
            d_part = tl.dot(a, tl.trans(z), d_part, input_precision=PRECISION)
        score = tl.where(bucket == k, part, score)
        d_p = tl.where(bucket == k, d_part, d_p)

    place = (start + position) * channels + channel
    normaliser = tl.load(NORMALISER + place, mask=inside, other=float("inf"))
    allowed = word[:, None] & word[None, :] & (position[:, None] != position[None, :])
    score = tl.where(allowed, score * inverse_weight, float("-inf"))
    p = tl.exp(score - normaliser[:, None])
    dropped = p
    if DROPOUT:
        key = dropout_key(SEED, sentence, channel, channels)
        factor = dropout_factor(key, position, position, rate)
        dropped = p * factor
        d_p = d_p * factor
    d_normaliser = -tl.sum(p * d_p, 1)
    if HAS_REST:
        d_normaliser += tl.load(D_NORMALISER + place, mask=word, other=0.0)
        rest = tl.load(REST + place, mask=word, other=float("-inf"))
        tl.store(D_REST + place, tl.exp(rest - normaliser) * d_normaliser, mask=inside)
    d_score = p * (d_p + d_normaliser[:, None]) * inverse_weight

    for first in range(0, r, WIDTH):
        column, there = columns_of(first, r, WIDTH, ROTARY)
        valid, held = word[:, None] & there[None, :], inside[:, None] & there[None, :]
        all_da = tl.zeros((N, WIDTH), tl.float32)
        all_db = tl.zeros((N, WIDTH), tl.float32)
        all_dependents = tl.zeros((N, WIDTH), tl.float32)
        all_heads = tl.zeros((N, WIDTH), tl.float32)
        for k in range(K):
            d = _scale_of(SCALE, k, channel, channels, r, column, there, SCALED)
            a_0 = load(A + k * a_bucket, position[:, None] * a_row, column, valid)
            b = load(B + k * b_bucket, position[:, None] * b_row, column, valid)
            y_0 = load(D_TO_DEPENDENTS + k * a_bucket, position[:, None] * a_row, column, valid)
            z = load(D_TO_HEADS + k * b_bucket, position[:, None] * b_row, column, valid)
            a = _turned((a_0 * d).to(dtype) if SCALED else a_0, cos, sin, N, WIDTH, ROTARY)
            b = _turned(b, cos, sin, N, WIDTH, ROTARY)
            y = _turned((y_0 * d).to(dtype) if SCALED else y_0, cos, sin, N, WIDTH, ROTARY)
            z = _turned(z, cos, sin, N, WIDTH, ROTARY)
            p_k = tl.where(bucket == k, dropped, 0.0).to(dtype)
            s_k = tl.where(bucket == k, d_score, 0.0).to(dtype)
            da = tl.dot(s_k, b, input_precision=PRECISION)
            da = tl.dot(p_k, z, da, input_precision=PRECISION)
            db = tl.dot(tl.trans(s_k), a, input_precision=PRECISION)
            db = tl.dot(tl.trans(p_k), y, db, input_precision=PRECISION)
            to_dependents = tl.dot(p_k, b, input_precision=PRECISION)
            to_heads = tl.dot(tl.trans(p_k), a, input_precision=PRECISION)
            if SCALED:
                of_scale = tl.sum(a_0.to(tl.float32) * da + y_0.to(tl.float32) * to_dependents, 0)
                row = (sentence * K + k) * channels + channel
                tl.store(D_SCALE + row * r + column, of_scale, mask=there)
                da, to_dependents = da * d, to_dependents * d
            if A_SHARED:
                all_da += da
                all_dependents += to_dependents
            else:
                places = position[:, None] * out_a_row
                store(DA + k * out_a_bucket, places, column, held, da)
                store(TO_DEPENDENTS + k * out_a_bucket, places, column, held, to_dependents)
            if B_SHARED:
                all_db += db
                all_heads += to_heads
            else:
                places = position[:, None] * out_b_row
                store(DB + k * out_b_bucket, places, column, held, db)
                store(TO_HEADS + k * out_b_bucket, places, column, held, to_heads)
        if A_SHARED:
            places = position[:, None] * out_a_row
            all_da = _turned(all_da, cos, -sin, N, WIDTH, ROTARY)
            all_dependents = _turned(all_dependents, cos, -sin, N, WIDTH, ROTARY)
            store(DA, places, column, held, all_da)
            store(TO_DEPENDENTS, places, column, held, all_dependents)
        if B_SHARED:
            places = position[:, None] * out_b_row
            all_db = _turned(all_db, cos, -sin, N, WIDTH, ROTARY)
            all_heads = _turned(all_heads, cos, -sin, N, WIDTH, ROTARY)
            store(DB, places, column, held, all_db)
            store(TO_HEADS, places, column, held, all_heads)


def forward(problem: Problem, vectors: Vectors) -> Contexts:
    a, b, h = vectors.dependents, vectors.heads, problem.channels
    y = a.new_empty(len(a), a.shape[1], h, a.shape[-1])
    z = b.new_empty(len(b), b.shape[1], h, b.shape[-1])
    normaliser = a.new_empty(len(a), h, dtype=torch.float32)
    _forward[_grid(problem)](
        *inputs_of(problem, vectors),
        *(y, z, normaliser),
        *sizes_of(problem, vectors),
        **_constants(problem, vectors),
    )
    return Contexts(y, z, normaliser)


def backward(
    problem: Problem, vectors: Vectors, normaliser: Tensor, gradients: Contexts
) -> Gradients:
    """`gradients` are those by the contexts, shaped as A and B are."""
    a, b, h = vectors.dependents, vectors.heads, problem.channels
    of_a = a.new_empty(2, len(a), a.shape[1], h, a.shape[-1])
    of_b = b.new_empty(2, len(b), b.shape[1], h, b.shape[-1])
    d_scale = d_rest = None
    if vectors.scale is not None:
        sentences = len(problem.layout.starts)
        d_scale = a.new_empty(sentences, *vectors.scale.shape, dtype=torch.float32)
    if vectors.rest is not None:
        d_rest = torch.empty_like(vectors.rest)
    _backward[_grid(problem)](
        *inputs_of(problem, vectors),
        normaliser,
        *(gradients.to_dependents, gradients.to_heads, gradients.normaliser),
        *(of_a[0], of_b[0], d_scale, d_rest, of_a[1], of_b[1]),
        *sizes_of(problem, vectors),
        **_constants(problem, vectors),
    )
    return Gradients(of_a, of_b, None if d_scale is None else d_scale.sum(0), d_rest)


def _grid(problem: Problem) -> tuple[int]:
    return (len(problem.layout.starts) * problem.channels,)


def _constants(problem: Problem, vectors: Vectors) -> dict[str, Any]:
    n = max(16, triton.next_power_of_2(problem.layout.longest))
    return {"N": n, "num_warps": 4, **constants_of(problem, vectors)}
