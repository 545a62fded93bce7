"""Sentences laid end to end in one row, so that a batch of uneven lengths needs no padding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from probformer.errors import InputError, require, require_kind, require_whole


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

    def _cells(self) -> Tensor:
        columns = torch.arange(self.longest, device=self.starts.device)
        return self.starts[:, None].long() + columns


def check_packing(packing: Packing, mask: Tensor) -> None:
    """Kinds and shapes; where sentences are is the caller's word."""
    require_kind("packing", packing, Packing)
    require(len(mask) == 1, f"with packing, mask must have one row, got {len(mask)}")
    require_whole("packing.longest", packing.longest)
    for name in ("starts", "lengths"):
        index = getattr(packing, name)
        require_kind(f"packing.{name}", index, Tensor)
        if index.dtype != torch.int32 or index.dim() != 1:
            given = f"{index.dtype} of shape {tuple(index.shape)}"
            raise InputError(f"packing.{name} must be of type int32 and shape (S,), got {given}")
        if index.device != mask.device:
            raise InputError(f"packing.{name} must be on {mask.device}, got {index.device}")
    same = packing.starts.shape == packing.lengths.shape
    require(same, "packing.starts and packing.lengths must have the same shape")
