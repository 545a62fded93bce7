"""Read-outs: an encoder with a layer on top that turns representations into classes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.baselines import Transformer
from probformer.encoder import Encoder
from probformer.posterior import Posterior


class Model(nn.Module):
    """An encoder and the layer that a task puts on top of it."""

    def __init__(self, encoder: Encoder | Transformer, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, words: Tensor, mask: Tensor) -> tuple[Tensor, Posterior]:
        """What the head reads, and the posterior it comes from."""
        posterior = self.encoder(words, mask)
        return self.encoder.representation(posterior), posterior


class TiedProjection(nn.Module):
    """To words by the encoder's own embeddings: one matrix, one gradient, and a bias."""

    def __init__(self, embedding: nn.Embedding, classes: int) -> None:
        super().__init__()
        self._embedding = [embedding]  # in a list: it is the encoder's parameter, not ours
        self.classes = classes
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self._embedding[0].weight[: self.classes], self.bias)
