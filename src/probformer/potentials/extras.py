"""Potentials beyond pairs of words: ROOT, which stands for the sentence, and global features."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.config.settings import GlobalMode, check_features
from probformer.errors import require_one_of, require_positive_int


class Root(nn.Module):
    """A word may be headed by ROOT, which has d_root labels of its own (section 2.3.5).

    T′[c, a, b] scores label a of the word with label b of ROOT; one more column for H.
    """

    def __init__(self, labels: int, channels: int, root_labels: int) -> None:
        super().__init__()
        require_positive_int("labels", labels)
        require_positive_int("channels", channels)
        require_positive_int("root_labels", root_labels)
        self.T = nn.Parameter(torch.randn(channels, labels, root_labels))

    @property
    def labels(self) -> int:
        """d_root."""
        return self.T.shape[-1]

    def project(self, q: Tensor, q_root: Tensor) -> tuple[Tensor, Tensor]:
        """Q_Z (B, n, d), and for each channel and word label the score of ROOT (B, h, d)."""
        scores = F.linear(q_root, self.T.flatten(0, 1)).unflatten(-1, self.T.shape[:2])
        return q, scores

    def head_scores(self, x: tuple[Tensor, Tensor]) -> Tensor:
        """(B, h, n, 1)."""
        q, scores = x
        return (scores @ q.mT).unsqueeze(-1)

    def label_messages(self, p: Tensor, x: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """To the words (B, n, d), and to ROOT (B, d_root)."""
        q, scores = x
        p = p.squeeze(-1)  # (B, h, n)
        return p.mT @ scores, (p @ q).flatten(1) @ self.T.flatten(0, 1)

    def norm(self) -> Tensor:
        return self.T.norm()

    def dense(self) -> Tensor:
        """T′ (h, d, d_root)."""
        return self.T


class Global(nn.Module):
    """Each word may attach to one of m global features (appendix B.3).

    all-dep: they are further columns of each H. dep-split: a variable G beside each H.
    single-split: one G a word. B[c, k, a] scores label a of the word with feature k; with
    `features`, which goes with all-dep, B = P(F) T″ᵀ for feature variables F with labels.
    """

    def __init__(
        self,
        labels: int,
        channels: int,
        count: int,
        mode: GlobalMode = "single-split",
        features: bool = False,
    ) -> None:
        super().__init__()
        require_positive_int("labels", labels)
        require_positive_int("channels", channels)
        require_positive_int("count", count)
        require_one_of("mode", mode, ("all-dep", "dep-split", "single-split"))
        check_features(mode, features)
        self.mode: GlobalMode = mode
        self.count = count
        self.channels = 1 if mode == "single-split" else channels
        self.features = features
        if features:
            self.F = nn.Parameter(torch.randn(count, labels))  # logits of P(F)
            self.T = nn.Parameter(torch.randn(channels, labels, labels))
        else:
            self.B = nn.Parameter(torch.randn(self.channels, count, labels) / labels**0.5)

    def dense(self) -> Tensor:
        """B (h or 1, m, d)."""
        return self.F.softmax(-1) @ self.T.mT if self.features else self.B

    def project(self, q: Tensor) -> tuple[Tensor, Tensor]:
        return q, self.dense()

    def head_scores(self, x: tuple[Tensor, Tensor]) -> Tensor:
        """(B, h or 1, n, m), eqs. 34, 40 and 48."""
        q, b = x
        return F.linear(q, b.flatten(0, 1)).unflatten(-1, b.shape[:2]).transpose(1, 2)

    def label_messages(self, p: Tensor, x: tuple[Tensor, Tensor]) -> tuple[Tensor]:
        """(B, n, d), the last terms of eqs. 35, 41 and 49."""
        _, b = x
        return (p.transpose(1, 2).flatten(2) @ b.flatten(0, 1),)

    def norm(self) -> Tensor:
        return self.dense().norm()
