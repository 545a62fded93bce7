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
from probformer.crf.structures.tree_samples import draw_trees
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
        last = (_reached_by_all(forbidden),) if self.single_root else ()
        weights = _reordered(weights, *last)
        log_z, m, _ = self._eliminate(weights)
        return log_z + scale, _reordered(weights * m, *last), (weights, *last)

    def derivative(self, kept: Sequence[Tensor], direction: Tensor) -> Tensor:
        weights, *last = kept
        direction = _reordered(direction, *last)
        _, m, moved = self._eliminate(weights, weights * direction)
        assert moved is not None
        return _reordered(weights * (direction * m + moved), *last)

    def sample(
        self, scores: Tensor, forbidden: Tensor, count: int, generator: torch.Generator
    ) -> Tensor:
        """Trees, (B, count, channels, n); a single root word is drawn before the rest."""
        shape = scores.shape
        scores, forbidden = scores.double().flatten(0, 1), forbidden.expand(shape).flatten(0, 1)
        weights = self._weights(scores, forbidden)[0].cpu().roll(1, -1)
        below_root = (~weights.any(-1)).repeat_interleave(count, 0)  # here padding
        weights = weights.repeat_interleave(count, 0)
        if self.single_root:
            p = self.solve(scores, forbidden)[1][..., -1].clamp(min=0).cpu()
            p = p.masked_fill(forbidden.cpu().all(-1).all(-1, keepdim=True), 1.0)
            root = torch.multinomial(p, count, replacement=True, generator=generator)
            below_root |= root.view(-1, 1) == torch.arange(shape[2])
            weights = weights.masked_fill(below_root.unsqueeze(2), 0.0)
            weights[..., 0] = 0.0
        weights[..., 0] += below_root
        heads = draw_trees(weights, generator)
        heads = torch.where(heads == 0, shape[2], heads - 1).to(scores.device)
        return heads.unflatten(0, (*shape[:2], count)).transpose(1, 2)

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
            weights: A (S, n, n+1), in the order of elimination.
            tangent: the direction, (S, n, n+1).
        """
        a, is_padding = weights.clone(), weights.amax(-1) == 0
        a[:, :-1, -2] += is_padding[:, :-1]  # padding hangs from the last word,
        a[:, -1, -1] += is_padding[:, -1]  # or from ROOT, if it is the last word
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


def _reordered(x: Tensor, last: Tensor | None = None) -> Tensor:
    """(S, n, n+1) where a word (S, 1) has changed places with the last one; its own inverse."""
    if last is None:
        return x
    count, n, columns = x.shape
    for dim, shape in ((1, (count, 1, columns)), (2, (count, n, 1))):
        index, old = last.unsqueeze(2).expand(shape), x
        x = old.scatter(dim, index, old.narrow(dim, n - 1, 1))
        x.narrow(dim, n - 1, 1).copy_(old.gather(dim, index))
    return x


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
