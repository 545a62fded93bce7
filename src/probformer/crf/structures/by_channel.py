"""A structure for each channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor

from probformer.crf.structures.structure import Structure


class ByChannel(Structure):
    """Channels with structures of their own, such as trees in the first and rows in the others.

    Args:
        structures: one for each channel. Neighbours that share an object are computed together.
    """

    def __init__(self, structures: Sequence[Structure]) -> None:
        self.structures = list(structures)

    def of_channel(self, channel: int) -> Structure:
        return self.structures[channel]

    def without(self, channel: int) -> Structure:
        return ByChannel(self.structures[:channel] + self.structures[channel + 1 :])

    def marginals(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        found = [
            structure.marginals(scores[:, at], closed[:, at])
            for structure, at, closed in self._groups(scores, forbidden)
        ]
        return torch.cat(found, 1) if found else scores

    def log_partition(self, scores: Tensor, forbidden: Tensor) -> Tensor | None:
        found = (
            structure.log_partition(scores[:, at], closed[:, at])
            for structure, at, closed in self._groups(scores, forbidden)
        )
        return _total(scores, found)

    def entropy(
        self, scores: Tensor, marginals: Tensor, forbidden: Tensor, step: float = 1.0
    ) -> Tensor | None:
        found = (
            structure.entropy(scores[:, at], marginals[:, at], closed[:, at], step)
            for structure, at, closed in self._groups(scores, forbidden)
        )
        return _total(scores, found)

    def _groups(
        self, scores: Tensor, forbidden: Tensor
    ) -> Iterator[tuple[Structure, slice, Tensor]]:
        closed, first = forbidden.expand(scores.shape), 0
        for _, group in groupby(self.structures, key=id):
            same = list(group)
            yield same[0], slice(first, first + len(same)), closed
            first += len(same)


def _total(scores: Tensor, parts: Iterator[Tensor | None]) -> Tensor | None:
    """Their sum for each sentence, (B,); None if one of them is None."""
    total = scores.new_zeros(len(scores))
    for part in parts:
        if part is None:
            return None
        total = total + part
    return total
