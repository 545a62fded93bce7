"""All spanning trees: log Z and the marginals of arcs, μ_ij = A_ij ∂log Z/∂A_ij, A = exp(scores).

Weights A are scaled so that the largest ones are 1. Each word has one head, so a row of A may be
multiplied by any number; and so may ROOT's column where a tree has a single root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from probformer.crf.devices import kernels_run_on
from probformer.crf.structures.elimination import eliminate
from probformer.crf.structures.trees import Trees

_LOWEST = -600.0
"""A score counts as at least the largest one minus 600: e^−600 and its inverse are numbers in
double precision, and arcs that are less probable do not matter where there is a choice."""


class SpanningTrees(Trees):
    """All trees under ROOT, crossing arcs included.

    Args:
        single_root: whether exactly one word has ROOT as its head, or one or more.
    """

    def solve(self, scores: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        weights, scale = self._weights(scores, forbidden)
        last = _reached_by_all(forbidden) if self.single_root else _first_word(forbidden)
        ordered, restored = _places(last, scores.shape[1])
        weights = _at(ordered, weights)
        log_z, m, _ = self._eliminate(weights)
        return log_z + scale, _at(restored, weights * m), (weights, last)

    def derivative(self, kept: Sequence[Tensor], direction: Tensor) -> Tensor:
        weights, last = kept
        ordered, restored = _places(last, direction.shape[1])
        direction = _at(ordered, direction)
        _, m, moved = self._eliminate(weights, weights * direction)
        assert moved is not None
        return _at(restored, weights * (direction * m + moved))

    def _weights(self, scores: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor]:
        """A (S, n, n+1), zero where forbidden, and the log of what Z has to be times, (S,)."""
        allowed = scores.masked_fill(forbidden, -torch.inf)
        competing = allowed[..., :-1] if self.single_root else allowed
        largest = _finite(competing.amax(-1, keepdim=True))
        allowed -= largest
        scale = largest.sum((1, 2))
        if self.single_root:
            of_root = _finite(allowed[..., -1:].amax(1, keepdim=True))
            allowed[..., -1:] -= of_root
            scale = scale + of_root.flatten()
        return allowed.clamp_(min=_LOWEST).exp_().masked_fill_(forbidden, 0.0), scale

    def _eliminate(
        self, weights: Tensor, tangent: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """log Z, M = ∂log Z/∂A, and the derivative of M in a direction, if one is given.

        Args:
            weights: A (S, n, 1 + n), with words in the order of `_places`.
            tangent: the direction, (S, n, 1 + n).
        """
        a, is_padding = weights.clone(), weights.amax(-1) == 0
        a[:, 0, 0] += is_padding[:, 0]  # padding hangs from the first word, or is it, from ROOT
        a[:, 1:, 1] += is_padding[:, 1:]
        return _elimination_on(weights.device)(a, self.single_root, tangent)


def _elimination_on(device: torch.device) -> Callable[..., tuple[Tensor, Tensor, Tensor | None]]:
    """`eliminate`, by a kernel where there is one."""
    if not kernels_run_on(device) or torch.compiler.is_compiling():
        return eliminate
    from probformer.kernels.crf import trees

    return trees.eliminate


def _finite(largest: Tensor) -> Tensor:
    """Zero in place of −∞, where nothing is allowed."""
    return largest.masked_fill(largest.isneginf(), 0.0)


def _places(last: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Where in (n, n+1) the weights of ordered words are, ROOT in front; and the inverse.

    The word that is eliminated last comes first. It changes places with the one that was there.
    """
    order = torch.arange(n, device=last.device).repeat(len(last), 1).scatter(1, last, 0)
    order[:, :1] = last
    rows, root = order.unsqueeze(2) * (n + 1), torch.zeros_like(last)
    ordered = rows + torch.cat([root + n, order], 1).unsqueeze(1)
    return ordered, rows + torch.cat([order + 1, root], 1).unsqueeze(1)


def _at(places: Tensor, x: Tensor) -> Tensor:
    return x.flatten(1).gather(1, places.flatten(1)).view_as(x)


def _first_word(forbidden: Tensor) -> Tensor:
    return torch.zeros(len(forbidden), 1, dtype=torch.long, device=forbidden.device)


def _reached_by_all(forbidden: Tensor) -> Tensor:
    """(S, 1): a word to which arcs lead from every other word, if there is one.

    With a single root, a word that is not such a one cannot be eliminated last.

    Args:
        forbidden: (S, n, n+1), true for arcs that cannot be; rows of padding are all true.
    """
    allowed = (~forbidden).float()
    steps = allowed[..., :-1] + (allowed.amax(-1, keepdim=True) == 0)
    steps.diagonal(dim1=1, dim2=2).fill_(1.0)
    may_stop = steps.is_cpu and not torch.compiler.is_compiling()  # a GPU is not waited for
    for _ in range((steps.shape[1] - 2).bit_length()):  # paths of twice as many arcs, up to n − 1
        if may_stop and bool(steps.amin(1).amax(1).all()):
            break
        steps = (steps @ steps).clamp(max=1)
    return steps.amin(1).argmax(1, keepdim=True)
