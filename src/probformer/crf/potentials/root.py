"""ROOT, which stands for the sentence (section 2.3.5)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.crf.evidence import Evidence
from probformer.crf.potentials.factor import Factor, Variable
from probformer.errors import require_whole
from probformer.sentinels import ROOT, UNOBSERVED


class Root(Factor):
    """A word may be headed by ROOT, one more column of H; ROOT has a label, too.

    T′[c, a, b] scores label a of the word with label b of ROOT.

    Args:
        labels: d, the number of labels of a word.
        channels: h, the number of head variables of a word.
        root_labels: d_root, the number of labels of ROOT.
        initial_scores: the standard deviation of T′ before training.
    """

    column_field = "root_head_marginals"

    def __init__(
        self, labels: int, channels: int, root_labels: int, initial_scores: float = 1.0
    ) -> None:
        super().__init__()
        require_whole("labels", labels)
        require_whole("channels", channels)
        require_whole("root_labels", root_labels)
        self.T = nn.Parameter(initial_scores * torch.randn(channels, labels, root_labels))
        self.label_variables = (
            Variable("root", "ROOT", root_labels, "root_marginals", "root_scores"),
        )

    @property
    def labels(self) -> int:
        """d_root."""
        return self.T.shape[-1]

    def columns(self, n: int) -> int:
        return 1

    def column_fields(self, p: Tensor) -> dict[str, Tensor]:
        """(B, h, n): it has one column."""
        return {"root_head_marginals": p.squeeze(-1)}

    def observed_columns(self, evidence: Evidence) -> Tensor | None:
        if evidence.heads is None:
            return None
        return torch.where(evidence.heads == ROOT, 0, UNOBSERVED)

    def prepare(self, q: Tensor, *own: Tensor) -> tuple[Tensor, Tensor]:
        """Q_Z (B, n, d), and the score of ROOT for each channel and label of a word, (B, h, d)."""
        (q_root,) = own
        scores = F.linear(q_root, self.T.flatten(0, 1)).unflatten(-1, self.T.shape[:2])
        return q, scores

    def head_scores(self, x: tuple[Tensor, Tensor]) -> Tensor:
        """The messages to H's column of ROOT, (B, h, n, 1)."""
        q, scores = x
        return (scores @ q.mT).unsqueeze(-1)

    def label_messages(self, p: Tensor | None, x: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The messages to Z (B, n, d), and to the label of ROOT (B, d_root)."""
        assert p is not None
        q, scores = x
        p = p.squeeze(-1)  # (B, h, n)
        return p.mT @ scores, (p @ q).flatten(1) @ self.T.flatten(0, 1)

    def norm(self) -> Tensor:
        """‖T′‖_F, a scalar."""
        return self.T.norm()

    def dense(self) -> Tensor:
        """T′ (h, d, d_root)."""
        return self.T
