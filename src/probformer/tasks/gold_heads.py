"""Gold heads as an auxiliary objective: one channel learns the heads of a treebank."""

from __future__ import annotations

import torch
from torch import Tensor

from probformer.config import GoldHeads
from probformer.crf.posterior import Posterior
from probformer.models.readout import Output
from probformer.sentinels import ROOT
from probformer.tasks.batch import Batch


class GoldHeadLoss:
    """−log P(gold head) in one channel, times a weight."""

    name = "training.gold_heads"
    needs_heads = True

    def __init__(self, settings: GoldHeads) -> None:
        self.channel, self.weight = settings.channel, settings.weight

    def loss(self, output: Output, batch: Batch) -> Tensor:
        return self.weight * gold_head_loss(output.posterior, batch, self.channel)


def gold_head_loss(posterior: Posterior, batch: Batch, channel: int) -> Tensor:
    """−log P(gold head): per chunk the mean over words with a usable gold head, summed over chunks.

    A gold head is usable if it is a word, or ROOT in a model that has a root.
    """
    assert posterior.head_marginals is not None
    assert batch.heads is not None
    heads = batch.heads
    p = posterior.head_marginals[:, channel].gather(2, heads.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    if posterior.root_head_marginals is not None:
        p = torch.where(heads == ROOT, posterior.root_head_marginals[:, channel], p)
    losses = -p.clamp(min=torch.finfo(p.dtype).tiny).log()
    return (losses * batch.weights["heads"]).sum()
