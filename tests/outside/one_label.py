"""A label structure of one's own: all words of a sentence have the same label."""

import torch

from probformer.crf.structures import Structure


class OneLabel(Structure):
    def marginals(self, scores, forbidden):
        total = self._totals(scores, forbidden).softmax(-1).unsqueeze(-2)
        return total.expand_as(scores).masked_fill(forbidden, 0.0)

    def log_partition(self, scores, forbidden):
        return self._totals(scores, forbidden).logsumexp(-1)

    def allows(self, values):
        return len(set(values)) == 1

    def _totals(self, scores, forbidden):
        """The score of each label for all words together, (B, values)."""
        padding = forbidden.all(-1, keepdim=True)
        return scores.masked_fill(forbidden, -torch.inf).masked_fill(padding, 0.0).sum(-2)
