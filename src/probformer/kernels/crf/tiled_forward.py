"""The forward passes over tiles of pairs: first each row's normaliser, then contexts."""

# Type checkers of Python do not understand the kernels, which are in Triton's language.
# pyright: reportCallIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from probformer.kernels.crf.mixing import beliefs_of, mixed, remember
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
def normalise(
    A, B, SCALE, ABSENT, REST, STARTS, LENGTHS, SHIFT, NORMALISER,
    blocks, channels, r, rows,
    a_row, a_bucket, a_channel, b_row, b_bucket, b_channel,
    exponent,
    GAMMA: tl.constexpr, RADIUS: tl.constexpr, K: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr, WIDE: tl.constexpr,
    SCALED: tl.constexpr, HAS_REST: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The normaliser of each row: its log₂ as SHIFT (h, R), its natural log as NORMALISER (R, h).

    Both are +∞ for padding and for words without any allowed head.
    """
    _, channel, _, origin, start, length = program_of(STARTS, LENGTHS, blocks, channels, 1, M)
    if origin >= length:
        return
    own = origin + tl.arange(0, M)
    exists = own < length
    column = tl.arange(0, WIDTH)
    there = column < r
    A += start * a_row + channel * a_channel
    B += start * b_row + channel * b_channel
    ABSENT += start

    largest = tl.full((M,), float("-inf"), tl.float32)
    if HAS_REST:
        place = REST + (start + own) * channels + channel
        largest = tl.load(place, mask=exists, other=float("-inf")) * 1.4426950408889634
    total = tl.where(largest == float("-inf"), 0.0, 1.0)
    for k in range(1, K - 1):
        other, met = near_others(k, own, length, GAMMA, True)
        score = near_product(
            tl.zeros((M,), tl.float32), A + k * a_bucket, B + k * b_bucket,
            own, other, length, a_row, b_row, SCALE, k, channel, channels, r, WIDTH, SCALED,
        )  # fmt: skip
        score = score * exponent - tl.load(ABSENT + other, mask=met, other=float("inf"))
        larger = tl.maximum(largest, score)
        base = tl.where(larger == float("-inf"), 0.0, larger)
        total = total * tl.exp2(largest - base) + tl.exp2(score - base)
        largest = larger

    for side in tl.static_range(2):
        bucket = far_bucket(side == 0, True, K)
        d = load_scale(SCALE, bucket, channel, channels, r, column, there, SCALED)
        a_at, b_at = A + bucket * a_bucket, B + bucket * b_bucket
        a = scaled(load_rows(a_at, own, length, a_row, column, there), d, SCALED)
        for edge in tl.static_range(2):
            begin, end, limit, skip = far_range(origin, length, side == 0, edge == 1, RADIUS, M, N)
            for at in range(begin, end, N):
                first = far_tile(at, limit, skip, edge == 1)
                other = first + tl.arange(0, N)
                b = load_passing(b_at, first, length, b_row, column, there, N, edge == 1)
                absent = load_of_passing(ABSENT, other, length, float("inf"), edge == 1)
                score = product(
                    tl.zeros((M, N), tl.float32), a, b, a_at, b_at, own, other, length,
                    a_row, b_row, SCALE, bucket, channel, channels, r,
                    WIDTH, WIDE, SCALED, PRECISION,
                )  # fmt: skip
                score = far_score(
                    score, own, other, absent[None, :], exponent, side == 0, edge == 1, RADIUS
                )
                larger = tl.maximum(largest, tl.max(score, 1))
                base = tl.where(larger == float("-inf"), 0.0, larger)
                grown = tl.sum(tl.exp2(score - base[:, None]), 1)
                total = total * tl.exp2(largest - base) + grown
                largest = larger

    some = tl.where(total > 0, total, 1.0)
    shift = tl.where(total > 0, largest + tl.log2(some), float("inf"))
    shift += tl.load(ABSENT + own, mask=exists, other=float("inf"))
    tl.store(SHIFT + channel * rows + start + own, shift, mask=exists)
    place = NORMALISER + (start + own) * channels + channel
    tl.store(place, shift * 0.6931471805599453, mask=exists)


@triton.jit(do_not_specialize=VARYING)
def contexts(
    OWN, OTHER, SCALE, OWN_SHIFT, OTHER_SHIFT, STARTS, LENGTHS, SEED, OLD, OUT, NEW,
    blocks, channels, tiles, r, longest,
    own_row, own_bucket, own_channel, other_row, other_bucket, other_channel,
    own_shift_channel, other_shift_channel, out_row, out_bucket,
    exponent, rate, step,
    ROWS: tl.constexpr, GAMMA: tl.constexpr, RADIUS: tl.constexpr, K: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr, WIDE: tl.constexpr,
    SHARED: tl.constexpr, CARRY: tl.constexpr, SCALED: tl.constexpr,
    DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Contexts of own words: P·B where they are dependents, Pᵀ·A where they are heads.

    Own vectors and contexts are multiplied by D. SHARED: contexts are summed over buckets; CARRY:
    even before they are multiplied by D.
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
    OTHER += start * other_row + channel * other_channel
    OUT += start * out_row + channel * r
    beliefs = beliefs_of(start, channel, channels, longest)
    if OLD is not None:
        OLD += beliefs
    if NEW is not None:
        NEW += beliefs
    OWN_SHIFT += start + channel * own_shift_channel
    OTHER_SHIFT += start + channel * other_shift_channel
    own_shift = tl.load(OWN_SHIFT + own, mask=own < length, other=float("inf"))
    # All tiles of components compute the same Q_H: the first writes it.
    writes = own < tl.where(tile == 0, length, 0)
    key = 0, 0
    if DROPOUT:
        key = dropout_key(SEED, sentence * channels + channel)

    total = tl.zeros((M, WIDTH), tl.float32)
    heard = tl.zeros((M, WIDTH), tl.float32)
    for side in tl.static_range(2):
        bucket = far_bucket(side == 0, ROWS, K)
        d = load_scale(SCALE, bucket, channel, channels, r, column, there, SCALED)
        x_at, u_at = OWN + bucket * own_bucket, OTHER + bucket * other_bucket
        x = scaled(load_rows(x_at, own, length, own_row, column, there), d, SCALED)
        for edge in tl.static_range(2):
            begin, end, limit, skip = far_range(origin, length, side == 0, edge == 1, RADIUS, M, N)
            for at in range(begin, end, N):
                first = far_tile(at, limit, skip, edge == 1)
                other = first + tl.arange(0, N)
                u = load_passing(u_at, first, length, other_row, column, there, N, edge == 1)
                shift = load_of_passing(OTHER_SHIFT, other, length, float("inf"), edge == 1)
                score = product(
                    tl.zeros((M, N), tl.float32), x, u, x_at, u_at, own, other, length,
                    own_row, other_row, SCALE, bucket, channel, channels, r,
                    WIDTH, WIDE, SCALED, PRECISION,
                )  # fmt: skip
                shift = own_shift[:, None] + shift[None, :]
                p = tl.exp2(
                    far_score(score, own, other, shift, exponent, side == 0, edge == 1, RADIUS)
                )
                cells, pair = far_cells(
                    own, other, length, channels, longest, side == 0, RADIUS, ROWS
                )
                p = mixed(p, OLD, cells, pair, step)
                remember(NEW, cells, pair & writes[:, None], p)
                p *= dropped(key, own[:, None], other[None, :], rate, ROWS, DROPOUT)
                heard = tl.dot(p.to(u.dtype), u, heard, input_precision=PRECISION)
        if side == 1 or not CARRY:
            if SHARED:
                total += heard * d
            else:
                at = OUT + bucket * out_bucket
                store_rows(at, own, length, out_row, column, there, heard * d)
            heard = tl.zeros((M, WIDTH), tl.float32)

    for k in range(1, K - 1):
        other, met = near_others(k, own, length, GAMMA, ROWS)
        x_at, u_at = OWN + k * own_bucket, OTHER + k * other_bucket
        score = near_product(
            tl.zeros((M,), tl.float32), x_at, u_at, own, other, length, own_row, other_row,
            SCALE, k, channel, channels, r, WIDTH, SCALED,
        )  # fmt: skip
        shift = own_shift + tl.load(OTHER_SHIFT + other, mask=met, other=float("inf"))
        cells = cells_between(own, other, channels, longest, ROWS)
        p = mixed(tl.exp2(score * exponent - shift), OLD, cells, met, step)
        remember(NEW, cells, met & writes, p)
        p *= dropped(key, own, other, rate, ROWS, DROPOUT)
        d = load_scale(SCALE, k, channel, channels, r, column, there, SCALED)
        heard = p[:, None] * load_rows(u_at, other, length, other_row, column, there) * d
        if SHARED:
            total += heard
        else:
            store_rows(OUT + k * out_bucket, own, length, out_row, column, there, heard)
    if SHARED:
        store_rows(OUT, own, length, out_row, column, there, total)
