"""Heads that move only part of the way, Q_H = α·P + (1−α)·Q_H of the iteration before.

P is the softmax. Where α < 1, and only there, beliefs about pairs go through memory from one
iteration to the next: (R, h, longest) in float32, without dropout. Cells that are no pair of a
sentence are neither written nor read. Kernels without them get None in place of a pointer, which no
function may return: Triton 3.6 refuses that.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def beliefs_of(start, channel, channels, longest):
    """Where those of a sentence begin, in a channel."""
    return (start * channels + channel) * longest


@triton.jit
def cells_of(dependent, head, channels, longest):
    """Where they hold pairs of words."""
    return dependent * (channels * longest) + head


@triton.jit
def mixed(p, OLD, cells, pair, step):
    """Q, where there is one of the iteration before; else P."""
    if OLD is None:
        return p
    else:
        return step * p + (1 - step) * tl.load(OLD + cells, mask=pair, other=0.0)


@triton.jit
def with_later(d_q, D_NEW, cells, pair):
    """The gradient by Q, the part included that comes from the next iteration's Q."""
    if D_NEW is None:
        return d_q
    else:
        return d_q + tl.load(D_NEW + cells, mask=pair, other=0.0)


@triton.jit
def by_softmax(d_q, OLD, D_OLD, cells, pair, step):
    """The gradient by P from that by Q; the one by the old Q is written down."""
    if OLD is None:
        return d_q
    else:
        remember(D_OLD, cells, pair, (1 - step) * d_q)
        return step * d_q


@triton.jit
def remember(POINTER, cells, pair, x):
    if POINTER is not None:
        tl.store(POINTER + cells, x, mask=pair)
