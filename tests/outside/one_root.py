"""A head structure of one's own: in each channel exactly one word has ROOT as its head."""

import torch

from probformer.crf.structures import Structure
from probformer.sentinels import ROOT


class OneRoot(Structure):
    """Given which word that is, the other words choose among words independently."""

    def marginals(self, scores, forbidden):
        with_scores, roots, _ = self._parts(scores, forbidden)
        # A word that is not the root keeps its distribution over words.
        words = (1 - roots.unsqueeze(-1)) * with_scores.softmax(-1).nan_to_num()
        return torch.cat([words, roots.unsqueeze(-1)], -1).masked_fill(forbidden, 0.0)

    def log_partition(self, scores, forbidden):
        _, _, chosen = self._parts(scores, forbidden)
        there = (~chosen.isinf()).any(-1)
        return torch.where(there, chosen.logsumexp(-1), 0.0).flatten(1).sum(1)

    def allows(self, values):
        return list(values).count(ROOT) == 1

    def _parts(self, scores, forbidden):
        """Scores of words, the probability that each word is the root, and its log weight."""
        scores = scores.masked_fill(forbidden, -torch.inf)
        words, root = scores[..., :-1], scores[..., -1]  # (B, h, n, n), (B, h, n)
        rest = words.logsumexp(-1)  # of one word by itself: -inf if it has no other
        padding = root.isinf() & rest.isinf()
        rest = rest.masked_fill(padding, 0.0)
        n = rest.shape[-1]
        others = rest.unsqueeze(-2).expand(*rest.shape, n)
        others = others.masked_fill(torch.eye(n, dtype=torch.bool), 0.0).sum(-1)
        chosen = root + others  # log weight of the assignments in which this word is the root
        return words, chosen.softmax(-1).nan_to_num(), chosen
