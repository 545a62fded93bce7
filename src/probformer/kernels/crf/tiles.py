"""Functions of several kernels: vectors in memory, distance buckets, rotation, dropout.

A tile holds the vectors of some words of one sentence in one channel. Positions count from the
start of the sentence.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_rows(pointer, position, length, row, column, there):
    """Vectors of the words at some positions; zero outside of the sentence."""
    inside = (position >= 0) & (position < length)
    place = position[:, None] * row + column[None, :]
    return tl.load(pointer + place, mask=inside[:, None] & there[None, :], other=0.0)


@triton.jit
def store_rows(pointer, position, length, row, column, there, x):
    place = position[:, None] * row + column[None, :]
    valid = (position < length)[:, None] & there[None, :]
    tl.store(pointer + place, x.to(pointer.dtype.element_ty), mask=valid)


@triton.jit
def load_scale(SCALE, bucket, channel, channels, r, column, there, SCALED: tl.constexpr):
    """D of a bucket and channel, one row; 1 for potentials without it."""
    if SCALED:
        place = (bucket * channels + channel) * r + column
        return tl.load(SCALE + place, mask=there, other=0.0)[None, :].to(tl.float32)
    else:
        return tl.full((1, 1), 1.0, tl.float32)


@triton.jit
def scaled(x, scale, SCALED: tl.constexpr):
    if SCALED:
        return (x * scale).to(x.dtype)
    else:
        return x


@triton.jit
def columns_of(start, r, WIDTH: tl.constexpr, ROTARY: tl.constexpr):
    """Which components of vectors (r) a tile holds from `start` on, and which of them exist.

    A rotation needs both halves of a vector in the two halves of a tile.
    """
    column = start + tl.arange(0, WIDTH)
    if ROTARY:
        half = column % (WIDTH // 2)
        return tl.where(column < WIDTH // 2, half, r // 2 + half), half < r // 2
    else:
        return column, column < r


@triton.jit
def turn(x, cos, sin, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The pair (l, l + WIDTH/2) of each row, turned, in float32; cos and sin (ROWS, WIDTH/2)."""
    halves = tl.permute(tl.reshape(x.to(tl.float32), (ROWS, 2, WIDTH // 2)), (0, 2, 1))
    first, second = tl.split(halves)
    turned = tl.join(first * cos - second * sin, first * sin + second * cos)
    return tl.reshape(tl.permute(turned, (0, 2, 1)), (ROWS, WIDTH))


@triton.jit
def turned(x, cos, sin, ROWS: tl.constexpr, WIDTH: tl.constexpr, ROTARY: tl.constexpr):
    if ROTARY:
        return turn(x, cos, sin, ROWS, WIDTH).to(x.dtype)
    else:
        return x


@triton.jit
def load_angles(COS, SIN, position, exists, r, WIDTH: tl.constexpr):
    """Cosine and sine of words at some positions, from tables (n, r/2)."""
    half = tl.arange(0, WIDTH // 2)
    place = position[:, None] * (r // 2) + half[None, :]
    valid = exists[:, None] & (half < r // 2)[None, :]
    return tl.load(COS + place, mask=valid, other=0.0), tl.load(SIN + place, mask=valid, other=0.0)


@triton.jit
def bucket_of(dependent, head, GAMMA: tl.constexpr):
    """f(i−j), eq. 10; a negative GAMMA stands for one bucket for all pairs."""
    offset = dependent[:, None] - head[None, :]
    if GAMMA < 0:
        return offset * 0
    else:
        near = tl.where(offset < 0, offset + GAMMA + 1, offset + GAMMA)
        far = tl.where(offset < 0, 0, 2 * GAMMA + 1)
        return tl.where(tl.abs(offset) <= GAMMA, near, far)


@triton.jit
def dropout_key(SEED, number):
    """Two random 32-bit integers for a number (of a sentence in a channel, say), from Philox."""
    first, second, _, _ = tl.randint4x(tl.load(SEED), number)
    return first.to(tl.uint32, bitcast=True), second.to(tl.uint32, bitcast=True)


@triton.jit
def dropout_factor(key, dependent, head, rate):
    """0 with probability `rate`, 1/(1 − rate) otherwise: a hash of the pair's place.

    Positions have shapes that broadcast. Forward and backward passes get the same factors, whatever
    their tiles are. The hash takes few instructions per pair: ten rounds of Philox would take
    longer than the rest of the kernel.
    """
    first, second = key
    x = (dependent.to(tl.uint32) * 0x9E3779B1 + first) ^ (head.to(tl.uint32) * 0x85EBCA77 + second)
    x = x * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return tl.where(x >= tl.cast(rate * 4294967296.0, tl.uint32), 1.0 / (1.0 - rate), 0.0)


@triton.jit
def dropout_factors(SEED, row, column, rate, DROPOUT: tl.constexpr):
    """The dropout factors of a program's matrix, or 1 without dropout."""
    if DROPOUT:
        key = dropout_key(SEED, tl.program_id(0))
        return dropout_factor(key, row[:, None], column[None, :], rate)
    else:
        return 1.0


@triton.jit
def whole_rows(rows, d, ROWS: tl.constexpr, D: tl.constexpr):
    """For a program with ROWS rows of a matrix (rows, d): rows, columns, offsets, which exist."""
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    place = row.to(tl.int64)[:, None] * d + column[None, :]
    return row, column, place, (row < rows)[:, None] & (column < d)[None, :]
