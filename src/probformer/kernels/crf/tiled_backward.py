"""The backward passes over tiles of pairs.

Y and Z are the gradients by the contexts, of dependents and of heads. With dP = Y·Bᵀ + A·Zᵀ, the
softmax of a dependent needs Σ_j P dP first; then dependents and heads are treated alike. With step
sizes below one, dP is α times the gradient by Q_H, part of which comes through the next Q_H.
"""

# Type checkers of Python do not understand the kernels, which are in Triton's language.
# pyright: reportCallIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from probformer.kernels.crf.mixing import beliefs_of, by_softmax, mixed, with_later
from probformer.kernels.crf.pairs import (
    VARYING,
    cells_between,
    dropped,
    far_bucket,
    far_cells,
    far_range,
    far_score,
    far_tile,
    load_of_passing,
    load_passing,
    near_others,
    near_product,
    product,
    program_of,
)
from probformer.kernels.crf.tiles import dropout_key, load_rows, load_scale, scaled, store_rows


@triton.jit(do_not_specialize=VARYING)
def correct(
    A, B, Y, Z, SCALE, SHIFT, ABSENT, STARTS, LENGTHS, SEED, OLD, D_NEW, REST, D_NORMALISER,
    CORRECTED, D_REST,
    blocks, channels, r, rows, longest,
    a_row, a_bucket, a_channel, b_row, b_bucket, b_channel,
    exponent, rate, step,
    GAMMA: tl.constexpr, RADIUS: tl.constexpr, K: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr, WIDE: tl.constexpr,
    SCALED: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradient by each row's normaliser: −Σ_j P dP.

    With a REST (heads that are not words), the gradient of the returned normaliser is added, and
    that of REST is stored.
    """
    sentence, channel, _, origin, start, length = program_of(
        STARTS, LENGTHS, blocks, channels, 1, M
    )
    if origin >= length:
        return
    own = origin + tl.arange(0, M)
    column = tl.arange(0, WIDTH)
    there = column < r
    A += start * a_row + channel * a_channel
    Y += start * a_row + channel * a_channel
    B += start * b_row + channel * b_channel
    Z += start * b_row + channel * b_channel
    ABSENT += start
    beliefs = beliefs_of(start, channel, channels, longest)
    if D_NEW is not None:
        D_NEW += beliefs
    place = channel * rows + start + own
    own_shift = tl.load(SHIFT + place, mask=own < length, other=float("inf"))
    key = 0, 0
    if DROPOUT:
        key = dropout_key(SEED, sentence * channels + channel)

    delta = tl.zeros((M,), tl.float32)
    for side in tl.static_range(2):
        bucket = far_bucket(side == 0, True, K)
        d = load_scale(SCALE, bucket, channel, channels, r, column, there, SCALED)
        a_at, y_at = A + bucket * a_bucket, Y + bucket * a_bucket
        b_at, z_at = B + bucket * b_bucket, Z + bucket * b_bucket
        a = scaled(load_rows(a_at, own, length, a_row, column, there), d, SCALED)
        y = scaled(load_rows(y_at, own, length, a_row, column, there), d, SCALED)
        for edge in tl.static_range(2):
            begin, end, limit, skip = far_range(origin, length, side == 0, edge == 1, RADIUS, M, N)
            for at in range(begin, end, N):
                first = far_tile(at, limit, skip, edge == 1)
                other = first + tl.arange(0, N)
                b = load_passing(b_at, first, length, b_row, column, there, N, edge == 1)
                z = load_passing(z_at, first, length, b_row, column, there, N, edge == 1)
                absent = load_of_passing(ABSENT, other, length, float("inf"), edge == 1)
                score = product(
                    tl.zeros((M, N), tl.float32), a, b, a_at, b_at, own, other, length,
                    a_row, b_row, SCALE, bucket, channel, channels, r,
                    WIDTH, WIDE, SCALED, PRECISION,
                )  # fmt: skip
                d_p = product(
                    tl.zeros((M, N), tl.float32), y, b, y_at, b_at, own, other, length,
                    a_row, b_row, SCALE, bucket, channel, channels, r,
                    WIDTH, WIDE, SCALED, PRECISION,
                )  # fmt: skip
                d_p = product(
                    d_p, a, z, a_at, z_at, own, other, length,
                    a_row, b_row, SCALE, bucket, channel, channels, r,
                    WIDTH, WIDE, SCALED, PRECISION,
                )  # fmt: skip
                shift = own_shift[:, None] + absent[None, :]
                p = tl.exp2(
                    far_score(score, own, other, shift, exponent, side == 0, edge == 1, RADIUS)
                )
                d_p *= dropped(key, own[:, None], other[None, :], rate, True, DROPOUT)
                cells, pair = far_cells(
                    own, other, length, channels, longest, side == 0, RADIUS, True
                )
                d_p = with_later(d_p, D_NEW, cells, pair)
                delta += tl.sum(p * d_p, 1)

    for k in range(1, K - 1):
        other, met = near_others(k, own, length, GAMMA, True)
        a_at, y_at = A + k * a_bucket, Y + k * a_bucket
        b_at, z_at = B + k * b_bucket, Z + k * b_bucket
        score = near_product(
            tl.zeros((M,), tl.float32), a_at, b_at, own, other, length, a_row, b_row,
            SCALE, k, channel, channels, r, WIDTH, SCALED,
        )  # fmt: skip
        d_p = near_product(
            tl.zeros((M,), tl.float32), y_at, b_at, own, other, length, a_row, b_row,
            SCALE, k, channel, channels, r, WIDTH, SCALED,
        )  # fmt: skip
        d_p = near_product(
            d_p, a_at, z_at, own, other, length, a_row, b_row,
            SCALE, k, channel, channels, r, WIDTH, SCALED,
        )  # fmt: skip
        shift = own_shift + tl.load(ABSENT + other, mask=met, other=float("inf"))
        d_p *= dropped(key, own, other, rate, True, DROPOUT)
        cells = cells_between(own, other, channels, longest, True)
        d_p = with_later(d_p, D_NEW, cells, met)
        delta += tl.exp2(score * exponent - shift) * d_p
    if OLD is not None:
        delta *= step
    by_normaliser = -delta
    if REST is not None:
        at = (start + own) * channels + channel
        word = tl.load(ABSENT + own, mask=own < length, other=float("inf")) == 0
        by_normaliser += tl.load(D_NORMALISER + at, mask=word, other=0.0)
        by_normaliser = tl.where(word, by_normaliser, 0.0)
        rest = tl.load(REST + at, mask=word, other=float("-inf")) * 1.4426950408889634
        by_rest = tl.where(word, tl.exp2(rest - own_shift), 0.0) * by_normaliser
        tl.store(D_REST + at, by_rest, mask=own < length)
    tl.store(CORRECTED + place, by_normaliser, mask=own < length)


@triton.jit
def _store_of_scale(D_SCALE, gradient, heard, A, Y, own, length, row, column, there):
    """The part of own words in the gradient by a bucket's D; nothing is multiplied by D yet."""
    a = load_rows(A, own, length, row, column, there).to(tl.float32)
    y = load_rows(Y, own, length, row, column, there).to(tl.float32)
    tl.store(D_SCALE + column, tl.sum(a * gradient + y * heard, 0), mask=there)


@triton.jit(do_not_specialize=VARYING)
def gradients(
    OWN, OTHER, D_OWN, D_OTHER, SCALE, OWN_SHIFT, OTHER_SHIFT, D_NORMALISER,
    STARTS, LENGTHS, SEED, OLD, D_NEW, GRADIENT, CONTEXT, D_SCALE, D_OLD,
    blocks, channels, tiles, r, rows, longest,
    own_row, own_bucket, own_channel, other_row, other_bucket, other_channel,
    own_shift_channel, other_shift_channel, out_row, out_bucket,
    exponent, inverse_weight, rate, step,
    ROWS: tl.constexpr, GAMMA: tl.constexpr, RADIUS: tl.constexpr, K: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr, WIDE: tl.constexpr,
    SHARED: tl.constexpr, CARRY: tl.constexpr, SCALED: tl.constexpr,
    DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradient by the vectors of own words, and their contexts again.

    D_OWN and D_OTHER are the gradients by the contexts. See `contexts` for the rest.
    """
    sentence, channel, tile, origin, start, length = program_of(
        STARTS, LENGTHS, blocks, channels, tiles, M
    )
    if origin >= length:
        return
    own = origin + tl.arange(0, M)
    column = tile * WIDTH + tl.arange(0, WIDTH)
    there = column < r
    OWN += start * own_row + channel * own_channel
    D_OWN += start * own_row + channel * own_channel
    OTHER += start * other_row + channel * other_channel
    D_OTHER += start * other_row + channel * other_channel
    GRADIENT += start * out_row + channel * r
    CONTEXT += start * out_row + channel * r
    beliefs = beliefs_of(start, channel, channels, longest)
    if OLD is not None:
        OLD += beliefs
    if D_NEW is not None:
        D_NEW += beliefs
    if D_OLD is not None:
        D_OLD += beliefs
    OWN_SHIFT += start + channel * own_shift_channel
    OTHER_SHIFT += start + channel * other_shift_channel
    D_NORMALISER += start + channel * rows
    own_shift = tl.load(OWN_SHIFT + own, mask=own < length, other=float("inf"))
    d_normaliser = tl.load(D_NORMALISER + own, mask=own < length, other=0.0)
    # All tiles of components compute the same gradient by the old Q_H: the first writes it.
    writes = own < tl.where(tile == 0, length, 0)
    if SCALED:
        D_SCALE += ((sentence * blocks + origin // M) * K * channels + channel) * r
    key = 0, 0
    if DROPOUT:
        key = dropout_key(SEED, sentence * channels + channel)

    all_gradients = tl.zeros((M, WIDTH), tl.float32)
    all_heard = tl.zeros((M, WIDTH), tl.float32)
    gradient = tl.zeros((M, WIDTH), tl.float32)
    heard = tl.zeros((M, WIDTH), tl.float32)
    for side in tl.static_range(2):
        bucket = far_bucket(side == 0, ROWS, K)
        d = load_scale(SCALE, bucket, channel, channels, r, column, there, SCALED)
        x_at, g_at = OWN + bucket * own_bucket, D_OWN + bucket * own_bucket
        u_at, h_at = OTHER + bucket * other_bucket, D_OTHER + bucket * other_bucket
        x = scaled(load_rows(x_at, own, length, own_row, column, there), d, SCALED)
        g = scaled(load_rows(g_at, own, length, own_row, column, there), d, SCALED)
        for edge in tl.static_range(2):
            begin, end, limit, skip = far_range(origin, length, side == 0, edge == 1, RADIUS, M, N)
            for at in range(begin, end, N):
                first = far_tile(at, limit, skip, edge == 1)
                other = first + tl.arange(0, N)
                u = load_passing(u_at, first, length, other_row, column, there, N, edge == 1)
                h = load_passing(h_at, first, length, other_row, column, there, N, edge == 1)
                shift = load_of_passing(OTHER_SHIFT, other, length, float("inf"), edge == 1)
                if ROWS:
                    d_row = d_normaliser[:, None]
                else:
                    d_row = load_of_passing(D_NORMALISER, other, length, 0.0, edge == 1)[None, :]
                score = product(
                    tl.zeros((M, N), tl.float32), x, u, x_at, u_at, own, other, length,
                    own_row, other_row, SCALE, bucket, channel, channels, r,
                    WIDTH, WIDE, SCALED, PRECISION,
                )  # fmt: skip
                d_p = product(
                    tl.zeros((M, N), tl.float32), g, u, g_at, u_at, own, other, length,
                    own_row, other_row, SCALE, bucket, channel, channels, r,
                    WIDTH, WIDE, SCALED, PRECISION,
                )  # fmt: skip
                d_p = product(
                    d_p, x, h, x_at, h_at, own, other, length,
                    own_row, other_row, SCALE, bucket, channel, channels, r,
                    WIDTH, WIDE, SCALED, PRECISION,
                )  # fmt: skip
                shift = own_shift[:, None] + shift[None, :]
                p = tl.exp2(
                    far_score(score, own, other, shift, exponent, side == 0, edge == 1, RADIUS)
                )
                factor = dropped(key, own[:, None], other[None, :], rate, ROWS, DROPOUT)
                cells, pair = far_cells(
                    own, other, length, channels, longest, side == 0, RADIUS, ROWS
                )
                d_p = with_later(d_p * factor, D_NEW, cells, pair)
                d_p = by_softmax(d_p, OLD, D_OLD, cells, pair & writes[:, None], step)
                d_score = (p * (d_p + d_row) * inverse_weight).to(u.dtype)
                p = (mixed(p, OLD, cells, pair, step) * factor).to(u.dtype)
                gradient = tl.dot(d_score, u, gradient, input_precision=PRECISION)
                gradient = tl.dot(p, h, gradient, input_precision=PRECISION)
                heard = tl.dot(p, u, heard, input_precision=PRECISION)
        if side == 1 or not CARRY:
            if SCALED and ROWS:
                at = D_SCALE + bucket * channels * r
                _store_of_scale(
                    at, gradient, heard, x_at, g_at, own, length, own_row, column, there
                )
            if SHARED:
                all_gradients += gradient * d
                all_heard += heard * d
            else:
                at = bucket * out_bucket
                store_rows(GRADIENT + at, own, length, out_row, column, there, gradient * d)
                store_rows(CONTEXT + at, own, length, out_row, column, there, heard * d)
            gradient = tl.zeros((M, WIDTH), tl.float32)
            heard = tl.zeros((M, WIDTH), tl.float32)

    for k in range(1, K - 1):
        other, met = near_others(k, own, length, GAMMA, ROWS)
        x_at, g_at = OWN + k * own_bucket, D_OWN + k * own_bucket
        u_at, h_at = OTHER + k * other_bucket, D_OTHER + k * other_bucket
        score = near_product(
            tl.zeros((M,), tl.float32), x_at, u_at, own, other, length, own_row, other_row,
            SCALE, k, channel, channels, r, WIDTH, SCALED,
        )  # fmt: skip
        d_p = near_product(
            tl.zeros((M,), tl.float32), g_at, u_at, own, other, length, own_row, other_row,
            SCALE, k, channel, channels, r, WIDTH, SCALED,
        )  # fmt: skip
        d_p = near_product(
            d_p, x_at, h_at, own, other, length, own_row, other_row,
            SCALE, k, channel, channels, r, WIDTH, SCALED,
        )  # fmt: skip
        shift = own_shift + tl.load(OTHER_SHIFT + other, mask=met, other=float("inf"))
        p = tl.exp2(score * exponent - shift)
        factor = dropped(key, own, other, rate, ROWS, DROPOUT)
        d_row = d_normaliser if ROWS else tl.load(D_NORMALISER + other, mask=met, other=0.0)
        cells = cells_between(own, other, channels, longest, ROWS)
        d_p = with_later(d_p * factor, D_NEW, cells, met)
        d_p = by_softmax(d_p, OLD, D_OLD, cells, met & writes, step)
        d_score = p * (d_p + d_row) * inverse_weight
        p = mixed(p, OLD, cells, met, step) * factor
        d = load_scale(SCALE, k, channel, channels, r, column, there, SCALED)
        u = load_rows(u_at, other, length, other_row, column, there).to(tl.float32)
        h = load_rows(h_at, other, length, other_row, column, there).to(tl.float32)
        gradient = d_score[:, None] * u + p[:, None] * h
        heard = p[:, None] * u
        if SCALED and ROWS:
            at = D_SCALE + k * channels * r
            _store_of_scale(at, gradient, heard, x_at, g_at, own, length, own_row, column, there)
        if SHARED:
            all_gradients += gradient * d
            all_heard += heard * d
        else:
            at = k * out_bucket
            store_rows(GRADIENT + at, own, length, out_row, column, there, gradient * d)
            store_rows(CONTEXT + at, own, length, out_row, column, there, heard * d)
    if SHARED:
        store_rows(GRADIENT, own, length, out_row, column, there, all_gradients)
        store_rows(CONTEXT, own, length, out_row, column, there, all_heard)
