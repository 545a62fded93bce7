"""Sentences laid end to end in one row, so that a batch of uneven lengths needs no padding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the sentences of a row are: words attach to words of their own sentence only.

    Shapes do not depend on the sentences, so a CUDA graph can be replayed for others.
    """

    starts: Tensor
    """(S,) int32: the place of each sentence's first word in the row."""
    lengths: Tensor
    """(S,) int32: 0 for a sentence that is missing."""
    longest: int
    """No sentence is longer; known without a look at `lengths`."""

    def sentences(self, row: Tensor) -> Tensor:
        """(1, R, …) -> (S, longest, …): a padded batch, with anything on padding."""
        cells = self._cells().clamp(max=row.shape[1] - 1)
        return row[0].index_select(0, cells.flatten()).unflatten(0, cells.shape)

    def mask(self) -> Tensor:
        """(S, longest): true where there is a word."""
        return torch.arange(self.longest, device=self.lengths.device) < self.lengths[:, None]

    def row(self, sentences: Tensor, places: int) -> Tensor:
        """(S, longest, …) -> (1, places, …), zero after the last sentence."""
        cells = torch.where(self.mask(), self._cells(), places).flatten()
        flat = sentences.flatten(0, 1)
        origin = cells.new_full((places + 1,), len(flat))  # what no word takes, zeros take
        origin = origin.scatter(0, cells, torch.arange(len(flat), device=cells.device))
        flat = torch.cat([flat, flat.new_zeros(1, *flat.shape[1:])])
        return flat.index_select(0, origin[:places]).unsqueeze(0)

    def positions(self, places: int) -> Tensor:
        """(places,): where each word stands in its sentence; anything after the last sentence."""
        place = torch.arange(places, device=self.starts.device, dtype=self.starts.dtype)
        sentence = torch.searchsorted(self.starts, place, right=True) - 1
        return (place - self.starts[sentence]).clamp(max=self.longest - 1)

    def borders(self, places: int) -> Tensor:
        """Where sentences begin, and where the last one ends.

        What comes after it is sentences, too, so that kernels know of all places.
        """
        end = self.starts[-1:] + self.lengths[-1:]
        after = torch.arange(0, places + self.longest, self.longest, device=end.device)
        return torch.cat([self.starts, (end + after).clamp(max=places).to(end.dtype)])

    def _cells(self) -> Tensor:
        columns = torch.arange(self.longest, device=self.starts.device)
        return self.starts[:, None].long() + columns
