"""Scores of heads and labels from the vectors of words, for encoders without head variables."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Biaffine(nn.Module):
    """The read-out of Dozat and Manning (2017): θ_ijl = a_iᵀ W b_j + c_iᵀ U_l d_j.

    The vectors a, b, c, d of a word come from four small networks, for dependents and heads, and
    for arcs and labels; their last element is 1, so that W and U_l have terms for each word alone.
    ROOT has a learned vector in place of a word's.

    Args:
        width: The last axis of the encoder's representation.
        labels: m, the number of labels; 1 where arcs have none.
        dropout: The rate of dropout on the vectors of words.
    """

    def __init__(self, width: int, labels: int, dropout: float = 0.0) -> None:
        super().__init__()
        narrow = max(width // 4, 1)
        self.root = nn.Parameter(torch.randn(width) / width**0.5)
        self.dropout = dropout
        self.arcs = _Pairs(width, width, 1, dropout)
        self.labels = _Pairs(width, narrow, labels, dropout) if labels > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        """(B, n, width) -> (B, m, n, n+1); the last column is ROOT."""
        heads = torch.cat([x, self.root.expand(len(x), 1, -1)], 1)
        scores = self.arcs(x, heads)
        return scores if self.labels is None else scores + self.labels(x, heads)


class _Pairs(nn.Module):
    """(B, n, width), (B, k, width) -> (B, kinds, n, k)."""

    def __init__(self, width: int, hidden: int, kinds: int, dropout: float) -> None:
        super().__init__()
        self.dependents = nn.Linear(width, hidden)
        self.heads = nn.Linear(width, hidden)
        self.product = nn.Parameter(torch.empty(kinds, hidden + 1, hidden + 1))
        nn.init.normal_(self.product, std=1 / hidden)
        self.dropout = dropout

    def forward(self, dependents: Tensor, heads: Tensor) -> Tensor:
        left = self._vectors(self.dependents(dependents))
        right = self._vectors(self.heads(heads))
        return torch.einsum("bia,kac,bjc->bkij", left, self.product, right)

    def _vectors(self, x: Tensor) -> Tensor:
        """With a one at the end, so that the product has terms for each word alone."""
        return F.pad(F.dropout(F.leaky_relu(x, 0.1), self.dropout, self.training), (0, 1), value=1)
