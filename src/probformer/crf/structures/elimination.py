"""Sums over all spanning trees, by an elimination of words without subtractions.

The matrix-tree theorem gives the sum Z over all trees as the determinant of a Laplacian. Its usual
inversion fails where two words claim each other almost certainly, as then the Laplacian is nearly
singular. The elimination of Grassmann, Taksar and Heyman only adds and multiplies what is positive.
Words are eliminated one after the other; whoever hung from an eliminated word i hangs from i's
heads:

    s_i = Σ_j A_ij,   p_ij = A_ij / s_i,   A_kj += A_ki p_ij,   log Z = Σ_i log s_i

with A_ij = exp(score of j as the head of i), and j among the words that are left, and ROOT. With a
single root, ROOT is left out of s_i but for the last word, where s is A_last,ROOT. Then every word
has to reach the last one by arcs between words, or an s_i is zero though Z is not.

Going back from the last word to the first, M = ∂log Z/∂A of the words k that were left when i was
eliminated gives that of i:

    M_ki = Σ_j M_kj p_ij,    M_ij = (1 − Σ_k A_ki M_ki + Σ_k A_ki M_kj) / s_i

where with a single root M_i,ROOT has the last sum only. Each A_ki M_ki is a probability, so that
the one subtraction costs no more than rounding does.
"""

from __future__ import annotations

import torch
from torch import Tensor

_STEP = 1e-20
"""The imaginary step of derivatives; its square is nothing beside 1."""
_CACHED = 2**18
"""The weights of sentences that are eliminated side by side, about: more do not fit into caches."""


def eliminate(
    weights: Tensor, single_root: bool, tangent: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """log Z and its gradient by the weights of arcs; `kernels.crf.trees` computes the same.

    The derivative is a complex step: f(x + iεg) = f(x) + iε f′(x)g − …, without a difference of
    values.

    Args:
        weights: A (S, n, n+1) in double precision, ROOT last. There is a word at least.
        single_root: whether exactly one word has ROOT as its head, or one or more.
        tangent: the direction of the derivative, (S, n, n+1); None for no derivative.

    Returns:
        log Z (S,), M (S, n, n+1), and the derivative of M or None. Without a tree log Z is −∞,
        and M is not defined.
    """
    given = weights if tangent is None else torch.complex(weights, _STEP * tangent)
    at_once = max(64, _CACHED // weights[0].numel())
    parts = [_eliminate(part, single_root) for part in given.split(at_once)]
    log_z, m = parts[0] if len(parts) == 1 else map(torch.cat, zip(*parts, strict=True))
    return (log_z, m, None) if tangent is None else (log_z, m.real, m.imag / _STEP)


def _eliminate(weights: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    # Sentences come last, so that each step goes over memory in order. Products are written into
    # the same memory again and again, which stays in the cache.
    a = weights.permute(1, 2, 0).clone(memory_format=torch.contiguous_format)
    totals, products, m = torch.empty_like(a[:, 0]), torch.empty_like(a), torch.zeros_like(a)
    n, end, rows = len(a), -1 if single_root else None, a.unbind()
    for i in range(n - 1):
        heads, total = rows[i][i + 1 :], totals[i]
        torch.sum(heads[:end], 0, out=total)
        heads /= total
        a[i + 1 :, i + 1 :].addcmul_(a[i + 1 :, i : i + 1], heads)
    totals[-1] = a[-1, -1]
    inverse = totals.reciprocal()
    m[-1, -1] = inverse[-1]
    own, found, dependents = inverse.unbind(), m.unbind(), (a[:, :-1] * inverse).unbind(1)
    for i in range(n - 2, -1, -1):
        left, product, new = m[i + 1 :, i:], products[i + 1 :, i:], found[i][i:]
        onward, lost = left[:, 0], new[0]
        torch.mul(left, rows[i][i:], out=product)  # column i of M is still zero
        torch.sum(product, 1, out=onward)
        torch.mul(left, dependents[i][i + 1 :].unsqueeze(1), out=product)
        torch.sum(product, 0, out=new)
        new[1:end].add_(own[i] - lost)
        lost.zero_()  # no word is its own head
    log_z = totals.real.log().sum(0).masked_fill((totals == 0).any(0), -torch.inf)
    return log_z, m.permute(2, 0, 1)
