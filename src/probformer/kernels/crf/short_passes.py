"""Short sentences: a program computes a whole sentence in one channel.

All pairs are computed for all buckets, and those of the right bucket selected: on tensor cores that
is faster than computing only these. Vectors are loaded twice, once for the scores and once for the
contexts; the second time they come from a cache.
"""

# Type checkers of Python do not understand the kernels, which are in Triton's language.
# pyright: reportPossiblyUnboundVariable=false, reportCallIssue=false
# pyright: reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl

from probformer.kernels.crf.mixing import (
    beliefs_of,
    by_softmax,
    cells_of,
    mixed,
    remember,
    with_later,
)
from probformer.kernels.crf.tiles import (
    bucket_of,
    columns_of,
    dropout_factor,
    dropout_key,
    load_angles,
    load_rows,
    load_scale,
    scaled,
    store_rows,
    turned,
)


@triton.jit
def _words_of(STARTS, MASK, sentence, length, N: tl.constexpr):
    """Where the sentence starts, positions in it, and which of them hold words."""
    start = tl.load(STARTS + sentence).to(tl.int64)
    position = tl.arange(0, N)
    word = tl.load(MASK + start + position, mask=position < length, other=0) != 0
    return start, position, word


@triton.jit
def _tile(
    pointer, position, length, row, column, there, cos, sin,
    N: tl.constexpr, WIDTH: tl.constexpr, ROTARY: tl.constexpr,
):  # fmt: skip
    x = load_rows(pointer, position, length, row, column, there)
    return turned(x, cos, sin, N, WIDTH, ROTARY)


@triton.jit
def _keep(total, x, pointer, position, length, row, column, there, SHARED: tl.constexpr):
    """A bucket's part of the result: added to `total` where buckets share vectors, else stored."""
    if SHARED:
        return total + x
    else:
        store_rows(pointer, position, length, row, column, there, x)
        return total


