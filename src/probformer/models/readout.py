"""Read-outs: the layer of a task on top of an encoder, from representations to classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.crf.evidence import Evidence
from probformer.crf.posterior import Posterior
from probformer.models.encoder import Encoder
from probformer.models.transformer import Transformer
from probformer.packing import Packing

_WORD_DIMENSIONS = {
    "z_scores": (1,),
    "z_marginals": (1,),
    "head_marginals": (2, 3),
    "root_head_marginals": (2,),
    "global_marginals": (2,),
}
"""The dimensions of a posterior's fields that count words."""
_HEAD_DIMENSIONS = {"head_scores": 3, "arc_label_marginals": 2, "arc_label_scores": 2}
"""The dimension that counts all heads, words before the others such as ROOT; that in front of it
counts the words that they head."""


@dataclass(frozen=True, eq=False)
class Output:
    """What a model computes from a batch; tasks compute losses and predictions from it."""

    representation: Tensor
    """(B, n, d), or (B, d) where the encoder's read-out is of whole sentences."""
    posterior: Posterior
    """The result of the encoder; head marginals only with `attention`."""
    readout: nn.Module
    """The task's layer, to be applied to `representation` or to a part of it."""

    def sentence(self, row: int, length: int) -> Output:
        """One sentence of a padded batch as a batch of its own.

        Args:
            row: Its number in the batch.
            length: Its number of tokens n; what follows is padding.

        Returns:
            An output with B = 1 and without padding; its posterior has no trace, and the `others`
            of factors from outside keep their padding.
        """
        alone = self.representation[row : row + 1]
        found: dict[str, Tensor] = {}
        for field in fields(self.posterior):
            value = getattr(self.posterior, field.name)
            if isinstance(value, Tensor):
                value = value[row : row + 1]
                for dimension in _WORD_DIMENSIONS.get(field.name, ()):
                    value = value.narrow(dimension, 0, length)
                if field.name in _HEAD_DIMENSIONS:
                    value = _without_padding(value, _HEAD_DIMENSIONS[field.name], length)
                found[field.name] = value
        others = {name: value[row : row + 1] for name, value in self.posterior.others.items()}
        return Output(
            alone[:, :length] if alone.dim() == 3 else alone,
            replace(self.posterior, **found, others=others, trace=None),
            self.readout,
        )


def _without_padding(arcs: Tensor, dimension: int, length: int) -> Tensor:
    words = arcs.shape[dimension - 1]
    arcs = arcs.narrow(dimension - 1, 0, length)
    others = arcs.narrow(dimension, words, arcs.shape[dimension] - words)
    return torch.cat([arcs.narrow(dimension, 0, length), others], dimension)


class Model(nn.Module):
    """An encoder and the read-out that a task puts on top of it."""

    def __init__(self, encoder: Encoder | Transformer, readout: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = readout  # the name of its weights in model.safetensors and in checkpoints

    @property
    def readout(self) -> nn.Module:
        """The task's layer."""
        return self.head

    def forward(
        self,
        words: Tensor,
        mask: Tensor,
        attention: bool = False,
        packing: Packing | None = None,
        evidence: Evidence | None = None,
    ) -> Output:
        """Run the encoder; the read-out is left to the task, which may need it for few words.

        Args:
            words: (B, n) long.
            mask: (B, n) bool, false on padding.
            attention: Whether the posterior has head marginals; it is faster without.
            packing: Where sentences are, if `words` is one row of them laid end to end.
            evidence: Observed variables, if the encoder supports evidence.

        Returns:
            Representation and posterior, with the read-out to apply.
        """
        observed = {} if evidence is None else {"evidence": evidence}
        posterior = self.encoder(words, mask, attention=attention, packing=packing, **observed)
        return Output(self.encoder.representation(posterior), posterior, self.readout)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Within the context all modules are in evaluation mode, afterwards as they were."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


class Projection(nn.Linear):
    """A linear layer to the classes of words, on GPUs padded to a multiple of 8 classes."""

    def forward(self, input: Tensor) -> Tensor:
        return project(input, self.weight, self.bias, 8 if input.is_cuda else 1)


class TiedProjection(nn.Module):
    """Scores of words by their products with the encoder's embeddings, plus a bias.

    The mask symbol is not among the classes.

    Args:
        embedding: The encoder's embeddings, (vocabulary, d).
        mask: The number of the mask symbol.
    """

    def __init__(self, embedding: nn.Embedding, mask: int) -> None:
        super().__init__()
        self._embedding = [embedding]  # in a list, so that it stays the encoder's parameter alone
        self.mask = mask
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings - 1))

    def forward(self, x: Tensor) -> Tensor:
        """(…, d) -> (…, vocabulary − 1).

        The product is with the whole matrix: leaving out the mask's row would copy all others.
        """
        none = self.bias.new_zeros(1)
        bias = torch.cat([self.bias[: self.mask], none, self.bias[self.mask :]])
        scores = project(x, self._embedding[0].weight, bias, 8 if x.is_cuda else 1)
        before, after = scores[..., : self.mask], scores[..., self.mask + 1 :]
        return torch.cat([before, after], -1) if after.shape[-1] else before


