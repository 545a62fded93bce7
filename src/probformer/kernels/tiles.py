"""What all kernels share: vectors in memory, distance buckets, rotation, dropout.

A tile holds the vectors of some words of one sentence in one channel. Positions count from the
start of the sentence.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load(pointer, places, columns, valid):
    return tl.load(pointer + places + columns[None, :], mask=valid, other=0.0)


@triton.jit
def store(pointer, places, columns, valid, x):
    tl.store(pointer + places + columns[None, :], x.to(pointer.dtype.element_ty), mask=valid)


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
    """The pair (l, l + WIDTH/2) of each row, turned; cos and sin are (ROWS, WIDTH/2)."""
    halves = tl.permute(tl.reshape(x, (ROWS, 2, WIDTH // 2)), (0, 2, 1))
    first, second = tl.split(halves)
    turned = tl.join(first * cos - second * sin, first * sin + second * cos)
    return tl.reshape(tl.permute(turned, (0, 2, 1)), (ROWS, WIDTH))


@triton.jit
def load_angles(COS, SIN, position, exists, r, WIDTH: tl.constexpr):
    """Cosine and sine of words at some positions, from tables (n, r/2)."""
    half = tl.arange(0, WIDTH // 2)
    place = position[:, None] * (r // 2) + half[None, :]
    valid = exists[:, None] & (half < r // 2)[None, :]
    return tl.load(COS + place, mask=valid, other=0.0), tl.load(SIN + place, mask=valid, other=0.0)


@triton.jit
def bucket_of(dependent, head, GAMMA: tl.constexpr):
    """f(i−j), eq. 10; a negative GAMMA stands for one bucket that is blind to order."""
    offset = dependent[:, None] - head[None, :]
    if GAMMA < 0:
        return offset * 0
    else:
        near = tl.where(offset < 0, offset + GAMMA + 1, offset + GAMMA)
        far = tl.where(offset < 0, 0, 2 * GAMMA + 1)
        return tl.where(tl.abs(offset) <= GAMMA, near, far)


@triton.jit
def dropout_key(SEED, sentence, channel, channels):
    """Two random words for each sentence and channel, from Philox."""
    seed = tl.load(SEED)
    first, second, _, _ = tl.randint4x(seed, sentence * channels + channel)
    return first.to(tl.uint32, bitcast=True), second.to(tl.uint32, bitcast=True)


@triton.jit
def dropout_factor(key, dependent, head, rate):
    """0 with probability `rate`, 1/(1 − rate) otherwise: a hash of the pair's place.

    Forward and backward passes draw the same, whatever tiles they work in. A hash of eight
    instructions: ten rounds of Philox for every pair would take longer than all the rest.
    """
    first, second = key
    x = (dependent[:, None] * 65536 + head[None, :]).to(tl.uint32) ^ first
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = x ^ second
    x = (x ^ (x >> 15)) * 0x846CA68B
    x = x ^ (x >> 16)
    draw = (x >> 8).to(tl.float32) * (1.0 / 16777216.0)
    return tl.where(draw >= rate, 1.0 / (1.0 - rate), 0.0)
