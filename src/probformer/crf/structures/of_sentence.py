"""A structure of blocks for a variable that a sentence has only one of."""

from __future__ import annotations

from torch import Tensor

from probformer.crf.structures.structure import Structure


class OfSentence(Structure):
    """One variable of each sentence, with scores (B, values), as a block of one variable.

    Args:
        structure: the structure of blocks (B, variables, values).
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    def marginals(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        return self.structure.marginals(scores.unsqueeze(1), forbidden.unsqueeze(1)).squeeze(1)

    def entropy(
        self, scores: Tensor, marginals: Tensor, forbidden: Tensor, step: float = 1.0
    ) -> Tensor | None:
        scores, marginals, forbidden = (x.unsqueeze(1) for x in (scores, marginals, forbidden))
        return self.structure.entropy(scores, marginals, forbidden, step)
