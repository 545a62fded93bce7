"""From scores to a distribution: softmax, and two alternatives to it.

A normaliser takes scores (…, m) and `forbidden`, true where a value cannot be taken
(broadcastable). It returns a distribution over the last axis that is zero on forbidden values,
and zero everywhere when all of them are forbidden: padding, or a lone word without a head.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Normaliser = Callable[[Tensor, Tensor], Tensor]


def softmax(scores: Tensor, forbidden: Tensor) -> Tensor:
    """exp(s) over its sum: the solution of the entropic Frank-Wolfe step (eq. 31)."""
    if forbidden.shape[-1] > 1:  # else all values of a row are forbidden, or none
        # The lowest finite number instead of -inf: the gradient of a row of -inf alone is NaN.
        scores = torch.where(forbidden, torch.finfo(scores.dtype).min, scores)
    return torch.where(forbidden, 0.0, scores.softmax(-1))


def relu(scores: Tensor, forbidden: Tensor) -> Tensor:
    """max(s, 0) over its sum."""
    return _over_sum(_scaled(scores, forbidden).relu(), forbidden)


def squares(scores: Tensor, forbidden: Tensor) -> Tensor:
    """s² over its sum."""
    return _over_sum(_scaled(scores, forbidden).square(), forbidden)


def _scaled(scores: Tensor, forbidden: Tensor) -> Tensor:
    """Scores over their largest absolute value: the same ratios, without overflow."""
    scores = scores.masked_fill(forbidden, 0.0)
    if scores.shape[-1] == 0:
        return scores
    largest = scores.detach().abs().amax(-1, keepdim=True)
    return scores / torch.where(largest > 0, largest, 1)


def _over_sum(weights: Tensor, forbidden: Tensor) -> Tensor:
    """Weights over their sum; uniform over the allowed values where all weights are zero."""
    allowed = (~forbidden).to(weights.dtype).expand_as(weights)
    total = weights.sum(-1, keepdim=True)
    uniform = allowed / allowed.sum(-1, keepdim=True).clamp(min=1)
    return torch.where(total > 0, weights / torch.where(total > 0, total, 1), uniform)


NORMALISERS: dict[str, Normaliser] = {"softmax": softmax, "relu": relu, "squares": squares}
