"""Trees without crossing arcs: log Z by the algorithm of Eisner, with sums in place of maxima.

A span of words is complete if its head has all of its dependents in it, and open if its two ends
are a head and its dependent. ROOT stands in front of the sentence, as word 0. Spans of width w
come from narrower ones, all at once:

    open(s, e)      = arc + logΣ_m  complete(head s, s…m) + complete(head e, m+1…e)
    complete(s…e)   =       logΣ_m  open(s → m)           + complete(head m, m…e)

and the same with the head at the end. Marginals are the gradient of log Z, and their derivative is
the gradient of that, both by automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from probformer.crf.structures.trees import Trees
from probformer.sentinels import ROOT, UNOBSERVED

_NONE = -1e300
"""The log weight of a span that cannot be: −∞ has no gradient."""
_MOST_PARTS = 2**26
"""Of trees that are drawn together: their number times n³."""


class ProjectiveTrees(Trees):
    """All trees under ROOT without crossing arcs; arcs from ROOT are crossed by those above it.

    Args:
        single_root: whether exactly one word has ROOT as its head, or one or more.
    """

    def solve(self, scores: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        log_z, marginals, _ = self._sums(scores, forbidden)
        log_z = log_z.masked_fill(log_z < _NONE / 2, -torch.inf)
        return log_z, marginals, (scores, forbidden)

    def derivative(self, kept: Sequence[Tensor], direction: Tensor) -> Tensor:
        _, marginals, leaf = self._sums(*kept, differentiable=True)
        return torch.autograd.grad(marginals, leaf, direction)[0]

    def _sums(
        self, scores: Tensor, forbidden: Tensor, differentiable: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """log Z, its gradient, and the copy of the scores by which they can be differentiated."""
        with torch.enable_grad():
            leaf = scores.detach().requires_grad_()
            log_z = self._inside(leaf, forbidden)
            (slope,) = torch.autograd.grad(log_z.sum(), leaf, create_graph=differentiable)
        return log_z.detach(), slope, leaf

    def sample(
        self, scores: Tensor, forbidden: Tensor, count: int, generator: torch.Generator
    ) -> Tensor:
        """Trees, (B, count, channels, n): from the whole sentence down, each sum draws one part."""

        def draw_part(parts: Tensor) -> Tensor:
            return _DrawnPart.apply(parts, generator)

        shape = scores.shape
        rows = [
            x.expand(shape).flatten(0, 1).repeat_interleave(count, 0) for x in (scores, forbidden)
        ]
        size = max(1, _MOST_PARTS // max(shape[2], 1) ** 3)
        drawn = []
        for own, closed in zip(*(x.split(size) for x in rows), strict=True):
            with torch.enable_grad():
                leaf = own.detach().double().requires_grad_()
                log_z = self._inside(leaf, closed, draw_part)
                (tree,) = torch.autograd.grad(log_z.sum(), leaf)
            drawn.append(tree.argmax(-1))
        return torch.cat(drawn).unflatten(0, (*shape[:2], count)).transpose(1, 2)

    def fault(self, heads: Sequence[int]) -> tuple[int, str] | None:
        found = super().fault(heads)
        if found is not None:
            return found
        arcs = [(word, head) for word, head in enumerate(heads) if head >= 0]
        for word, head in arcs:
            for other, its_head in arcs:
                if _inside_arc(other, word, head) != _inside_arc(its_head, word, head) and not (
                    {other, its_head} & {word, head}
                ):
                    return word, "has an arc that crosses another"
        below = [word for word in range(len(heads)) if any(_inside_arc(word, *arc) for arc in arcs)]
        for word in below:
            if heads[word] == ROOT:
                return word, "has ROOT as its head, but is below an arc, which ROOT's arc crosses"
        if UNOBSERVED in heads and not self._is_possible(heads):
            return below[
                0
            ], "is below an arc, so that what is known leaves no tree without crossings"
        return None

    def _is_possible(self, heads: Sequence[int]) -> bool:
        n = len(heads)
        index = torch.tensor([n if head == ROOT else head for head in heads])
        forbidden = self.condition(torch.eye(n, n + 1, dtype=torch.bool), index)
        log_z = self._inside(torch.zeros(1, n, n + 1, dtype=torch.float64), forbidden[None])
        return bool(log_z > _NONE / 2)

    def _inside(
        self, scores: Tensor, forbidden: Tensor, total: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """log Z (S,).

        Args:
            scores: (S, n, n+1).
            forbidden: (S, n, n+1).
            total: computes a logsumexp over the last axis, for other gradients.
        """
        total = _logsumexp if total is None else total
        arcs, lengths = _arcs(scores, forbidden)
        count, size, _ = arcs.shape  # sentences, words with ROOT
        # Complete spans with their head at the left (right) end, by their first and their last
        # word; open spans by the end where the head is. Axes: sentence, word, width; only words of
        # spans that get wider. Charts that are added have opposite orders of widths.
        left_by_start = left_by_end = right_by_start = right_by_end = arcs.new_zeros(count, size, 1)
        open_left = open_right = arcs.new_zeros(count, size, 0)
        for width in range(1, size):
            left_by_start, right_by_start = left_by_start[:, :-1], right_by_start[:, :-1]
            left_by_end, right_by_end = left_by_end[:, 1:], right_by_end[:, 1:]
            halves = left_by_start + right_by_end
            if self.single_root:  # nothing hangs from ROOT before this word
                halves = torch.where(_from_root(halves), _NONE, halves)
            inner = total(halves)
            to_end, to_start = arcs.diagonal(-width, 1, 2), arcs.diagonal(width, 1, 2)
            open_left = torch.cat([open_left[:, :-1], (inner + to_end).unsqueeze(2)], 2)
            open_right = torch.cat([open_right[:, 1:], (inner + to_start).unsqueeze(2)], 2)
            left = total(open_left + left_by_end).unsqueeze(2)
            right = total(open_right + right_by_start).unsqueeze(2)
            left_by_start = torch.cat([left_by_start, left], 2)
            left_by_end = torch.cat([left, left_by_end], 2)
            right_by_start = torch.cat([right, right_by_start], 2)
            right_by_end = torch.cat([right, right_by_end], 2)
        return left_by_start[:, 0].gather(1, lengths.unsqueeze(1)).squeeze(1)


def _logsumexp(parts: Tensor) -> Tensor:
    return parts.logsumexp(-1)


class _DrawnPart(torch.autograd.Function):
    """logsumexp over the last axis, whose gradient goes to one part, drawn by its share.

    Each span is a part of at most one larger span of a tree, so that gradients are zero or one, and
    the gradient of log Z is a tree, drawn from the distribution.
    """

    @staticmethod
    def forward(ctx: Any, parts: Tensor, generator: torch.Generator) -> Tensor:
        ctx.save_for_backward(parts)
        ctx.generator = generator
        return parts.logsumexp(-1)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor, None]:
        (parts,) = ctx.saved_tensors
        (used,) = grad_outputs
        slope = torch.zeros_like(parts)
        where = used.nonzero(as_tuple=True)
        if len(where[0]):
            p = parts[where].softmax(-1).cpu()
            chosen = torch.multinomial(p, 1, generator=ctx.generator).squeeze(1).to(parts.device)
            slope[(*where, chosen)] = 1.0
        return slope, None


def _inside_arc(word: int, first: int, second: int) -> bool:
    """Whether a word is strictly between the two ends of an arc."""
    return min(first, second) < word < max(first, second)


def _arcs(scores: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor]:
    """Arcs (S, 1+n, 1+n) with ROOT as word 0 and padding at the end, and the lengths (S,)."""
    is_padding = forbidden.all(-1)
    order = is_padding.to(torch.uint8).argsort(dim=1, stable=True)
    given = torch.where(forbidden, _NONE, scores)
    words, root = given[..., :-1], given[..., -1:]
    words = words.gather(1, order.unsqueeze(2).expand_as(words))
    words = words.gather(2, order.unsqueeze(1).expand_as(words))
    arcs = torch.cat([root.gather(1, order.unsqueeze(2)), words], -1)
    return F.pad(arcs, (0, 0, 1, 0), value=_NONE), (~is_padding).sum(1)


def _from_root(halves: Tensor) -> Tensor:
    """True for spans (words, widths) that start at ROOT and give it a dependent."""
    _, words, widths = halves.shape
    starts = torch.arange(words, device=halves.device).unsqueeze(1)
    return (starts == 0) & (torch.arange(widths, device=halves.device) > 0)
