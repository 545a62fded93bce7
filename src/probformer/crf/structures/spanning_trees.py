"""All spanning trees: log Z and marginals by an elimination of words without subtractions.

The matrix-tree theorem gives log Z as the determinant of a Laplacian. Its usual inversion fails
where two words claim each other almost certainly, as then the Laplacian is nearly singular. The
elimination of Grassmann, Taksar and Heyman only adds and multiplies what is positive. Words are
eliminated one after the other; whoever hung from an eliminated word i hangs from i's heads:

    s_i = Σ_j A_ij,   p_ij = A_ij / s_i,   A_kj += A_ki p_ij,   log Z = Σ_i log s_i

with A_ij = exp(score of j as the head of i), and j among the words that are left, and ROOT. With a
single root, ROOT is left out of s_i but for the last word, where s is A_1,ROOT.

Marginals are μ_ij = A_ij M_ij with M = ∂log Z/∂A. Going back from the last word to the first, M of
the words k that were left when i was eliminated gives that of i:

    M_ki = Σ_j M_kj p_ij,    M_ij = (1 − Σ_k A_ki M_ki + Σ_k A_ki M_kj) / s_i

where with a single root M_i,ROOT has the last sum only. Each A_ki M_ki is a probability, so that
the one subtraction costs no more than rounding does.
"""

from __future__ import annotations

import torch
from torch import Tensor

from probformer.crf.structures.tree_samples import draw_trees
from probformer.crf.structures.trees import Trees

_LOWEST = -600.0
"""A score counts as at least its row's largest score minus 600: e^−600 and its inverse are numbers
in double precision, and arcs that are less probable do not matter where there is a choice."""
_STEP = 1e-20
"""The imaginary step of derivatives; its square is nothing beside 1."""


class SpanningTrees(Trees):
    """All trees under ROOT, crossing arcs included.

    With a single root, evidence has to leave each word one head or all heads.

    Args:
        single_root: whether exactly one word has ROOT as its head, or one or more.
    """

    def solve(self, scores: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor]:
        if not scores.shape[1]:
            return scores.new_zeros(len(scores)), scores
        order = _order(scores, forbidden)
        scores, forbidden = _root_first(scores, order), _root_first(forbidden, order)
        weights, largest = _weights(scores, forbidden)
        is_padding = forbidden.all(-1)
        a = weights.clone()  # padding hangs from the word in the first place, and that from ROOT
        a[:, 0, 0] += is_padding[:, 0]
        a[:, 1:, 1] += is_padding[:, 1:]
        log_z, m = self._eliminate(a.permute(1, 2, 0).contiguous())
        marginals = _root_last(weights * m.permute(2, 0, 1), order)
        return log_z + largest.sum((1, 2)), marginals

    def derivative(self, scores: Tensor, forbidden: Tensor, direction: Tensor) -> Tensor:
        """By a complex step: f(x + iεg) = f(x) + iε f′(x)g − …, without a difference of values."""
        moved = torch.complex(scores, _STEP * direction)
        return self.solve(moved, forbidden)[1].imag / _STEP

    def sample(
        self, scores: Tensor, forbidden: Tensor, count: int, generator: torch.Generator
    ) -> Tensor:
        """Trees, (B, count, channels, n); a single root word is drawn before the rest."""
        shape = scores.shape
        scores, forbidden = scores.double().flatten(0, 1), forbidden.expand(shape).flatten(0, 1)
        weights = _weights(scores, forbidden)[0].cpu().roll(1, -1)
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

    def _eliminate(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """log Z (S,) and M.

        Args:
            a: A (n, 1 + n, S), which is changed; column 0 is ROOT. Sentences come last, so that
                each step goes over memory in order.
        """
        n, first = len(a), 1 if self.single_root else 0
        totals = torch.empty_like(a[:, 0])
        for i in range(n - 1, 0, -1):
            heads = a[i, : i + 1]
            totals[i] = heads[first:].sum(0)
            heads /= totals[i]
            a[:i, : i + 1].addcmul_(a[:i, i + 1].unsqueeze(1), heads)
        totals[0] = a[0, 0]
        m = torch.zeros_like(a)
        m[0, 0] = 1 / totals[0]
        for i in range(1, n):
            heads, dependents, done = a[i, : i + 1], a[:i, i + 1] / totals[i], m[:i, : i + 1]
            m[:i, i + 1] = (done * heads).sum(1)
            m[i, : i + 1] = (dependents.unsqueeze(1) * done).sum(0)
            m[i, first : i + 1] += 1 / totals[i] - (dependents * m[:i, i + 1]).sum(0)
        return totals.log().sum(0), m


def _weights(scores: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor]:
    """exp(score − largest of the row), zero where forbidden; and the largest, 0 at padding."""
    real = scores.real if scores.is_complex() else scores
    largest = real.masked_fill(forbidden, -torch.inf).amax(-1, keepdim=True)
    largest = largest.masked_fill(largest.isneginf(), 0.0)
    shifted = scores - largest
    shifted = torch.where(real - largest < _LOWEST, _LOWEST, shifted)
    return shifted.exp().masked_fill(forbidden, 0.0), largest


def _order(scores: Tensor, forbidden: Tensor) -> Tensor:
    """(S, n): the words, the first exchanged with the one that prefers ROOT to words the most.

    The first word is eliminated last. It has to be one that hangs from ROOT in a tree.
    """
    real = scores.real if scores.is_complex() else scores
    real = real.masked_fill(forbidden, -torch.inf)
    root = real[..., -1]
    preference = (root - real[..., :-1].amax(-1)).masked_fill(root.isneginf(), -torch.inf)
    best = preference.argmax(1, keepdim=True)
    order = torch.arange(real.shape[1], device=real.device).repeat(len(real), 1)
    order[:, :1] = best
    return order.scatter(1, best, 0)


def _root_first(x: Tensor, order: Tensor) -> Tensor:
    """(S, n, n+1) with words in this order, and ROOT's column in front of theirs."""
    return torch.cat([_exchanged(x[..., -1:], order), _exchanged(x[..., :-1], order, True)], -1)


def _root_last(x: Tensor, order: Tensor) -> Tensor:
    """The inverse: the order exchanges two words, so it is its own inverse."""
    return torch.cat([_exchanged(x[..., 1:], order, True), _exchanged(x[..., :1], order)], -1)


def _exchanged(x: Tensor, order: Tensor, columns: bool = False) -> Tensor:
    x = x.gather(1, order.unsqueeze(2).expand(-1, -1, x.shape[2]))
    return x.gather(2, order.unsqueeze(1).expand(-1, x.shape[1], -1)) if columns else x
