"""The protocol of a task: sentences -> rows -> batch -> loss -> metrics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from probformer.baselines import Transformer
from probformer.data.encoded import EncodedSplit, Padded, Row
from probformer.data.sentence import NO_HEAD, Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.encoder import Encoder
from probformer.heads import Model
from probformer.posterior import Posterior

IGNORE = -100
"""In targets: nothing is asked here."""
UNSEEN = -1
"""In targets: the right answer is no class that training knows; whatever is said is wrong."""

UNKNOWN_HEAD = -2

Indices = Sequence[int] | NDArray[np.int64]
Counts = dict[str, float]
"""Sums over sentences, from which metrics are made; they add up over batches and processes."""


@dataclass(frozen=True)
class Batch:
    words: Tensor
    """(B, n) long."""
    mask: Tensor
    """(B, n) bool."""
    targets: Tensor
    """(B, n) long: a class, `IGNORE` or `UNSEEN`."""
    heads: Tensor
    """(B, n) long: gold heads, `NO_HEAD` for the root, `UNKNOWN_HEAD` where the data has none."""

    def to(self, device: torch.device) -> Batch:
        return Batch(
            self.words.to(device),
            self.mask.to(device),
            self.targets.to(device),
            self.heads.to(device),
        )


class Task(ABC):
    """One way to train and judge a model."""

    metric: str
    """The name of the headline figure."""
    counted: tuple[str, ...]
    """The names of what `count` counts."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @abstractmethod
    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        """See the training data before it is encoded."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What `learn_classes` learned, as JSON."""

    @abstractmethod
    def load_state(self, state: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def build_head(self, encoder: Encoder | Transformer) -> nn.Module: ...

    @abstractmethod
    def targets_of(self, sentence: Sentence, word_of: Sequence[int]) -> list[int]:
        """A target for each token, `word_of` being the word that it belongs to."""

    @abstractmethod
    def training_batch(self, split: EncodedSplit, indices: Indices, epoch: int, seed: int) -> Batch:
        """Sentences as the model sees them in an epoch of training."""

    @abstractmethod
    def evaluation_batch(self, split: EncodedSplit, indices: Indices) -> Batch:
        """Sentences as every model sees them when it is judged."""

    @abstractmethod
    def loss(self, model: Model, read: Tensor, batch: Batch) -> Tensor:
        """The mean loss of a chunk."""

    @abstractmethod
    def count(self, model: Model, read: Tensor, batch: Batch) -> Counts: ...

    @abstractmethod
    def metrics(self, counts: Counts) -> dict[str, float]:
        """ "loss", the headline figure, and "score", of which more is better."""

    def warnings(self) -> list[str]:
        """What was odd about the sentences encoded since the last call."""
        return []

    def encode(self, sentences: Iterable[Sentence]) -> EncodedSplit:
        return EncodedSplit(self._rows(sentences))

    def _rows(self, sentences: Iterable[Sentence]) -> Iterator[Row]:
        for sentence in sentences:
            ids, word_of = self.vocabulary.encode(sentence.words)
            heads: Sequence[int] = [UNKNOWN_HEAD] * len(ids)
            if sentence.heads is not None and len(ids) == len(sentence):  # words are not split
                heads = sentence.heads
            yield {"words": ids, "targets": self.targets_of(sentence, word_of), "heads": heads}


def tensors(padded: Padded, words: NDArray[np.int64], targets: NDArray[np.int64]) -> Batch:
    return Batch(
        torch.from_numpy(words),
        torch.from_numpy(padded.mask),
        torch.from_numpy(np.where(padded.mask, targets, IGNORE)),
        torch.from_numpy(np.where(padded.mask, padded.fields["heads"], UNKNOWN_HEAD)),
    )


def gold_head_loss(posterior: Posterior, heads: Tensor, channel: int) -> Tensor:
    """−log P(gold head), on average over the words whose gold head is a value of H."""
    assert posterior.head_marginals is not None
    p = posterior.head_marginals[:, channel].gather(2, heads.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    asked = heads >= 0
    if posterior.root_head_marginals is not None:
        p = torch.where(heads == NO_HEAD, posterior.root_head_marginals[:, channel], p)
        asked = heads != UNKNOWN_HEAD
    losses = -p.clamp(min=torch.finfo(p.dtype).tiny).log() * asked
    return losses.sum() / asked.sum().clamp(min=1)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Of each position that asks for a class that training knows; zero elsewhere."""
    known = targets.masked_fill(targets < 0, IGNORE)
    return F.cross_entropy(logits.movedim(-1, 1), known, reduction="none", ignore_index=IGNORE)
