"""The elimination of `crf.structures.elimination` in kernels: a program for each sentence.

A first kernel computes M, and a second one the derivative of M, by the rule of products for each
step. Values are float64. They stay in global memory, as a step needs all of them: a barrier lets
the next step of a program read what this one has stored. Within a step nothing is stored where
another index has been read, so that one barrier is enough.
"""

# Type checkers of Python do not understand the kernels, which are in Triton's language.
# pyright: reportArgumentType=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_CELLS = 1024
"""The number of cells of A that a program changes at a time, if these are whole rows."""


def eliminate(
    weights: Tensor, single_root: bool, tangent: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """log Z and its gradient by the weights of arcs.

    Args:
        weights: A (S, n, n+1) in double precision, ROOT last. There is a word at least.
        single_root: whether exactly one word has ROOT as its head, or one or more.
        tangent: the direction of the derivative, (S, n, n+1); None for no derivative.

    Returns:
        log Z (S,), M (S, n, n+1), and the derivative of M or None. Without a tree log Z is −∞,
        and M is not defined.
    """
    sentences, n, _ = weights.shape
    width = triton.next_power_of_2(n + 1)
    constants = {
        "SINGLE": int(single_root),
        "WIDTH": width,
        "ROWS": max(1, min(16, _CELLS // width)),
    }
    a, m = weights.clone(memory_format=torch.contiguous_format), torch.zeros_like(weights)
    totals = a.new_empty(sentences, n)
    _eliminate[(sentences,)](a, totals, m, n, **constants)
    log_z = totals.log().sum(1).masked_fill((totals == 0).any(1), -torch.inf)
    if tangent is None:
        return log_z, m, None
    d_a, d_m = tangent.clone(memory_format=torch.contiguous_format), torch.zeros_like(m)
    moved = a, totals, m, d_a, torch.empty_like(totals), d_m
    _differentiate[(sentences,)](*moved, n, **constants)
    return log_z, m, d_m


@triton.jit
def _eliminate(A, TOTALS, M, n, SINGLE: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    sentence = tl.program_id(0).to(tl.int64)
    base, of_totals = sentence * n * (n + 1), sentence * n
    last = base + n * (n + 1) - 1
    columns = tl.arange(0, WIDTH)
    for i in range(n - 1):
        row, real = base + i * (n + 1) + columns, (columns > i) & (columns <= n)
        heads = tl.load(A + row, mask=real, other=0.0)
        total = tl.sum(tl.where(columns <= n - SINGLE, heads, 0.0), 0)
        heads = heads / total
        tl.store(TOTALS + of_totals + i, total)
        for k in range(i + 1, n, ROWS):
            rows = k + tl.arange(0, ROWS)
            of_rows, left = base + rows * (n + 1), rows < n
            cells, pairs = of_rows[:, None] + columns[None, :], left[:, None] & real[None, :]
            arcs = tl.load(A + of_rows + i, mask=left, other=0.0)
            a = tl.load(A + cells, mask=pairs, other=0.0)
            tl.store(A + cells, a + arcs[:, None] * heads[None, :], mask=pairs)
        tl.debug_barrier()
    total = tl.load(A + last)
    tl.store(TOTALS + of_totals + n - 1, total)
    tl.store(M + last, 1 / total)
    tl.debug_barrier()
    for step in range(2, n + 1):
        i = n - step
        row, real = base + i * (n + 1) + columns, (columns > i) & (columns <= n)
        total = tl.load(TOTALS + of_totals + i)
        heads = tl.load(A + row, mask=real, other=0.0) / total
        is_own = (columns <= n - SINGLE) & real
        found = tl.where(is_own, 1 / total, 0.0)
        for k in range(i + 1, n, ROWS):
            rows = k + tl.arange(0, ROWS)
            of_rows, left = base + rows * (n + 1), rows < n
            cells, pairs = of_rows[:, None] + columns[None, :], left[:, None] & real[None, :]
            arcs = tl.load(A + of_rows + i, mask=left, other=0.0) / total
            m = tl.load(M + cells, mask=pairs, other=0.0)
            onward = tl.sum(m * heads[None, :], 1)
            tl.store(M + of_rows + i, onward, mask=left)
            lost = tl.sum(arcs * onward, 0)
            found += tl.sum(arcs[:, None] * m, 0) - tl.where(is_own, lost, 0.0)
        tl.store(M + row, found, mask=real)
        tl.debug_barrier()


@triton.jit
def _differentiate(
    A,
    TOTALS,
    M,
    D_A,
    D_TOTALS,
    D_M,
    n,
    SINGLE: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
):
    """From what `_eliminate` has left in A: row i and column i as they were in i's step."""
    sentence = tl.program_id(0).to(tl.int64)
    base, of_totals = sentence * n * (n + 1), sentence * n
    last = base + n * (n + 1) - 1
    columns = tl.arange(0, WIDTH)
    for i in range(n - 1):
        row, real = base + i * (n + 1) + columns, (columns > i) & (columns <= n)
        total = tl.load(TOTALS + of_totals + i)
        heads = tl.load(A + row, mask=real, other=0.0) / total
        d_heads = tl.load(D_A + row, mask=real, other=0.0)
        d_total = tl.sum(tl.where(columns <= n - SINGLE, d_heads, 0.0), 0)
        d_heads = (d_heads - heads * d_total) / total
        tl.store(D_TOTALS + of_totals + i, d_total)
        for k in range(i + 1, n, ROWS):
            rows = k + tl.arange(0, ROWS)
            of_rows, left = base + rows * (n + 1), rows < n
            cells, pairs = of_rows[:, None] + columns[None, :], left[:, None] & real[None, :]
            arcs = tl.load(A + of_rows + i, mask=left, other=0.0)
            d_arcs = tl.load(D_A + of_rows + i, mask=left, other=0.0)
            d_a = tl.load(D_A + cells, mask=pairs, other=0.0)
            d_a += d_arcs[:, None] * heads[None, :] + arcs[:, None] * d_heads[None, :]
            tl.store(D_A + cells, d_a, mask=pairs)
        tl.debug_barrier()
    total = tl.load(TOTALS + of_totals + n - 1)
    tl.store(D_M + last, -tl.load(D_A + last) / (total * total))
    tl.debug_barrier()
    for step in range(2, n + 1):
        i = n - step
        row, real = base + i * (n + 1) + columns, (columns > i) & (columns <= n)
        total = tl.load(TOTALS + of_totals + i)
        d_total = tl.load(D_TOTALS + of_totals + i)
        heads = tl.load(A + row, mask=real, other=0.0) / total
        d_heads = tl.load(D_A + row, mask=real, other=0.0)
        d_heads = (d_heads - heads * d_total) / total
        is_own = (columns <= n - SINGLE) & real
        d_found = tl.where(is_own, -d_total / (total * total), 0.0)
        for k in range(i + 1, n, ROWS):
            rows = k + tl.arange(0, ROWS)
            of_rows, left = base + rows * (n + 1), rows < n
            cells, pairs = of_rows[:, None] + columns[None, :], left[:, None] & real[None, :]
            arcs = tl.load(A + of_rows + i, mask=left, other=0.0) / total
            d_arcs = tl.load(D_A + of_rows + i, mask=left, other=0.0)
            d_arcs = (d_arcs - arcs * d_total) / total
            m = tl.load(M + cells, mask=pairs, other=0.0)
            onward = tl.load(M + of_rows + i, mask=left, other=0.0)
            d_m = tl.load(D_M + cells, mask=pairs, other=0.0)
            d_onward = tl.sum(d_m * heads[None, :] + m * d_heads[None, :], 1)
            tl.store(D_M + of_rows + i, d_onward, mask=left)
            d_found += tl.sum(d_arcs[:, None] * m + arcs[:, None] * d_m, 0)
            lost = tl.sum(d_arcs * onward + arcs * d_onward, 0)
            d_found -= tl.where(is_own, lost, 0.0)
        tl.store(D_M + row, d_found, mask=real)
        tl.debug_barrier()
