"""Variables that are independent of each other, given the scores."""

from __future__ import annotations

import torch
from torch import Tensor

from probformer.crf.normalisers import Normaliser, softmax
from probformer.crf.structures.structure import Structure


class Independent(Structure):
    """Variables that are independent of each other: each is normalised from its row of scores.

    Args:
        normaliser: from scores and forbidden values to distributions, as those in `normalisers`.
    """

    def __init__(self, normaliser: Normaliser = softmax) -> None:
        self.normaliser = normaliser
        self.is_softmax = normaliser is softmax

    def marginals(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        return self.normaliser(scores, forbidden)

    def log_partition(self, scores: Tensor, forbidden: Tensor) -> Tensor | None:
        if not self.is_softmax:
            return None
        none = forbidden.all(-1, keepdim=True)
        rows = scores.masked_fill(forbidden & ~none, -torch.inf).logsumexp(-1)
        return rows.masked_fill(none.squeeze(-1), 0.0).flatten(1).sum(1)

    def entropy(
        self, scores: Tensor, marginals: Tensor, forbidden: Tensor, step: float = 1.0
    ) -> Tensor | None:
        """From the marginals alone, as rows are independent, so that it holds for mixtures, too."""
        return row_entropy(marginals) if self.is_softmax else None


def row_entropy(marginals: Tensor) -> Tensor:
    """Σ H of rows that are independent of each other, (B, …, values) -> (B,)."""
    return torch.special.entr(marginals).flatten(1).sum(1)