def project(x: Tensor, weight: Tensor, bias: Tensor, multiple: int) -> Tensor:
    """A linear layer whose number of classes is padded to a multiple of `multiple` and cut again.

    The fast matrix kernels of GPUs need multiples of 8, and a vocabulary of 10,000 without the mask
    symbol has 9,999 classes.
    """
    extra = -len(weight) % multiple
    if not extra:
        return F.linear(x, weight, bias)
    more = F.linear(x, F.pad(weight, (0, 0, 0, extra)), F.pad(bias, (0, extra)))
    return more[..., : len(weight)]


def word_readout(encoder: Encoder | Transformer, mask: int, tied: bool | None = None) -> nn.Module:
    """A read-out to words; the classes are all words but the mask symbol.

    Args:
        encoder: The encoder below, which has the embeddings.
        mask: The number of the mask symbol.
        tied: Whether to multiply by the embeddings; None, as published: for transformers only.
    """
    embedding = encoder.embedding
    if isinstance(encoder, Transformer) if tied is None else tied:
        return TiedProjection(embedding, mask)
    return Projection(encoder.width, embedding.num_embeddings - 1)


def sentence_readout(encoder: Encoder | Transformer, classes: int) -> nn.Linear:
    """A linear layer on a sentence's representation, with Xavier initialisation, as published."""
    readout = nn.Linear(encoder.width, classes)
    nn.init.xavier_uniform_(readout.weight)
    return readout


class SeveralReadouts(nn.Module):
    """Several layers on the same representation, by name."""

    def __init__(self, layers: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleDict(layers)

    def forward(self, x: Tensor, mask: Tensor) -> dict[str, Tensor]:
        return {
            name: layer(x, mask) if isinstance(layer, Pointer) else layer(x)
            for name, layer in self.layers.items()
        }


class Pointer(nn.Module):
    """Scores of word j as the parent of word i, x_i W x_j, and of word i having no parent.

    With a `reach` the distance j−i adds a score x_i · w_(j−i), with j−i clipped to ±reach.
    """

    def __init__(self, width: int, reach: int | None = None) -> None:
        super().__init__()
        self.words = nn.Linear(width, width, bias=False)
        self.none = nn.Linear(width, 1)
        self.reach = reach
        if reach is not None:
            self.distances = nn.Linear(width, 2 * reach + 1, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, n, d) -> (B, n, 1 + n): class 0 is no parent, class 1 + j is word j."""
        scores = self.words(x) @ x.mT
        if self.reach is not None:
            place = torch.arange(x.shape[1], device=x.device)
            distance = (place - place.unsqueeze(1)).clamp(-self.reach, self.reach) + self.reach
            scores = scores + self.distances(x).gather(-1, distance.expand(len(x), -1, -1))
        scores = scores.masked_fill(~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
        return torch.cat([self.none(x), scores], dim=-1)
