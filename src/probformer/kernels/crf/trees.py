"""The elimination of `crf.structures.spanning_trees` in one kernel: a block for each sentence.

With a tangent, the kernel also computes the derivative of M in its direction, by the rule of
products for each step. Values are float64 and stay in memory, as a step needs all of them.
"""

# pyright: reportPossiblyUnboundVariable=false, reportOperatorIssue=false
# pyright: reportArgumentType=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS = 16
"""Rows of A that a block changes at a time."""


def eliminate(
    weights: Tensor, single_root: bool, tangent: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """log Z and its gradient by the weights of arcs.

    Args:
        weights: A (S, n, 1 + n) in float64; column 0 is ROOT. A sentence has a word at least.
        single_root: whether exactly one word has ROOT as its head, or one or more.
        tangent: the direction of the derivative, (S, n, 1 + n); None for no derivative.

    Returns:
        log Z (S,), M (S, n, 1 + n), and the derivative of M or None.
    """
    sentences, n, _ = weights.shape
    a = weights.clone(memory_format=torch.contiguous_format)
    d_a = None if tangent is None else tangent.clone(memory_format=torch.contiguous_format)
    m, log_z = torch.zeros_like(a), a.new_empty(sentences)
    d_m = None if d_a is None else torch.zeros_like(a)
    totals = a.new_empty(sentences, n)
    d_totals = None if d_a is None else torch.empty_like(totals)
    constants = {"FIRST": int(single_root), "WIDTH": triton.next_power_of_2(n + 1), "ROWS": _ROWS}
    _eliminate[(sentences,)](a, d_a, totals, d_totals, m, d_m, log_z, n, **constants)
    return log_z, m, d_m


@triton.jit
def _eliminate(
    A,
    D_A,
    TOTALS,
    D_TOTALS,
    M,
    D_M,
    LOG_Z,
    n,
    FIRST: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
):
    sentence = tl.program_id(0).to(tl.int64)
    base, of_totals = sentence * n * (n + 1), sentence * n
    columns = tl.arange(0, WIDTH)
    log_z = tl.sum(tl.zeros([WIDTH], tl.float64), 0)
    for step in range(1, n):
        i = n - step
        row, real = base + i * (n + 1) + columns, columns <= i
        heads = tl.load(A + row, mask=real, other=0.0)
        total = tl.sum(tl.where(columns >= FIRST, heads, 0.0), 0)
        heads = heads / total
        tl.store(A + row, heads, mask=real)
        tl.store(TOTALS + of_totals + i, total)
        log_z += tl.log(total)
        if D_A is not None:
            d_heads = tl.load(D_A + row, mask=real, other=0.0)
            d_total = tl.sum(tl.where(columns >= FIRST, d_heads, 0.0), 0)
            d_heads = (d_heads - heads * d_total) / total
            tl.store(D_A + row, d_heads, mask=real)
            tl.store(D_TOTALS + of_totals + i, d_total)
        for k in range(0, i, ROWS):
            rows = k + tl.arange(0, ROWS)
            of_rows, above = base + rows * (n + 1), rows < i
            cells, pairs = of_rows[:, None] + columns[None, :], above[:, None] & real[None, :]
            arcs = tl.load(A + of_rows + i + 1, mask=above, other=0.0)
            a = tl.load(A + cells, mask=pairs, other=0.0)
            tl.store(A + cells, a + arcs[:, None] * heads[None, :], mask=pairs)
            if D_A is not None:
                d_arcs = tl.load(D_A + of_rows + i + 1, mask=above, other=0.0)
                d_a = tl.load(D_A + cells, mask=pairs, other=0.0)
                d_a += d_arcs[:, None] * heads[None, :] + arcs[:, None] * d_heads[None, :]
                tl.store(D_A + cells, d_a, mask=pairs)
        tl.debug_barrier()
    total = tl.load(A + base)
    tl.store(LOG_Z + sentence, log_z + tl.log(total))
    tl.store(M + base, 1 / total)
    if D_A is not None:
        tl.store(D_M + base, -tl.load(D_A + base) / (total * total))
    tl.debug_barrier()
    for i in range(1, n):
        row, real = base + i * (n + 1) + columns, columns <= i
        heads = tl.load(A + row, mask=real, other=0.0)
        total = tl.load(TOTALS + of_totals + i)
        own = tl.where((columns >= FIRST) & real, 1 / total, 0.0)
        if D_A is not None:
            d_heads = tl.load(D_A + row, mask=real, other=0.0)
            d_total = tl.load(D_TOTALS + of_totals + i)
            d_own = -own * (d_total / total)
        for k in range(0, i, ROWS):
            rows = k + tl.arange(0, ROWS)
            of_rows, above = base + rows * (n + 1), rows < i
            cells, pairs = of_rows[:, None] + columns[None, :], above[:, None] & real[None, :]
            arcs = tl.load(A + of_rows + i + 1, mask=above, other=0.0) / total
            m = tl.load(M + cells, mask=pairs, other=0.0)
            onward = tl.sum(m * heads[None, :], 1)
            tl.store(M + of_rows + i + 1, onward, mask=above)
            is_own = (columns >= FIRST) & real
            own += tl.sum(arcs[:, None] * m, 0) - tl.where(is_own, tl.sum(arcs * onward, 0), 0.0)
            if D_A is not None:
                d_arcs = tl.load(D_A + of_rows + i + 1, mask=above, other=0.0)
                d_arcs = (d_arcs - arcs * d_total) / total
                d_m = tl.load(D_M + cells, mask=pairs, other=0.0)
                d_onward = tl.sum(d_m * heads[None, :] + m * d_heads[None, :], 1)
                tl.store(D_M + of_rows + i + 1, d_onward, mask=above)
                d_own += tl.sum(d_arcs[:, None] * m + arcs[:, None] * d_m, 0)
                lost = tl.sum(d_arcs * onward + arcs * d_onward, 0)
                d_own -= tl.where(is_own, lost, 0.0)
        tl.store(M + row, own, mask=real)
        if D_A is not None:
            tl.store(D_M + row, d_own, mask=real)
        tl.debug_barrier()
