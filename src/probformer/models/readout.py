"""Read-outs: an encoder with a layer on top that turns representations into classes."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.crf.posterior import Posterior
from probformer.models.encoder import Encoder
from probformer.models.transformer import Transformer
from probformer.packing import Packing


class Model(nn.Module):
    """An encoder and the layer that a task puts on top of it."""

    def __init__(self, encoder: Encoder | Transformer, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(
        self,
        words: Tensor,
        mask: Tensor,
        attention: bool = False,
        packing: Packing | None = None,
    ) -> tuple[Tensor, Posterior]:
        """What the head reads, and the posterior it comes from.

        Without `attention` there is none in the posterior, which is faster.
        """
        posterior = self.encoder(words, mask, attention=attention, packing=packing)
        return self.encoder.representation(posterior), posterior


class Projection(nn.Linear):
    """To words, of which there are many."""

    def forward(self, input: Tensor) -> Tensor:
        return project(input, self.weight, self.bias, 8 if input.is_cuda else 1)


class TiedProjection(nn.Module):
    """To words by the encoder's own embeddings: one matrix, one gradient, and a bias.

    The mask, most often the last word, is no answer.
    """

    def __init__(self, embedding: nn.Embedding, mask: int) -> None:
        super().__init__()
        self._embedding = [embedding]  # in a list: it is the encoder's parameter, not ours
        self.mask = mask
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings - 1))

    def forward(self, x: Tensor) -> Tensor:
        """By the whole matrix: to leave out a row would be to copy all the others."""
        none = self.bias.new_zeros(1)
        bias = torch.cat([self.bias[: self.mask], none, self.bias[self.mask :]])
        scores = project(x, self._embedding[0].weight, bias, 8 if x.is_cuda else 1)
        before, after = scores[..., : self.mask], scores[..., self.mask + 1 :]
        return torch.cat([before, after], -1) if after.shape[-1] else before


def project(x: Tensor, weight: Tensor, bias: Tensor, multiple: int) -> Tensor:
    """A linear layer, computed as one with a multiple of some number of classes.

    The fast kernels of GPUs want an even 8; the masked words of a vocabulary of 10,000 are 9,999.
    """
    extra = -len(weight) % multiple
    if not extra:
        return F.linear(x, weight, bias)
    more = F.linear(x, F.pad(weight, (0, 0, 0, extra)), F.pad(bias, (0, extra)))
    return more[..., : len(weight)]


def word_head(encoder: Encoder | Transformer, mask: int, tied: bool | None = None) -> nn.Module:
    """To all words but the mask: tied for transformers, a layer of its own for PT, as published."""
    embedding = encoder.embedding
    if isinstance(encoder, Transformer) if tied is None else tied:
        return TiedProjection(embedding, mask)
    return Projection(encoder.width, embedding.num_embeddings - 1)


def sentence_head(encoder: Encoder | Transformer, classes: int) -> nn.Linear:
    head = nn.Linear(encoder.width, classes)
    nn.init.xavier_uniform_(head.weight)  # as published
    return head


class SeveralHeads(nn.Module):
    """Several layers on one representation, by name."""

    def __init__(self, layers: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleDict(layers)

    def forward(self, x: Tensor, mask: Tensor) -> dict[str, Tensor]:
        return {
            name: layer(x, mask) if isinstance(layer, Pointer) else layer(x)
            for name, layer in self.layers.items()
        }


class Pointer(nn.Module):
    """Points from each word to a word, or to none: x_i W x_j, and a score for none.

    With a `reach` the distance j−i has a score too, x_i · w_(j−i); it is clipped at the reach.
    """

    def __init__(self, width: int, reach: int | None = None) -> None:
        super().__init__()
        self.words = nn.Linear(width, width, bias=False)
        self.none = nn.Linear(width, 1)
        self.reach = reach
        if reach is not None:
            self.distances = nn.Linear(width, 2 * reach + 1, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, n, d) -> (B, n, 1 + n): none comes first."""
        scores = self.words(x) @ x.mT
        if self.reach is not None:
            place = torch.arange(x.shape[1], device=x.device)
            distance = (place - place.unsqueeze(1)).clamp(-self.reach, self.reach) + self.reach
            scores = scores + self.distances(x).gather(-1, distance.expand(len(x), -1, -1))
        scores = scores.masked_fill(~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
        return torch.cat([self.none(x), scores], dim=-1)
