"""The protocol of a task: sentences -> rows -> batch -> loss -> metrics, and answers for users."""

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
from probformer.errors import InputError, counted
from probformer.heads import Model
from probformer.posterior import Posterior
from probformer.tasks.labels import IGNORE

UNKNOWN_HEAD = -2
_NAMED = 10

Indices = Sequence[int] | NDArray[np.int64]
Counts = Mapping[str, float]
"""Sums over sentences, from which metrics are made; they add up over batches and processes."""


@dataclass(frozen=True)
class Batch:
    words: Tensor
    """(B, n) long."""
    mask: Tensor
    """(B, n) bool."""
    targets: dict[str, Tensor]
    """What the task asks, by name: (B, n) or (B,) long, `IGNORE` where nothing is asked."""
    heads: Tensor
    """(B, n) long: gold heads, `NO_HEAD` for the root, `UNKNOWN_HEAD` where the data has none."""

    def to(self, device: torch.device) -> Batch:
        targets = {name: target.to(device) for name, target in self.targets.items()}
        return Batch(self.words.to(device), self.mask.to(device), targets, self.heads.to(device))


class Task(ABC):
    """One way to train and judge a model."""

    metric: str
    """The name of the headline figure."""

    skips_bad_sentences = False
    """Whether a sentence whose annotation is wrong is left out and counted, or an error."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._left_out: list[str] = []

    # What the classes are.

    @abstractmethod
    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        """See the training data before it is encoded."""

    @abstractmethod
    def check(self, sentence: Sentence) -> None:
        """Raises an InputError if the annotation of the sentence is wrong."""

    def usable(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        self._left_out = []
        for sentence in sentences:
            if self.skips_bad_sentences:
                try:
                    self.check(sentence)
                except InputError as error:
                    self._left_out.append(str(error))
                    continue
            yield sentence

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What `learn_classes` learned, as JSON."""

    @abstractmethod
    def load_state(self, state: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def build_head(self, encoder: Encoder | Transformer) -> nn.Module: ...

    # From sentences to batches.

    @abstractmethod
    def fields_of(self, sentence: Sentence, word_of: Sequence[int]) -> Row:
        """Whole numbers by name, one a token, `word_of` being the word that a token belongs to."""

    def encode(self, sentences: Iterable[Sentence]) -> EncodedSplit:
        return EncodedSplit(self._rows(sentences))

    def _rows(self, sentences: Iterable[Sentence]) -> Iterator[Row]:
        for sentence in self.usable(sentences):
            ids, word_of = self.vocabulary.encode(sentence.words)
            heads: Sequence[int] = [UNKNOWN_HEAD] * len(ids)
            if sentence.heads is not None and len(ids) == len(sentence):  # words are not split
                heads = sentence.heads
            yield {"words": ids, "heads": heads, **self.fields_of(sentence, word_of)}

    def warnings(self) -> list[str]:
        """What was odd about the sentences encoded since the last call."""
        left_out, self._left_out = self._left_out, []
        if not left_out:
            return []
        found = counted(len(left_out), "sentence")
        return [f"left out {found} with wrong annotation: {'; '.join(left_out[:_NAMED])}"]

    def training_batch(self, split: EncodedSplit, indices: Indices, epoch: int, seed: int) -> Batch:
        """Sentences as the model sees them in an epoch of training."""
        return self.evaluation_batch(split, indices)

    def evaluation_batch(self, split: EncodedSplit, indices: Indices) -> Batch:
        """Sentences as every model sees them when it is judged."""
        padded = split.gather(indices)
        return as_batch(padded, padded.fields["words"], self.targets(padded))

    def targets(self, padded: Padded) -> dict[str, NDArray[np.int64]]:
        """The fields of `fields_of`, as they are."""
        return {k: v for k, v in padded.fields.items() if k not in ("words", "heads")}

    # What a model is worth; `read` is what its head reads of a batch.

    @abstractmethod
    def loss(self, model: Model, read: Tensor, batch: Batch) -> Tensor:
        """The mean loss of a chunk."""

    @abstractmethod
    def count(self, model: Model, read: Tensor, batch: Batch) -> Counts: ...

    @abstractmethod
    def metrics(self, counts: Counts) -> dict[str, float]:
        """ "loss", the headline figure, and "score", of which more is better.

        What no batch has counted is zero in `counts`.
        """

    # What a user sees.

    @abstractmethod
    def answer(
        self, model: Model, read: Tensor, words: Sequence[str], word_of: Sequence[int]
    ) -> dict[str, Any]:
        """The answer for one sentence, as JSON; `read` has a batch of it alone."""

    @abstractmethod
    def as_text(self, answer: Mapping[str, Any]) -> str: ...


def as_batch(
    padded: Padded, words: NDArray[np.int64], targets: Mapping[str, NDArray[np.int64]]
) -> Batch:
    return Batch(
        torch.from_numpy(words),
        torch.from_numpy(padded.mask),
        {
            name: torch.from_numpy(np.where(padded.mask, target, IGNORE))
            for name, target in targets.items()
        },
        torch.from_numpy(np.where(padded.mask, padded.fields["heads"], UNKNOWN_HEAD)),
    )


def first_tokens(word_of: Sequence[int]) -> list[int]:
    """The position of each word's first token."""
    return [i for i, word in enumerate(word_of) if i == 0 or word != word_of[i - 1]]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Of each position that asks for a class that training knows; zero elsewhere."""
    known = targets.masked_fill(targets < 0, IGNORE)
    return F.cross_entropy(logits.movedim(-1, 1), known, reduction="none", ignore_index=IGNORE)


def sentence_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean over the words of each sentence, (B, n, classes) -> (B,): as published."""
    losses = cross_entropy(logits, targets)
    return losses.sum(1) / (targets != IGNORE).sum(1).clamp(min=1)


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
