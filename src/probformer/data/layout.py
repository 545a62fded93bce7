"""How the words of several sentences become the grid that a model reads: padded, or end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Spans:
    """Where packed sentences are in their row; of length 0 if there is none."""

    starts: NDArray[np.int32]
    lengths: NDArray[np.int32]
    longest: int


@dataclass(frozen=True)
class Layout:
    shape: tuple[int, int]
    cells: NDArray[np.int64]
    """Where each word stands in the grid, counted row by row."""
    spans: Spans | None = None

    def place(self, values: NDArray[Scalar], fill: float) -> NDArray[Scalar]:
        """One value a word, in their cells of a grid."""
        grid = np.full(self.shape, fill, dtype=values.dtype)
        grid.reshape(-1)[self.cells] = values
        return grid


def padded(lengths: NDArray[np.int64], multiple: int = 1, limit: int | None = None) -> Layout:
    """A row a sentence, of a multiple of some length but within the limit."""
    width = round_up(int(lengths.max(initial=0)), multiple)
    width = width if limit is None else min(width, limit)
    shift = np.arange(len(lengths)) * width - first_words(lengths)
    cells = np.arange(lengths.sum()) + np.repeat(shift, lengths)
    return Layout((len(lengths), width), cells)


def packed(lengths: NDArray[np.int64], front: int = 0) -> Layout:
    """One row for all. Its sizes are rounded up, so that few shapes come up again and again.

    Places in `front` of each sentence are parts of it, and left free.
    """
    places = lengths + front
    total, count = int(places.sum()), round_up(len(lengths), 16)
    starts, sizes = np.full(count, total, np.int32), np.zeros(count, np.int32)
    starts[: len(lengths)], sizes[: len(lengths)] = first_words(places), places
    longest = max(16, 1 << int(places.max(initial=1) - 1).bit_length())
    before = np.repeat(np.arange(1, len(lengths) + 1) * front, lengths)
    cells = np.arange(lengths.sum()) + before
    return Layout((1, round_up(total, 128)), cells, Spans(starts, sizes, longest))


def first_words(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many words come before each sentence."""
    return np.cumsum(lengths) - lengths


def round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
