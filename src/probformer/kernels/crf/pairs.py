"""Tiles of pairs: a program keeps the vectors of some words, its own, and loops over the others.

Own words are dependents and the others heads (ROWS), or the other way round. Distances beyond γ
are two triangles of pairs, others far before and others far after; each of them is one bucket.
Each nearer distance is a diagonal: an own word is paired with one other word.
"""

from __future__ import annotations

import triton
import triton.language as tl

from probformer.kernels.crf.mixing import cells_of
from probformer.kernels.crf.tiles import dropout_factor, load_rows, load_scale, scaled

VARYING = ["blocks", "rows", "longest", "own_shift_channel", "other_shift_channel"]
"""Arguments that differ from batch to batch: kernels are not compiled again for their values."""


@triton.jit
def program_of(STARTS, LENGTHS, blocks, channels, tiles, M: tl.constexpr):
    """Sentence, channel, tile of components, position of the first own word, start and length.

    Successive programs share a sentence and channel, so that the other words are in the cache.
    """
    program = tl.program_id(0)
    origin = program % blocks * M
    channel = program // blocks % channels
    tile = program // (blocks * channels) % tiles
    sentence = program // (blocks * channels * tiles)
    start = tl.load(STARTS + sentence).to(tl.int64)
    return sentence, channel, tile, origin, start, tl.load(LENGTHS + sentence)


@triton.jit
def far_bucket(BEFORE: tl.constexpr, ROWS: tl.constexpr, K: tl.constexpr):
    """A head far before its dependent is in the last bucket, one far after it in bucket 0."""
    return K - 1 if BEFORE == ROWS else 0


@triton.jit
def far_range(
    origin, length, BEFORE: tl.constexpr, EDGE: tl.constexpr,
    RADIUS: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Begin, end, limit and skip of a loop over tiles of N others: those with far pairs alone, or
    (EDGE) those with some.

    The sentence's last words are an edge too, if they do not fill a tile. Positions from `limit`
    on stand for that tile, `skip` words further, so that one loop has all edges.
    """
    if BEFORE:
        whole = tl.maximum(origin - RADIUS, 0) // N * N
        end = tl.minimum(origin + M, length) - 1 - RADIUS
        if EDGE:
            return whole, end, end, 0
        else:
            return origin * 0, whole, whole, 0
    else:
        whole = tl.cdiv(origin + M + RADIUS, N) * N
        last = length // N * N
        if EDGE:
            limit = tl.minimum(whole, tl.cdiv(length, N) * N)
            end = tl.where((whole <= last) & (last < length), limit + N, limit)
            return (origin + RADIUS + 1) // N * N, end, limit, last - limit
        else:
            return whole, last, last, 0


@triton.jit
def far_tile(at, limit, skip, EDGE: tl.constexpr):
    return tl.where(at < limit, at, at + skip) if EDGE else at


@triton.jit
def load_passing(
    pointer, first, length, row, column, there, N: tl.constexpr, EDGE: tl.constexpr
):  # fmt: skip
    """Vectors of N words from `first` on; away from the edges all of them exist."""
    lane = tl.arange(0, N)
    if EDGE:
        return load_rows(pointer, first + lane, length, row, column, there)
    else:
        place = lane[:, None] * row + column[None, :]
        return tl.load(pointer + first * row + place, mask=there[None, :], other=0.0)


@triton.jit
def load_of_passing(pointer, other, length, default, EDGE: tl.constexpr):
    """One number for each of the other words."""
    if EDGE:
        return tl.load(pointer + other, mask=other < length, other=default)
    else:
        return tl.load(pointer + other)


@triton.jit
def far_score(
    score, own, other, shift, exponent,
    BEFORE: tl.constexpr, EDGE: tl.constexpr, RADIUS: tl.constexpr,
):  # fmt: skip
    """Base-2 exponents of probabilities: score · exponent − shift; −∞ for near pairs."""
    score = score * exponent - shift
    if EDGE:
        apart = own[:, None] - other[None, :]
        far = apart > RADIUS if BEFORE else apart < -RADIUS
        score = tl.where(far, score, float("-inf"))
    return score


@triton.jit
def product(
    total, x, y, OWN, OTHER, own, other, length, own_row, other_row,
    SCALE, bucket, channel, channels, r,
    WIDTH: tl.constexpr, WIDE: tl.constexpr, SCALED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """total + x·yᵀ; vectors wider than a tile (WIDE) are loaded again, tile by tile."""
    if WIDE:
        for first in range(0, r, WIDTH):
            column = first + tl.arange(0, WIDTH)
            there = column < r
            x = load_rows(OWN, own, length, own_row, column, there)
            y = load_rows(OTHER, other, length, other_row, column, there)
            d = load_scale(SCALE, bucket, channel, channels, r, column, there, SCALED)
            x = scaled(x, d, SCALED)
            total = tl.dot(x, tl.trans(y), total, input_precision=PRECISION)
        return total
    else:
        return tl.dot(x, tl.trans(y), total, input_precision=PRECISION)


@triton.jit
def near_others(k, own, length, GAMMA: tl.constexpr, ROWS: tl.constexpr):
    """The other word of each own word in near bucket k, and whether it exists."""
    shift = tl.where(k <= GAMMA, GAMMA + 1 - k, GAMMA - k)  # from a dependent to its head
    other = own + shift if ROWS else own - shift
    return other, (own < length) & (other >= 0) & (other < length)


@triton.jit
def near_product(
    total, OWN, OTHER, own, other, length, own_row, other_row,
    SCALE, bucket, channel, channels, r, WIDTH: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """total + own·D·other for each own word and its other word."""
    for first in range(0, r, WIDTH):
        column = first + tl.arange(0, WIDTH)
        there = column < r
        x = load_rows(OWN, own, length, own_row, column, there).to(tl.float32)
        y = load_rows(OTHER, other, length, other_row, column, there).to(tl.float32)
        d = load_scale(SCALE, bucket, channel, channels, r, column, there, SCALED)
        total += tl.sum(x * d * y, 1)
    return total


@triton.jit
def dropped(key, own, other, rate, ROWS: tl.constexpr, DROPOUT: tl.constexpr):
    """The factors by which dropout multiplies the probabilities of pairs."""
    if not DROPOUT:
        return 1.0
    elif ROWS:
        return dropout_factor(key, own, other, rate)
    else:
        return dropout_factor(key, other, own, rate)


@triton.jit
def cells_between(own, other, channels, longest, ROWS: tl.constexpr):
    """The offset of each pair in Q_H; positions have shapes that broadcast."""
    if ROWS:
        return cells_of(own, other, channels, longest)
    else:
        return cells_of(other, own, channels, longest)


@triton.jit
def far_cells(
    own, other, length, channels, longest,
    BEFORE: tl.constexpr, RADIUS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The same for a tile, and which of its pairs are far and in the sentence."""
    apart = own[:, None] - other[None, :]
    far = apart > RADIUS if BEFORE else apart < -RADIUS
    far &= (own < length)[:, None] & (other < length)[None, :]
    return cells_between(own[:, None], other[None, :], channels, longest, ROWS), far
