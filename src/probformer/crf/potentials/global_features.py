"""Global features, which any word may attach to (appendix B.3)."""

from __future__ import annotations

import typing

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.config.factor_settings import GlobalMode, check_features
from probformer.crf.potentials.factor import Factor, Variable
from probformer.errors import require_one_of, require_whole


class Global(Factor):
    """Each word may attach to one of m global features.

    B[c, k, a] scores label a of the word with feature k.

    Args:
        labels: d, the number of labels of a word.
        channels: h, the number of head variables of a word.
        count: m, the number of global features.
        mode: "all-dep": features are further columns of each H; "dep-split": a variable G beside
            each H; "single-split": one G per word.
        features: whether B = P(F) T″ᵀ, where P(F) is a distribution over labels for each feature;
            "all-dep" only.
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
        require_whole("labels", labels)
        require_whole("channels", channels)
        require_whole("count", count)
        require_one_of("mode", mode, typing.get_args(GlobalMode))
        check_features(mode, features)
        self.mode: GlobalMode = mode
        self.count = count
        self.channels = 1 if mode == "single-split" else channels
        self.features = features
        if features:
            self.feature_logits = nn.Parameter(torch.randn(count, labels))  # of P(F)
            self.T = nn.Parameter(torch.randn(channels, labels, labels))
        else:
            self.B = nn.Parameter(torch.randn(self.channels, count, labels) / labels**0.5)
        if mode == "all-dep":
            self.column_field, self.column_evidence = "global_marginals", "globals"
        else:
            field, channels = "global_marginals", self.channels
            split = Variable("globals", "G", count, field, per_word=True, channels=channels)
            self.head_variables = (split,)

    def columns(self, n: int) -> int:
        return self.count if self.mode == "all-dep" else 0

    def dense(self) -> Tensor:
        """B (h or 1, m, d)."""
        return self.feature_logits.softmax(-1) @ self.T.mT if self.features else self.B

    def prepare(self, q: Tensor, *own: Tensor) -> tuple[Tensor, Tensor]:
        return q, self.dense()

    def head_scores(self, x: tuple[Tensor, Tensor]) -> Tensor:
        """The messages to the choice of a feature, (B, h or 1, n, m), eqs. 34, 40 and 48."""
        q, b = x
        return F.linear(q, b.flatten(0, 1)).unflatten(-1, b.shape[:2]).transpose(1, 2)

    def label_messages(self, p: Tensor | None, x: tuple[Tensor, Tensor]) -> tuple[Tensor]:
        """The message to Z (B, n, d), the last terms of eqs. 35, 41 and 49."""
        assert p is not None
        _, b = x
        return (p.transpose(1, 2).flatten(2) @ b.flatten(0, 1),)

    def norm(self) -> Tensor:
        """‖B‖_F, a scalar."""
        return self.dense().norm()
