"""The protocol of a task: sentences -> rows -> batch -> loss -> metrics, and answers for users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from probformer.crf.posterior import Posterior
from probformer.data.encoded import EncodedSentence, EncodedSplit, Tokens
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.errors import InputError, counted
from probformer.models.encoder import Encoder
from probformer.models.readout import Model
from probformer.models.transformer import Transformer
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.tasks.batch import PLAIN, Batch, Plan, Question, build_batch
from probformer.tasks.labels import IGNORE

_NAMED = 10

Indices = Sequence[int] | NDArray[np.int64]
Counts = Mapping[str, float]
"""Sums over sentences, from which metrics are made; they add up over batches and processes."""
CountsSoFar = Mapping[str, float | Tensor]
"""The same of a batch; what is still being computed is a tensor."""


class Task(ABC):
    """One way to train and judge a model."""

    metric: str
    """The name of the headline figure."""

    skips_bad_sentences = False
    """Whether a sentence whose annotation is wrong is left out and counted, or an error."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._left_out: list[str] = []

    @property
    def reads_single_words(self) -> bool:
        """Whether the head looks at a word alone: then sentences may lie end to end."""
        return True

    # What the classes are.

    @abstractmethod
    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        """See the training data before it is encoded."""

    @abstractmethod
    def check(self, sentence: Sentence) -> None:
        """Raises an InputError if the annotation of the sentence is wrong."""

    def nothing_to_judge(self, split: EncodedSplit) -> str | None:
        """Why a model cannot be judged by a split, if that is so."""
        return None

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
    def fields_of(self, sentence: Sentence, word_of: Sequence[int]) -> EncodedSentence:
        """Whole numbers by name, one a token, `word_of` being the word that a token belongs to."""

    def encode(self, sentences: Iterable[Sentence]) -> EncodedSplit:
        return EncodedSplit(self._rows(sentences))

    def _rows(self, sentences: Iterable[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in self.usable(sentences):
            ids, word_of = self.vocabulary.encode(sentence.words)
            heads: Sequence[int] = [UNOBSERVED] * len(ids)
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

    def training_batch(
        self, split: EncodedSplit, indices: Indices, epoch: int, seed: int, plan: Plan = PLAIN
    ) -> Batch:
        """Sentences as the model sees them in an epoch of training."""
        return self.evaluation_batch(split, indices, plan)

    def evaluation_batch(self, split: EncodedSplit, indices: Indices, plan: Plan = PLAIN) -> Batch:
        """Sentences as every model sees them when it is judged."""
        tokens = split.gather(indices)
        return build_batch(tokens, self.question(tokens), plan)

    def question(self, tokens: Tokens) -> Question:
        """The fields of `fields_of` are asked for, as they are."""
        names = [name for name in tokens.split.fields if name not in ("words", "heads")]
        return Question(tokens["words"], of_words={name: tokens[name] for name in names})

    # What a model is worth; `read` is what its head reads of a batch.

    @abstractmethod
    def loss(self, model: Model, read: Tensor, batch: Batch) -> Tensor:
        """The mean losses of the batch's chunks, added up."""

    @abstractmethod
    def count(self, model: Model, read: Tensor, batch: Batch) -> CountsSoFar: ...

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


def weighted_loss(logits: Tensor, batch: Batch, name: str) -> Tensor:
    return (cross_entropy(logits, batch.targets[name]) * batch.weights[name]).sum()


def gold_head_loss(posterior: Posterior, batch: Batch, channel: int) -> Tensor:
    """−log P(gold head), on average over a chunk's words whose gold head is a value of H."""
    assert posterior.head_marginals is not None
    assert batch.heads is not None
    heads = batch.heads
    p = posterior.head_marginals[:, channel].gather(2, heads.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    if posterior.root_head_marginals is not None:
        p = torch.where(heads == ROOT, posterior.root_head_marginals[:, channel], p)
    losses = -p.clamp(min=torch.finfo(p.dtype).tiny).log()
    return (losses * batch.weights["heads"]).sum()