@triton.jit(do_not_specialize=["longest"])
def forward(
    A, B, SCALE, COS, SIN, REST, MASK, STARTS, LENGTHS, SEED, OLD,
    TO_DEPENDENTS, TO_HEADS, NORMALISER, NEW,
    channels, r, longest,
    a_row, a_bucket, a_channel, b_row, b_bucket, b_channel,
    out_a_row, out_a_bucket, out_b_row, out_b_bucket,
    inverse_weight, rate, step, shortest,
    GAMMA: tl.constexpr, K, N: tl.constexpr, WIDTH: tl.constexpr,
    A_SHARED: tl.constexpr, B_SHARED: tl.constexpr, SCALED: tl.constexpr, ROTARY: tl.constexpr,
    HAS_REST: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Scores, softmax, step size, dropout and both contexts.

    A and B may be shared by channels (a stride of zero); the contexts are written per channel.
    """
    channel = tl.program_id(0) % channels
    sentence = tl.program_id(0) // channels
    length = tl.load(LENGTHS + sentence)
    if (length <= shortest) | (length > N):  # of another size, or missing
        return
    start, position, word = _words_of(STARTS, MASK, sentence, length, N)
    A += start * a_row + channel * a_channel
    B += start * b_row + channel * b_channel
    TO_DEPENDENTS += start * out_a_row + channel * r
    TO_HEADS += start * out_b_row + channel * r
    beliefs = beliefs_of(start, channel, channels, longest)
    if OLD is not None:
        OLD += beliefs
    if NEW is not None:
        NEW += beliefs
    dtype = A.dtype.element_ty
    cos, sin = 0.0, 0.0
    if ROTARY:
        cos, sin = load_angles(COS, SIN, position, position < length, r, WIDTH)
    bucket = bucket_of(position, position, GAMMA)

    score = tl.zeros((N, N), tl.float32)
    for first in range(0, r, WIDTH):
        column, there = columns_of(first, r, WIDTH, ROTARY)
        if A_SHARED:
            a = _tile(A, position, length, a_row, column, there, cos, sin, N, WIDTH, ROTARY)
        if B_SHARED:
            b = _tile(B, position, length, b_row, column, there, cos, sin, N, WIDTH, ROTARY)
        for k in range(K):
            if not A_SHARED:
                a = load_rows(A + k * a_bucket, position, length, a_row, column, there)
            if not B_SHARED:
                b = load_rows(B + k * b_bucket, position, length, b_row, column, there)
            d = load_scale(SCALE, k, channel, channels, r, column, there, SCALED)
            part = tl.dot(scaled(a, d, SCALED), tl.trans(b), input_precision=PRECISION)
            score += tl.where(bucket == k, part, 0.0)

    allowed = word[:, None] & word[None, :] & (position[:, None] != position[None, :])
    score = tl.where(allowed, score * inverse_weight, float("-inf"))
    largest = tl.max(score, 1)
    rest = tl.full((N,), float("-inf"), tl.float32)
    place = (start + position) * channels + channel
    if HAS_REST:
        rest = tl.load(REST + place, mask=word, other=float("-inf"))
        largest = tl.maximum(largest, rest)
    largest = tl.where(largest == float("-inf"), 0.0, largest)
    p = tl.exp(score - largest[:, None])
    total = tl.sum(p, 1) + tl.exp(rest - largest)
    # Without any allowed head: with +inf, all probabilities are zero in the backward pass, too.
    nothing = total == 0
    total = tl.where(nothing, 1.0, total)
    normaliser = tl.where(nothing, float("inf"), largest + tl.log(total))
    tl.store(NORMALISER + place, normaliser, mask=position < length)
    p = p / total[:, None]
    cells = cells_of(position[:, None], position[None, :], channels, longest)
    p = mixed(p, OLD, cells, allowed, step)
    remember(NEW, cells, allowed, p)
    if DROPOUT:
        key = dropout_key(SEED, tl.program_id(0))
        p = p * dropout_factor(key, position[:, None], position[None, :], rate)

    for first in range(0, r, WIDTH):
        column, there = columns_of(first, r, WIDTH, ROTARY)
        all_dependents = tl.zeros((N, WIDTH), tl.float32)
        all_heads = tl.zeros((N, WIDTH), tl.float32)
        if A_SHARED:
            a = _tile(A, position, length, a_row, column, there, cos, sin, N, WIDTH, ROTARY)
        if B_SHARED:
            b = _tile(B, position, length, b_row, column, there, cos, sin, N, WIDTH, ROTARY)
        for k in range(K):
            if not A_SHARED:
                a = load_rows(A + k * a_bucket, position, length, a_row, column, there)
            if not B_SHARED:
                b = load_rows(B + k * b_bucket, position, length, b_row, column, there)
            d = load_scale(SCALE, k, channel, channels, r, column, there, SCALED)
            p_k = tl.where(bucket == k, p, 0.0).to(dtype)
            to_dependents = tl.dot(p_k, b, input_precision=PRECISION) * d
            to_heads = tl.dot(tl.trans(p_k), a, input_precision=PRECISION) * d
            all_dependents = _keep(
                all_dependents, to_dependents, TO_DEPENDENTS + k * out_a_bucket,
                position, length, out_a_row, column, there, A_SHARED,
            )  # fmt: skip
            all_heads = _keep(
                all_heads, to_heads, TO_HEADS + k * out_b_bucket,
                position, length, out_b_row, column, there, B_SHARED,
            )  # fmt: skip
        if A_SHARED:
            all_dependents = turned(all_dependents, cos, -sin, N, WIDTH, ROTARY)
            store_rows(TO_DEPENDENTS, position, length, out_a_row, column, there, all_dependents)
        if B_SHARED:
            all_heads = turned(all_heads, cos, -sin, N, WIDTH, ROTARY)
            store_rows(TO_HEADS, position, length, out_b_row, column, there, all_heads)


@triton.jit(do_not_specialize=["longest"])
def backward(
    A, B, SCALE, COS, SIN, REST, MASK, STARTS, LENGTHS, SEED, OLD, NORMALISER,
    Y, Z, D_NORMALISER, D_NEW, DA, DB, D_SCALE, D_REST, D_OLD, TO_DEPENDENTS, TO_HEADS,
    channels, r, longest,
    a_row, a_bucket, a_channel, b_row, b_bucket, b_channel,
    out_a_row, out_a_bucket, out_b_row, out_b_bucket,
    inverse_weight, rate, step, shortest,
    GAMMA: tl.constexpr, K, N: tl.constexpr, WIDTH: tl.constexpr,
    A_SHARED: tl.constexpr, B_SHARED: tl.constexpr, SCALED: tl.constexpr, ROTARY: tl.constexpr,
    HAS_REST: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of all inputs of `forward`, and its contexts again.

    Y and Z are the gradients by the contexts of dependents and heads. The scores, and the gradient
    by P, are both sums over buckets of products that need no P: one loop computes both.
    """
    channel = tl.program_id(0) % channels
    sentence = tl.program_id(0) // channels
    length = tl.load(LENGTHS + sentence)
    if (length <= shortest) | (length > N):  # of another size, or missing
        return
    start, position, word = _words_of(STARTS, MASK, sentence, length, N)
    A += start * a_row + channel * a_channel
    Y += start * a_row + channel * a_channel
    B += start * b_row + channel * b_channel
    Z += start * b_row + channel * b_channel
    DA += start * out_a_row + channel * r
    TO_DEPENDENTS += start * out_a_row + channel * r
    DB += start * out_b_row + channel * r
    TO_HEADS += start * out_b_row + channel * r
    beliefs = beliefs_of(start, channel, channels, longest)
    if OLD is not None:
        OLD += beliefs
    if D_NEW is not None:
        D_NEW += beliefs
    if D_OLD is not None:
        D_OLD += beliefs
    dtype = A.dtype.element_ty
    cos, sin = 0.0, 0.0
    if ROTARY:
        cos, sin = load_angles(COS, SIN, position, position < length, r, WIDTH)
    bucket = bucket_of(position, position, GAMMA)

    score = tl.zeros((N, N), tl.float32)
    d_p = tl.zeros((N, N), tl.float32)
    for first in range(0, r, WIDTH):
        column, there = columns_of(first, r, WIDTH, ROTARY)
        if A_SHARED:
            a = _tile(A, position, length, a_row, column, there, cos, sin, N, WIDTH, ROTARY)
            y = _tile(Y, position, length, a_row, column, there, cos, sin, N, WIDTH, ROTARY)
        if B_SHARED:
            b = _tile(B, position, length, b_row, column, there, cos, sin, N, WIDTH, ROTARY)
            z = _tile(Z, position, length, b_row, column, there, cos, sin, N, WIDTH, ROTARY)
        for k in range(K):
            if not A_SHARED:
                a = load_rows(A + k * a_bucket, position, length, a_row, column, there)
                y = load_rows(Y + k * a_bucket, position, length, a_row, column, there)
            if not B_SHARED:
                b = load_rows(B + k * b_bucket, position, length, b_row, column, there)
                z = load_rows(Z + k * b_bucket, position, length, b_row, column, there)
            d = load_scale(SCALE, k, channel, channels, r, column, there, SCALED)
            a_k, y_k = scaled(a, d, SCALED), scaled(y, d, SCALED)
            part = tl.dot(a_k, tl.trans(b), input_precision=PRECISION)
            d_part = tl.dot(y_k, tl.trans(b), input_precision=PRECISION)
            d_part = tl.dot(a_k, tl.trans(z), d_part, input_precision=PRECISION)
            score += tl.where(bucket == k, part, 0.0)
            d_p += tl.where(bucket == k, d_part, 0.0)

    place = (start + position) * channels + channel
    normaliser = tl.load(NORMALISER + place, mask=position < length, other=float("inf"))
    allowed = word[:, None] & word[None, :] & (position[:, None] != position[None, :])
    score = tl.where(allowed, score * inverse_weight, float("-inf"))
    p = tl.exp(score - normaliser[:, None])
    cells = cells_of(position[:, None], position[None, :], channels, longest)
    dropped = mixed(p, OLD, cells, allowed, step)
    if DROPOUT:
        key = dropout_key(SEED, tl.program_id(0))
        factor = dropout_factor(key, position[:, None], position[None, :], rate)
        dropped = dropped * factor
        d_p = d_p * factor
    d_p = with_later(d_p, D_NEW, cells, allowed)
    d_p = by_softmax(d_p, OLD, D_OLD, cells, allowed, step)
    d_normaliser = -tl.sum(p * d_p, 1)
    if HAS_REST:
        d_normaliser += tl.load(D_NORMALISER + place, mask=word, other=0.0)
        rest = tl.load(REST + place, mask=word, other=float("-inf"))
        d_rest = tl.exp(rest - normaliser) * d_normaliser
        tl.store(D_REST + place, d_rest, mask=position < length)
    d_score = p * (d_p + d_normaliser[:, None]) * inverse_weight

    for first in range(0, r, WIDTH):
        column, there = columns_of(first, r, WIDTH, ROTARY)
        all_da = tl.zeros((N, WIDTH), tl.float32)
        all_db = tl.zeros((N, WIDTH), tl.float32)
        all_dependents = tl.zeros((N, WIDTH), tl.float32)
        all_heads = tl.zeros((N, WIDTH), tl.float32)
        if A_SHARED:
            a = _tile(A, position, length, a_row, column, there, cos, sin, N, WIDTH, ROTARY)
            y = _tile(Y, position, length, a_row, column, there, cos, sin, N, WIDTH, ROTARY)
        if B_SHARED:
            b = _tile(B, position, length, b_row, column, there, cos, sin, N, WIDTH, ROTARY)
            z = _tile(Z, position, length, b_row, column, there, cos, sin, N, WIDTH, ROTARY)
        for k in range(K):
            if not A_SHARED:
                a = load_rows(A + k * a_bucket, position, length, a_row, column, there)
                y = load_rows(Y + k * a_bucket, position, length, a_row, column, there)
            if not B_SHARED:
                b = load_rows(B + k * b_bucket, position, length, b_row, column, there)
                z = load_rows(Z + k * b_bucket, position, length, b_row, column, there)
            d = load_scale(SCALE, k, channel, channels, r, column, there, SCALED)
            p_k = tl.where(bucket == k, dropped, 0.0).to(dtype)
            s_k = tl.where(bucket == k, d_score, 0.0).to(dtype)
            to_dependents = tl.dot(p_k, b, input_precision=PRECISION)
            da = tl.dot(p_k, z, input_precision=PRECISION)
            da = tl.dot(s_k, b, da, input_precision=PRECISION)
            if SCALED:
                of_scale = tl.sum(a.to(tl.float32) * da + y.to(tl.float32) * to_dependents, 0)
                row = (sentence * K + k) * channels + channel
                tl.store(D_SCALE + row * r + column, of_scale, mask=there)
                da, to_dependents = da * d, to_dependents * d
            all_dependents = _keep(
                all_dependents, to_dependents, TO_DEPENDENTS + k * out_a_bucket,
                position, length, out_a_row, column, there, A_SHARED,
            )  # fmt: skip
            all_da = _keep(
                all_da, da, DA + k * out_a_bucket,
                position, length, out_a_row, column, there, A_SHARED,
            )  # fmt: skip
            to_heads = tl.dot(tl.trans(p_k), a, input_precision=PRECISION) * d
            db = tl.dot(tl.trans(p_k), y, input_precision=PRECISION)
            db = tl.dot(tl.trans(s_k), a, db, input_precision=PRECISION) * d
            all_heads = _keep(
                all_heads, to_heads, TO_HEADS + k * out_b_bucket,
                position, length, out_b_row, column, there, B_SHARED,
            )  # fmt: skip
            all_db = _keep(
                all_db, db, DB + k * out_b_bucket,
                position, length, out_b_row, column, there, B_SHARED,
            )  # fmt: skip
        if A_SHARED:
            all_da = turned(all_da, cos, -sin, N, WIDTH, ROTARY)
            all_dependents = turned(all_dependents, cos, -sin, N, WIDTH, ROTARY)
            store_rows(DA, position, length, out_a_row, column, there, all_da)
            store_rows(TO_DEPENDENTS, position, length, out_a_row, column, there, all_dependents)
        if B_SHARED:
            all_db = turned(all_db, cos, -sin, N, WIDTH, ROTARY)
            all_heads = turned(all_heads, cos, -sin, N, WIDTH, ROTARY)
            store_rows(DB, position, length, out_b_row, column, there, all_db)
            store_rows(TO_HEADS, position, length, out_b_row, column, there, all_heads)
