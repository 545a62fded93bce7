"""Step sizes below one: Q_H = α·P + (1−α)·Q_H of the iteration before, where P is the softmax.

Only where α < 1 is Q_H stored from one iteration to the next: (R, h, longest) in float32, before
dropout. Cells that are not a pair of words of a sentence are neither written nor read. Without Q_H,
kernels get None in place of a pointer; no function may return it, which Triton 3.6 refuses.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def beliefs_of(start, channel, channels, longest):
    """The offset of a sentence's Q_H in a channel."""
    return (start * channels + channel) * longest


@triton.jit
def cells_of(dependent, head, channels, longest):
    """The offsets of pairs of words from there."""
    return dependent * (channels * longest) + head


@triton.jit
def mixed(p, OLD, cells, pair, step):
    """Q_H from P and the Q_H of the iteration before; P if there is none."""
    if OLD is None:
        return p
    else:
        return step * p + (1 - step) * tl.load(OLD + cells, mask=pair, other=0.0)


@triton.jit
def with_later(d_q, D_NEW, cells, pair):
    """The gradient by Q_H, with the part that comes through the next iteration's Q_H."""
    if D_NEW is None:
        return d_q
    else:
        return d_q + tl.load(D_NEW + cells, mask=pair, other=0.0)


@triton.jit
def by_softmax(d_q, OLD, D_OLD, cells, pair, step):
    """The gradient by P from that by Q_H; the gradient by the old Q_H is stored."""
    if OLD is None:
        return d_q
    else:
        remember(D_OLD, cells, pair, (1 - step) * d_q)
        return step * d_q


@triton.jit
def remember(POINTER, cells, pair, x):
    if POINTER is not None:
        tl.store(POINTER + cells, x, mask=pair)
