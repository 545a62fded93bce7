"""Structures of label and head variables: from the scores of a block of variables to its Q.

A block is all variables of one kind: all labels Z, or all heads H; a label of the sentence, such as
ROOT's, is a block of one variable. `mean_field` passes a structure
the block's messages divided by λ and the forbidden values; the structure decides which joint
assignments there are, and computes marginals, log-partition function and entropy. Variables that
are independent of each other are one structure; heads of a channel that form a tree are another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from probformer.config import Inference
from probformer.crf.normalisers import NORMALISERS, Normaliser, softmax
from probformer.errors import require, require_kind


class Structure(ABC):
    """The joint distribution of a block of variables, given its scores.

    Scores are (B, …, values), messages divided by λ; `forbidden`, broadcastable to them, is true
    for values that cannot be taken. At padding all values are forbidden: marginals are zero there,
    and sums over a sentence leave it out.
    """

    is_softmax = False
    """Whether marginals are the softmax of each row of scores, which fused kernels need."""

    @abstractmethod
    def marginals(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        """The distribution of each variable.

        Args:
            scores: (B, …, values).
            forbidden: true for values that cannot be taken, broadcastable to the scores.

        Returns:
            (B, …, values), zero for forbidden values.
        """

    def __call__(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        """`marginals`, so that a structure can be used as a normaliser."""
        return self.marginals(scores, forbidden)

    def log_partition(self, scores: Tensor, forbidden: Tensor) -> Tensor | None:
        """log Σ exp(score) over the joint assignments of each sentence, (B,); None if undefined."""
        return None

    def entropy(
        self, scores: Tensor, marginals: Tensor, forbidden: Tensor, step: float = 1.0
    ) -> Tensor | None:
        """H(Q) of each sentence.

        The marginals alone do not determine the entropy of a joint distribution. With its scores
        it is log Z − ⟨marginals, scores⟩, which holds only for the marginals of these scores.

        Args:
            scores: (B, …, values), of the last update.
            marginals: Q after it, (B, …, values); with a step size below one a mixture.
            forbidden: true for values that cannot be taken.
            step: the step size α of that update.

        Returns:
            (B,), or None where it, and so the free energy, is not defined: here for α < 1.
        """
        log_partition = self.log_partition(scores, forbidden) if step == 1 else None
        if log_partition is None:
            return None
        products = torch.where(marginals > 0, marginals * scores, 0.0)
        return log_partition - products.flatten(1).sum(1)

    def condition(self, forbidden: Tensor, observed: Tensor) -> Tensor:
        """`forbidden` with all values of an observed variable added but the observed one.

        Args:
            forbidden: (…, values), broadcastable to (B, …, values).
            observed: (B, …), the observed value of each variable, negative where there is none.

        Returns:
            (B, …, values).
        """
        values = torch.arange(forbidden.shape[-1], device=observed.device)
        index = observed.unsqueeze(-1)
        return forbidden | (index >= 0) & (values != index)

    def allows(self, values: Sequence[int]) -> bool:
        """Whether variables of one sentence, of heads those of one channel, may take these values.

        `reference` calls it to enumerate the allowed assignments.

        Args:
            values: of each variable, in the order of words: a label's index; of a head its
                position, `sentinels.ROOT`, or n and more for a column of another factor, as they
                follow one another in H. Values that are forbidden for a single variable do not
                occur.
        """
        return True


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


def row_entropy(marginals: Tensor) -> Tensor:
    """Σ H of rows that are independent of each other, (B, …, values) -> (B,)."""
    return torch.special.entr(marginals).flatten(1).sum(1)


def label_structure(inference: Inference) -> Structure:
    """The structure of Z, and that of each kind of label variables of factors."""
    return _as_structure(inference.normaliser_z)


def head_structure(inference: Inference) -> Structure:
    """The structure of H; that of the head variables of other factors is `row_structure`."""
    if inference.heads == "independent":
        return _as_structure(inference.normaliser_h)
    require_kind("heads", inference.heads, Structure)
    message = "normaliser_h must be 'softmax' where heads is a Structure"
    require(inference.normaliser_h == "softmax", message)
    return cast(Structure, inference.heads)


def row_structure(inference: Inference) -> Structure:
    """The structure of the head variables of factors, such as split global features."""
    return _as_structure(inference.normaliser_h)


def _as_structure(given: str | Callable[..., Any]) -> Structure:
    """A normaliser, by its name or as a function, means independent rows."""
    if isinstance(given, Structure):
        return given
    return Independent(NORMALISERS[given] if isinstance(given, str) else given)
