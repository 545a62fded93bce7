"""Labels of arcs, which the paper names as future work.

In one channel, the head of a word and the label of the arc to it are one variable (H_i, L_i). Its
score is that of the head, with its distance, plus R_ijl, which depends on the label:

    F_ijl = F_ij + R_ijl,    R_ijl = q_iᵀ U_l V_lᵀ q_j + b_l,    for ROOT  R_il = q_iᵀ w_l + b_l
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.crf.potentials.factor import Factor
from probformer.errors import require_whole


class ArcLabels(Factor):
    """R_ijl scores label l of the arc from head j to word i, in one channel.

    `mean_field` sums over the labels of an arc before it normalises heads: an arc's score is then
    logsumexp_l(F_ijl/λ_H), whether the heads are independent or form a tree.

    Args:
        labels: d, the number of labels of a word.
        count: m, the number of labels of an arc.
        rank: r, the number of columns of U and V.
        channel: the channel whose arcs have labels.
    """

    def __init__(self, labels: int, count: int, rank: int = 8, channel: int = 0) -> None:
        super().__init__()
        for name, value in (("labels", labels), ("count", count), ("rank", rank)):
            require_whole(name, value)
        require_whole("channel", channel, low=0)
        self.labelled_channel, self.label_count = channel, count
        # R starts small beside 1/λ_H = d, by which scores are multiplied: with entries of unit size
        # some labels are ahead by tens of nats, which training takes epochs to undo.
        scale = (rank * labels**0.5) ** -0.5
        self.U = nn.Parameter(scale * torch.randn(count, rank, labels))
        self.V = nn.Parameter(scale * torch.randn(count, rank, labels))
        self.W = nn.Parameter(torch.zeros(count, labels))
        self.bias = nn.Parameter(torch.zeros(count))

    def prepare(self, q: Tensor, *own: Tensor) -> _Arcs:
        bias = self.bias.view(-1, 1, 1)
        root = F.linear(q, self.W, self.bias).mT.unsqueeze(-1)
        return _Arcs(_project(q, self.U), _project(q, self.V), root, bias)

    def head_scores(self, x: _Arcs) -> Tensor:
        """R (B, m, n, n + 1); the last column is ROOT."""
        words = x.dependents @ x.heads.mT + x.bias
        return torch.cat([words, x.root], -1)

    def label_messages(self, p: Tensor | None, x: _Arcs) -> tuple[Tensor]:
        """The message to Z, (B, n, d), from Q of arcs and labels, (B, m, n, n + 1)."""
        assert p is not None
        words, root = p[..., :-1], p[..., -1:]
        to_dependents = _collect(words @ x.heads, self.U) + root.squeeze(-1).mT @ self.W
        return (to_dependents + _collect(words.mT @ x.dependents, self.V),)

    def reference_score(self, q: Mapping[tuple, Tensor], n: int) -> Tensor:
        """Values of ("H", channel, i) are pairs: head j and label l are value j · m + l."""
        total = q["Z", 0].new_zeros(())
        for i in range(n):
            pairs = q["H", self.labelled_channel, i].view(n + 1, self.label_count)
            for label in range(self.label_count):
                dependent = self.U[label] @ q["Z", i]
                for j in range(n):
                    score = dependent @ (self.V[label] @ q["Z", j]) + self.bias[label]
                    if j != i:
                        total = total + pairs[j, label] * score
                to_root = self.W[label] @ q["Z", i] + self.bias[label]
                total = total + pairs[n, label] * to_root
        return total


class _Arcs(NamedTuple):
    """What R is computed from, (B, m, n, …)."""

    dependents: Tensor
    """(…, r): q_iᵀ U_l."""
    heads: Tensor
    """(…, r): q_jᵀ V_l."""
    root: Tensor
    """(…, 1): R of the arc from ROOT."""
    bias: Tensor
    """(m, 1, 1)."""


def _project(q: Tensor, weight: Tensor) -> Tensor:
    """(B, n, d), (m, r, d) -> (B, m, n, r)."""
    return F.linear(q, weight.flatten(0, 1)).unflatten(-1, weight.shape[:2]).transpose(1, 2)


def _collect(x: Tensor, weight: Tensor) -> Tensor:
    """(B, m, n, r), (m, r, d) -> (B, n, d): the adjoint of `_project`."""
    return x.transpose(1, 2).flatten(2) @ weight.flatten(0, 1)
