"""Arcs with labels: a pair of head and label is one value."""

from __future__ import annotations

import torch
from torch import Tensor

from probformer.crf.structures.structure import Structure


class Labelled(Structure):
    """One channel of heads with labels; scores are (B, m, n, values), for m labels.

    Labels are independent given the arcs. So arcs have the scores logsumexp over labels, and the
    structure of the channel; and the label of an arc is a softmax.

    Args:
        arcs: the structure of the channel's heads, for scores (B, 1, n, values).
    """

    def __init__(self, arcs: Structure) -> None:
        self.arcs = arcs

    def marginals(self, scores: Tensor, forbidden: Tensor) -> Tensor:
        of_arcs, closed = summed_over_labels(scores, forbidden)
        given_arc = scores.masked_fill(forbidden, torch.finfo(scores.dtype).min).softmax(1)
        return self.arcs.marginals(of_arcs, closed) * given_arc.masked_fill(forbidden, 0.0)

    def log_partition(self, scores: Tensor, forbidden: Tensor) -> Tensor | None:
        return self.arcs.log_partition(*summed_over_labels(scores, forbidden))


def summed_over_labels(scores: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of arcs (B, 1, n, values), and which of them have no label that is allowed."""
    closed = forbidden.expand(scores.shape).all(1, keepdim=True)
    open_scores = scores.masked_fill(forbidden & ~closed, -torch.inf)
    return open_scores.logsumexp(1, keepdim=True), closed
