"""What a block of variables does with its scores: which joint values it has, and Q over them.

All labels of a kind are a block, and all heads. `mean_field` gives a block its messages over λ, and
tells it what cannot be; everything else is the block's own. Rows that are independent of each other
are one structure; that all heads of a channel form a tree would be another.
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
    for values that cannot be taken. Padding has no value, and adds nothing to sums.
    """

    is_softmax = False
    """Whether each row is a softmax of its own: then fused kernels may compute it."""

    @abstractmethod
    def marginals(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        """The distribution of each variable, (B, …, values), zero where it is forbidden."""

    def __call__(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        """A structure is a normaliser that knows more about what it does."""
        return self.marginals(scores, forbidden)

    def log_partition(self, scores: Tensor, forbidden: Tensor) -> Tensor | None:
        """log Σ exp(score) over all joint values of each sentence, (B,), where that is defined."""
        return None

    def entropy(
        self, scores: Tensor, marginals: Tensor, forbidden: Tensor, step: float = 1.0
    ) -> Tensor | None:
        """H(Q) of each sentence, (B,); None where the free energy is not defined.

        Marginals alone do not determine the entropy of a joint distribution, scores do: it is
        log Z − ⟨marginals, scores⟩, as long as the marginals are those of the scores.

        Args:
            scores: (B, …, values), of the last update.
            marginals: (B, …, values), after it; with a step size below one a mixture.
            forbidden: true for values that cannot be taken.
            step: the step size α of that update.
        """
        log_partition = self.log_partition(scores, forbidden) if step == 1 else None
        if log_partition is None:
            return None
        products = torch.where(marginals > 0, marginals * scores, 0.0)
        return log_partition - products.flatten(1).sum(1)

    def condition(self, forbidden: Tensor, observed: Tensor) -> Tensor:
        """`forbidden` once some variables are observed: all other values of theirs are, too.

        Args:
            forbidden: (…, values), broadcastable to (B, …, values).
            observed: (B, …), the observed value of each variable, negative where there is none.
        """
        values = torch.arange(forbidden.shape[-1], device=observed.device)
        index = observed.unsqueeze(-1)
        return forbidden | (index >= 0) & (values != index)

    def allows(self, values: Sequence[int]) -> bool:
        """Whether the variables of a block of one sentence, and one channel, may take these values.

        `reference` asks it, and sums over all that are allowed; a value that is forbidden for a
        variable by itself does not come up.
        """
        return True


class Independent(Structure):
    """Every variable by itself, from its own row of scores.

    Args:
        normaliser: from scores and what is forbidden to distributions, as in `normalisers`.
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
        """From the marginals, which determine it, those of mixtures included."""
        return row_entropy(marginals) if self.is_softmax else None


def row_entropy(marginals: Tensor) -> Tensor:
    """Σ H of rows that are independent of each other, (B, …, values) -> (B,)."""
    return torch.special.entr(marginals).flatten(1).sum(1)


def label_structure(inference: Inference) -> Structure:
    """Of the labels of words, and of every other variable with labels."""
    return _as_structure(inference.normaliser_z)


def head_structure(inference: Inference) -> Structure:
    """Of H. The head variables of other factors are independent rows."""
    if inference.heads == "independent":
        return _as_structure(inference.normaliser_h)
    require_kind("heads", inference.heads, Structure)
    message = "heads with a structure of their own need normaliser_h 'softmax'"
    require(inference.normaliser_h == "softmax", message)
    return cast(Structure, inference.heads)


def row_structure(inference: Inference) -> Structure:
    """Of the head variables of factors, such as split global features."""
    return _as_structure(inference.normaliser_h)


def _as_structure(given: str | Callable[..., Any]) -> Structure:
    """A normaliser, by its name or as a function, stands for independent rows."""
    if isinstance(given, Structure):
        return given
    return Independent(NORMALISERS[given] if isinstance(given, str) else given)
