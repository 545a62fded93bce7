"""Sentences laid end to end in one row, so that a batch of uneven lengths needs no padding."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Packing:
    """Where each of S sentences is in a row of words; words attach within their own sentence only.

    Shapes depend on S and on the length of the row, not on the lengths of sentences: a CUDA graph
    can be replayed for other sentences.
    """

    starts: Tensor
    """(S,) int32: the position in the row of each sentence's first word."""
    lengths: Tensor
    """(S,) int32: the number of words of each sentence, 0 for one to skip."""
    longest: int
    """An upper bound of `lengths`, known without waiting for the GPU."""
    alike: bool = False
    """Whether all sentences have the same length, as the rows of a padded batch have."""

    @classmethod
    def of_padded(cls, mask: Tensor) -> Packing:
        """The packing of a padded batch: its rows end to end, padding included.

        Args:
            mask: (B, n).
        """
        batch, n = mask.shape
        starts = torch.arange(batch, device=mask.device, dtype=torch.int32) * n
        return cls(starts, torch.full_like(starts, n), n, alike=True)

    def sentences(self, row: Tensor) -> Tensor:
        """A padded batch of the sentences in a row.

        Args:
            row: (1, R, …).

        Returns:
            (S, longest, …); the values at padding are arbitrary.
        """
        cells = self._cells().clamp(max=row.shape[1] - 1)
        return row[0].index_select(0, cells.flatten()).unflatten(0, cells.shape)

    def mask(self) -> Tensor:
        """(S, longest) bool: true for words, false for padding."""
        return torch.arange(self.longest, device=self.lengths.device) < self.lengths[:, None]

    def pack(self, sentences: Tensor, places: int) -> Tensor:
        """The row of a padded batch of sentences; the inverse of `sentences`.

        Args:
            sentences: (S, longest, …).
            places: The length of the row.

        Returns:
            (1, places, …), zero after the last sentence.
        """
        cells = torch.where(self.mask(), self._cells(), places).flatten()
        flat = sentences.flatten(0, 1)
        origin = cells.new_full((places + 1,), len(flat))  # places without a word take the zeros
        origin = origin.scatter(0, cells, torch.arange(len(flat), device=cells.device))
        flat = torch.cat([flat, flat.new_zeros(1, *flat.shape[1:])])
        return flat.index_select(0, origin[:places]).unsqueeze(0)

    def positions(self, places: int) -> Tensor:
        """(places,): the position of each word in its sentence; arbitrary after the last one."""
        place = torch.arange(places, device=self.starts.device, dtype=self.starts.dtype)
        sentence = torch.searchsorted(self.starts, place, right=True) - 1
        return (place - self.starts[sentence]).clamp(max=self.longest - 1)

    def covering(self, places: int) -> Packing:
        """With sentences of padding added at the end, so that kernels write all `places`."""
        end = (self.starts + self.lengths).max()
        steps = torch.arange(0, places, self.longest, device=end.device, dtype=torch.int32)
        tail = end + steps
        lengths = torch.cat([self.lengths, (places - tail).clamp(0, self.longest)])
        return Packing(torch.cat([self.starts, tail]), lengths, self.longest)

    def borders(self, places: int) -> Tensor:
        """(S + ⌈places / longest⌉ + 1,): where the sentences of `covering` start, then `places`."""
        starts = self.covering(places).starts.clamp(max=places)
        return torch.cat([starts, starts.new_full((1,), places)])

    def longer_than(self, most: int) -> Packing:
        """With length 0 for sentences of up to `most` words, whose words stay in the row."""
        return replace(self, lengths=torch.where(self.lengths > most, self.lengths, 0))

    def _cells(self) -> Tensor:
        columns = torch.arange(self.longest, device=self.starts.device)
        return self.starts[:, None].long() + columns
