"""A factor of one's own with columns of H: a word may attach to nothing, in one of some ways."""

import torch
from torch import nn

from probformer.potentials import Factor


class Idle(Factor):
    """W[c, k, a] scores label a of a word that is idle in way k in channel c.

    The first word of a sentence cannot be idle in the last way.
    """

    column_field = "idle_marginals"
    column_evidence = "idle"

    def __init__(self, labels, channels, ways=2):
        super().__init__()
        self.W = nn.Parameter(torch.randn(channels, ways, labels))

    def columns(self, n):
        return self.W.shape[1]

    def forbidden_columns(self, mask):
        forbidden = super().forbidden_columns(mask).clone()
        forbidden[:, :1, -1] = True
        return forbidden

    def prepare(self, q, *own):
        return q

    def head_scores(self, x):  # (B, h, n, ways)
        return torch.einsum("bna,hka->bhnk", x, self.W)

    def label_messages(self, p, x):
        return (torch.einsum("bhnk,hka->bna", p, self.W),)

    def reference_score(self, q, n):  # of H, the values are the ways alone
        channels = range(len(self.W))
        pairs = [(c, i) for c in channels for i in range(n)]
        return sum(q["H", c, i] @ self.W[c] @ q["Z", i] for c, i in pairs)
