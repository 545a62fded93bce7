"""Spanning trees drawn from their distribution, by the elimination that also gives log Z.

Words are eliminated as in `elimination`, from the last to the first:

    s_i = Σ_j A_ij,   p_ij = A_ij / s_i,   A_kj += A_ki p_ij        for j < i and ROOT, k < i

Then they come back from the first to the last. Let T be a tree of the words before i, drawn with
the weights that A had without i. Each arc k → j of T is a direct one, or stands for a path over i,
with probabilities as the two parts of its weight. Words whose arcs stand for paths over i hang from
i. The head of i is drawn with the weights A_ij among the words that reach ROOT without those arcs.

This is exact. Let D be the words that are to hang from i. Without their arcs, T is a component for
ROOT and one for each word of D. All trees T that join these components over i have the total weight
s_i Π_D A_ki · Σ Π_D p_i,component, where the sum is over trees of components. The p_i of components
add up to one and do not depend on which word of D has the arc, so the sum is the p_i of ROOT's
component, and the total Π_D A_ki · Σ_j A_ij with j in it. That is the weight of the trees in which
just D hangs from i, all else being equal.
"""

from __future__ import annotations

import torch
from torch import Tensor


def draw_trees(weights: Tensor, generator: torch.Generator) -> Tensor:
    """A tree for each matrix, with probabilities as the products of the weights of arcs.

    Args:
        weights: A, (S, n, 1 + n), in double precision on the CPU, not negative, with ROOT in the
            first column. Each has to have a tree; it has one or more words under ROOT.
        generator: where random numbers come from.

    Returns:
        (S, n), the column of each word's head.
    """
    count, n, _ = weights.shape
    a = weights.clone()
    for i in range(n - 1, 0, -1):
        heads = a[:, i, : i + 1]
        heads /= heads.sum(1, keepdim=True)
        a[:, :i, : i + 1] += a[:, :i, i + 1 : i + 2] * heads.unsqueeze(1)
    # Row i of A has p_ij for j < i now, and A_ij for j > i as it was when j was eliminated.
    heads = torch.zeros(count, n, dtype=torch.long)
    over = torch.full((count, n), n)  # the word that an arc is to lead over; n if it is direct
    every = torch.arange(count)
    for i in range(n):
        through = over[:, :i] == i
        p = a[:, i, : i + 1].clone()
        p[:, 1:] *= _reach_root(heads[:, :i], through)
        heads[:, i] = torch.multinomial(p, 1, generator=generator).squeeze(1)
        heads[:, :i].masked_fill_(through, i + 1)
        row, word = through.nonzero().unbind(1)
        row, word = torch.cat([every, row]), torch.cat([torch.full((count,), i), word])
        column = heads[row, word]
        parts = a[row, word, i + 2 :] * a[row, i + 1 :, column]
        parts = torch.cat([parts, weights[row, word, column].unsqueeze(1)], 1)
        chosen = torch.multinomial(parts, 1, generator=generator).squeeze(1)
        over[row, word] = i + 1 + chosen
    return heads


def _reach_root(heads: Tensor, without: Tensor) -> Tensor:
    """Whether a path leads from each word to ROOT that does not use the arcs of some words.

    Args:
        heads: (S, i), columns.
        without: (S, i), true for words whose arcs do not count.
    """
    if not bool(without.any()):
        return torch.ones_like(without)
    own = torch.arange(1, heads.shape[1] + 1)
    up = torch.where(without, own, heads)
    up = torch.cat([up.new_zeros(len(up), 1), up], 1)
    for _ in range(heads.shape[1].bit_length()):  # each time paths are followed twice as far
        up = up.gather(1, up)
    return up[:, 1:] == 0
