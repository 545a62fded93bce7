"""Heads that form a tree: what spanning trees and projective trees have in common.

The heads of a channel are one variable, the tree, with Q(tree) ∝ exp(Σ scores of its arcs). Given
all messages, this Q is the exact minimiser of the free energy over distributions of trees. Its
marginals μ are the gradient of log Z. So their Jacobian is the Hessian of log Z, which is
symmetric, and the gradient of ⟨g, μ⟩ is the derivative of μ in the direction g.

Everything is computed in double precision. Scores are messages times 1/λ_H = d, and differ by
hundreds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from probformer.crf.structures.structure import Structure
from probformer.sentinels import ROOT, UNOBSERVED


class Trees(Structure):
    """Trees under ROOT, whose column is the last of the scores (B, …, n, n+1).

    In a sentence of which no tree is allowed, log Z is −∞ and marginals are not defined.

    Args:
        single_root: whether exactly one word has ROOT as its head, or one or more.
    """

    def __init__(self, single_root: bool = True) -> None:
        self.single_root = single_root

    @abstractmethod
    def solve(self, scores: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """The log-partition function and its gradient.

        Args:
            scores: (S, n, n+1), in double precision; n > 0.
            forbidden: (S, n, n+1), true for arcs that cannot be; rows of padding are all true.

        Returns:
            log Z (S,), the marginals of arcs (S, n, n+1), and what `derivative` takes.
        """

    @abstractmethod
    def derivative(self, kept: Sequence[Tensor], direction: Tensor) -> Tensor:
        """The derivative of the marginals as scores move in a direction.

        Args:
            kept: the last result of `solve`.
            direction: (S, n, n+1).

        Returns:
            (S, n, n+1).
        """

    def marginals(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        """The probability of each arc, (B, …, n, n+1); at padding zero."""
        if not scores.numel():
            return scores
        found = _Marginals.apply(*_by_sentence(scores, forbidden), self)
        return found.view(scores.shape).to(scores.dtype)

    def log_partition(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        """log Σ exp(score of the tree), summed over the channels of a sentence, (B,)."""
        if not scores.numel():
            return scores.flatten(1).sum(1)
        found = _LogPartition.apply(*_by_sentence(scores, forbidden), self)
        return found.view(scores.shape[:-2]).flatten(1).sum(1).to(scores.dtype)

    def entropy(
        self, scores: Tensor, marginals: Tensor, forbidden: Tensor, step: float = 1.0
    ) -> Tensor | None:
        """log Z − ⟨μ, scores⟩, (B,), in double precision: it is a difference of large numbers."""
        precise = scores.double()
        found = super().entropy(precise, self.marginals(precise, forbidden), forbidden, step)
        return None if found is None else found.to(scores.dtype)

    def allows(self, values: Sequence[int]) -> bool:
        return UNOBSERVED not in values and self.fault(values) is None

    def fault(self, heads: Sequence[int]) -> tuple[int, str] | None:
        roots = [word for word, head in enumerate(heads) if head == ROOT]
        if self.single_root and len(roots) > 1:
            return roots[1], "is a second word with ROOT as its head"
        for word in range(len(heads)):
            if _is_on_cycle(word, heads):
                return word, "is on a cycle of heads"
        return None


def _is_on_cycle(word: int, heads: Sequence[int]) -> bool:
    above = heads[word]
    for _ in heads:
        if above < 0 or above == word:
            break
        above = heads[above]
    return above == word


def _by_sentence(scores: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor]:
    """(B, …, n, n+1) -> (S, n, n+1): each channel of each sentence for itself."""
    closed = forbidden.expand(scores.shape)
    return scores.flatten(0, -3).double(), closed.flatten(0, -3)


class _Marginals(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, forbidden: Tensor, trees: Trees) -> Tensor:
        _, marginals, kept = trees.solve(scores, forbidden)
        ctx.save_for_backward(*kept)
        ctx.trees = trees
        return marginals.clamp(0, 1)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor, None, None]:
        return ctx.trees.derivative(ctx.saved_tensors, grad_outputs[0]), None, None


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, forbidden: Tensor, trees: Trees) -> Tensor:
        log_z, marginals, _ = trees.solve(scores, forbidden)
        ctx.save_for_backward(scores, forbidden, marginals)
        ctx.trees = trees
        return log_z

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        scores, forbidden, marginals = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated, too
            marginals = _Marginals.apply(scores, forbidden, ctx.trees)
        return grad_outputs[0].view(-1, 1, 1) * marginals, None, None
