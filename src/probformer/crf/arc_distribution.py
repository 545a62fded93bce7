"""The distribution over the heads and labels of sentences, given the scores of one channel.

P(heads, labels) ∝ exp(Σ_i θ_i,head(i),label(i)) over the heads that a structure allows: any, or
those of a tree. A parser is trained with it, and its trees are decoded and drawn from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from probformer.crf.structures import Labelled, Structure, summed_over_labels
from probformer.sentinels import ROOT


@dataclass(frozen=True, eq=False)
class ArcDistribution:
    """Sentences with n words, m labels and n+1 heads, ROOT last."""

    scores: Tensor
    """(B, m, n, n+1): θ. One label, m = 1, where arcs have none."""
    forbidden: Tensor
    """(B, 1 or m, n, n+1): true for arcs that cannot be; all of them at padding."""
    structure: Structure
    """How the heads depend on each other, for scores (B, 1, n, n+1)."""

    @classmethod
    def of(cls, scores: Tensor, mask: Tensor, structure: Structure) -> ArcDistribution:
        """The distribution without observations.

        Args:
            scores: (B, m, n, n+1).
            mask: (B, n), true where there is a word.
            structure: How heads depend on each other.
        """
        n = mask.shape[1]
        itself = torch.eye(n, dtype=torch.bool, device=mask.device)
        words = ~(mask.unsqueeze(1) & mask.unsqueeze(2)) | itself
        forbidden = torch.cat([words, ~mask.unsqueeze(2)], -1)
        return cls(scores, forbidden.unsqueeze(1), structure)

    def given(self, heads: Tensor, labels: Tensor | None = None) -> ArcDistribution:
        """The part of it that agrees with what is known.

        Args:
            heads: (B, n): positions, `sentinels.ROOT`, or any number below for a head that is not
                known.
            labels: (B, n): labels, or any number below 0 for one that is not known.
        """
        n = heads.shape[1]
        index = torch.where(heads == ROOT, n, heads).unsqueeze(1)
        forbidden = self.structure.condition(self.forbidden, index)
        if labels is not None and self.scores.shape[1] > 1:
            every = torch.arange(self.scores.shape[1], device=labels.device).view(-1, 1, 1)
            known = labels[:, None, :, None]
            forbidden = forbidden | (known >= 0) & (every != known)
        return replace(self, forbidden=forbidden)

    def log_partition(self) -> Tensor:
        """log Σ exp(score) over all heads and labels of each sentence, (B,), in double precision.

        Its differences are the logarithms of probabilities: log P(known) is that of `given`, minus
        that of the whole.
        """
        found = Labelled(self.structure).log_partition(self.scores.double(), self.forbidden)
        assert found is not None
        return found

    def marginals(self) -> Tensor:
        """(B, n, n+1): the probability of each arc."""
        scores, forbidden = self._arcs()
        return self.structure.marginals(scores, forbidden).squeeze(1)

    def arc_scores(self) -> Tensor:
        """(B, n, n+1): the score of each arc, logsumexp over its labels; −∞ where forbidden."""
        scores, forbidden = self._arcs()
        return scores.masked_fill(forbidden, -torch.inf).squeeze(1)

    def labels_of(self, heads: Tensor) -> Tensor:
        """P(label | arc), (B, n, m), for the heads (B, n): positions or `sentinels.ROOT`."""
        count, _, n, _ = self.forbidden.shape
        index = torch.where(heads == ROOT, n, heads).clamp(min=0)[:, None, :, None]
        index = index.expand(count, self.scores.shape[1], n, 1)
        closed = self.forbidden.expand(self.scores.shape).gather(3, index)
        scores = self.scores.gather(3, index).masked_fill(closed, torch.finfo(torch.float32).min)
        return scores.squeeze(3).softmax(1).transpose(1, 2)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Heads drawn from the distribution, (B, count, n); `sentinels.ROOT`, and 0 at padding.

        Args:
            count: How many to draw for each sentence.
            generator: Where random numbers come from, on the CPU.
        """
        scores, forbidden = self._arcs()
        n = scores.shape[2]
        if not n:
            return torch.zeros(len(scores), count, 0, dtype=torch.long, device=scores.device)
        heads = self.structure.sample(scores, forbidden, count, generator).squeeze(2)
        heads = heads.masked_fill(forbidden.all(-1), 0)  # at padding
        return torch.where(heads == n, ROOT, heads)

    def _arcs(self) -> tuple[Tensor, Tensor]:
        """Scores of arcs, and which are forbidden, (B, 1, n, n+1)."""
        return summed_over_labels(self.scores, self.forbidden)
