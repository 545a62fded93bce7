"""Structures of label and head variables: from the scores of a block of variables to its Q.

A block is all variables of one kind: all labels Z, or all heads H; a label of the sentence, such as
ROOT's, is a block of one variable. `mean_field` passes a structure
the block's messages divided by λ and the forbidden values; the structure decides which joint
assignments there are, and computes marginals, log-partition function and entropy. Variables that
are independent of each other are one structure; heads of a channel that form a tree are another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from probformer.sentinels import UNOBSERVED


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

    def of_channel(self, channel: int) -> Structure:
        """The structure of one channel; another one only where channels differ."""
        return self

    def without(self, channel: int) -> Structure:
        """The structure of all other channels."""
        return self

    def __call__(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        """`marginals`, so that a structure can be used as a normaliser."""
        return self.marginals(scores, forbidden)

    def log_partition(self, scores: Tensor, forbidden: Tensor) -> Tensor | None:
        """log Σ exp(score) over the joint assignments of each sentence.

        Args:
            scores: (B, …, values).
            forbidden: true for values that cannot be taken, broadcastable to the scores.

        Returns:
            (B,), or None where it is not defined.
        """
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

    def sample(
        self, scores: Tensor, forbidden: Tensor, count: int, generator: torch.Generator
    ) -> Tensor:
        """Values drawn from the joint distribution of the variables of each block.

        One variable after the other, from its marginals given the values of those before it.

        Args:
            scores: (B, blocks, variables, values).
            forbidden: true for values that cannot be taken, broadcastable to the scores.
            count: how many to draw.
            generator: where random numbers come from, on the CPU.

        Returns:
            (B, count, blocks, variables), the indices of values; any at padding.
        """
        shape = scores.shape
        forbidden = forbidden.expand(shape).repeat_interleave(count, 0)
        scores = scores.repeat_interleave(count, 0)
        drawn = [scores.new_zeros(*scores.shape[:2], 0, dtype=torch.long)]
        for variable in range(shape[2]):
            p = self.marginals(scores, forbidden)[:, :, variable].double().cpu().clamp(min=0)
            p = p + (p.sum(-1, keepdim=True) == 0)
            values = torch.multinomial(p.flatten(0, 1), 1, generator=generator)
            values = values.view(p.shape[:2]).to(scores.device)
            observed = values.new_full(scores.shape[:3], UNOBSERVED)
            observed[:, :, variable] = values
            forbidden = self.condition(forbidden, observed)
            drawn.append(values.unsqueeze(2))
        return torch.cat(drawn, 2).unflatten(0, (shape[0], count))

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

    def fault(self, heads: Sequence[int]) -> tuple[int, str] | None:
        """Why no assignment has these heads in a channel, for error messages.

        Args:
            heads: of each word: the position of its head, `sentinels.ROOT`, or
                `sentinels.UNOBSERVED` for a head that is not known.

        Returns:
            The position of a word, and what is wrong with it; None if an assignment has them.
        """
        return None
