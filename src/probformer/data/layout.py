"""How the words of several sentences become the grid that a model reads: padded, or packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from probformer.packing import Packing

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Layout:
    """Which cell of a grid each word of a batch has."""

    shape: tuple[int, int]
    cells: NDArray[np.int64]
    """(words,): the cell of each word, counted row by row."""
    packing: Packing | None = None
    """Where the sentences are if all are in one row; None if each has a row of its own."""

    def place(self, values: NDArray[Scalar], fill: float) -> NDArray[Scalar]:
        """(words,) -> `shape`: each value in the cell of its word, `fill` in all other cells."""
        grid = np.full(self.shape, fill, dtype=values.dtype)
        grid.reshape(-1)[self.cells] = values
        return grid


def padded(lengths: NDArray[np.int64], multiple: int = 1, limit: int | None = None) -> Layout:
    """A row for each sentence.

    Args:
        lengths: (S,): the number of words of each sentence.
        multiple: Rows are as long as the longest sentence, rounded up to a multiple of this.
        limit: The maximum length of rows, at least that of the longest sentence.
    """
    width = round_up(int(lengths.max(initial=0)), multiple)
    width = width if limit is None else min(width, limit)
    shift = np.arange(len(lengths)) * width - first_words(lengths)
    cells = np.arange(lengths.sum()) + np.repeat(shift, lengths)
    return Layout((len(lengths), width), cells)


def packed(lengths: NDArray[np.int64], front: int = 0) -> Layout:
    """One row for all sentences, end to end. Sizes are rounded up, so that few shapes occur.

    Args:
        lengths: (S,): the number of words of each sentence.
        front: The number of places before the words of each sentence that belong to it and stay
            empty, such as one for CLS.
    """
    places = lengths + front
    total, count = int(places.sum()), round_up(len(lengths), 16)
    starts, sizes = np.full(count, total, np.int32), np.zeros(count, np.int32)
    starts[: len(lengths)], sizes[: len(lengths)] = first_words(places), places
    longest = max(16, 1 << int(places.max(initial=1) - 1).bit_length())
    before = np.repeat(np.arange(1, len(lengths) + 1) * front, lengths)
    cells = np.arange(lengths.sum()) + before
    packing = Packing(torch.from_numpy(starts), torch.from_numpy(sizes), longest)
    return Layout((1, round_up(total, 128)), cells, packing)


def first_words(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """(S,): the number of words before each sentence."""
    return np.cumsum(lengths) - lengths


def round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
