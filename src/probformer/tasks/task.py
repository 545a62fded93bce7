"""The protocol of a task: sentences -> batch -> output -> loss and metrics, or an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from probformer.config import EncoderSettings, TransformerSettings
from probformer.data.breakdown import ScoreTable
from probformer.data.encoded import EncodedSentence, EncodedSplit, Tokens
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.errors import InputError, counted
from probformer.models.encoder import Encoder
from probformer.models.readout import Output
from probformer.models.transformer import Transformer
from probformer.sentinels import UNOBSERVED
from probformer.tasks.batch import PLAIN, Batch, Plan, Targets, build_batch
from probformer.tasks.labels import IGNORE

_NAMED = 10
"""The maximum number of left-out sentences that a warning describes."""
Indices = Sequence[int] | NDArray[np.int64]
Counts = Mapping[str, float]
"""Sums over sentences, from which metrics are computed; added up over batches and processes."""
CountsSoFar = Mapping[str, float | Tensor]
"""The same for one batch; tensors stay on the device."""


class Task(ABC):
    """What a model is trained and evaluated for: classes, targets, loss, metrics, predictions.

    Every task is a subclass; with its loss it is an `Objective` of training.

    Args:
        vocabulary: Maps words to ids.
    """

    name = "the task"
    """What error messages call it."""

    metric: str
    """The name of the main metric."""

    skips_bad_sentences = False
    """Whether sentences with missing or wrong annotation are left out, with a warning, instead of
    raising an error."""

    counts_confidences = False
    """Whether `count` returns the counts of `data.calibration`, too."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._left_out: list[str] = []

    @property
    def reads_single_words(self) -> bool:
        """Whether the read-out maps each word by itself, so that sentences may be packed."""
        return True

    @property
    def needs_heads(self) -> bool:
        """Whether loss, metrics or answers take head marginals, and batches have gold heads."""
        return False

    @property
    def arc_label_names(self) -> Sequence[str]:
        """The names of the labels of arcs, empty where they have none."""
        return ()

    @property
    def predicts_trees(self) -> bool:
        """Whether answers have the "heads" of a tree, and may have their "labels"."""
        return False

    @property
    def channel(self) -> int | None:
        """The channel whose heads the task supervises; None if there is none."""
        return None

    # Classes

    @abstractmethod
    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        """Collect the classes of the training data, before any sentence is encoded."""

    def encoder_settings(
        self, settings: EncoderSettings | TransformerSettings
    ) -> EncoderSettings | TransformerSettings:
        """The settings of the encoder, with what the classes decide, such as a number of labels.

        Called when the classes are known, before sentences are encoded.
        """
        return settings

    @abstractmethod
    def check(self, sentence: Sentence) -> None:
        """Check a sentence's annotation.

        Raises:
            InputError: The annotation is missing or wrong.
        """

    def why_no_metrics(self, split: EncodedSplit) -> str | None:
        """Why no metric can be computed on a split, such as one without targets; None if it can."""
        return None

    def usable(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """All sentences, or with `skips_bad_sentences` those whose annotation is right."""
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
        """The classes, as a dictionary to be stored in config.json."""

    @abstractmethod
    def load_state(self, state: Mapping[str, Any]) -> None:
        """Set the classes to those of a dictionary that `state` returned."""

    @abstractmethod
    def build_readout(self, encoder: Encoder | Transformer) -> nn.Module:
        """The layer from the encoder's representation, (…, `encoder.width`), to class scores."""

    # From sentences to batches

    @abstractmethod
    def fields_of(self, sentence: Sentence, word_of: Sequence[int]) -> EncodedSentence:
        """The task's annotation of a sentence as integers.

        Args:
            sentence: The sentence.
            word_of: The number of the word that each token belongs to.

        Returns:
            Columns by name, each with an integer for each token.
        """

    def encode(self, sentences: Iterable[Sentence]) -> EncodedSplit:
        """Words, gold heads and the task's annotation as integers."""
        return EncodedSplit(self._rows(sentences))

    def _rows(self, sentences: Iterable[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in self.usable(sentences):
            ids, word_of = self.vocabulary.encode(sentence.words)
            heads: Sequence[int] = [UNOBSERVED] * len(ids)
            if sentence.heads is not None and len(ids) == len(sentence):  # words are not split
                heads = sentence.heads
            yield {"words": ids, "heads": heads, **self.fields_of(sentence, word_of)}

    def warnings(self) -> list[str]:
        """Problems of the sentences encoded since the last call."""
        left_out, self._left_out = self._left_out, []
        if not left_out:
            return []
        found = counted(len(left_out), "sentence")
        return [f"left out {found} with wrong annotation: {'; '.join(left_out[:_NAMED])}"]

    def training_batch(
        self, split: EncodedSplit, indices: Indices, epoch: int, seed: int, plan: Plan = PLAIN
    ) -> Batch:
        """A batch of an epoch of training.

        Args:
            split: The encoded training split.
            indices: The numbers of the sentences in the split.
            epoch: The epoch, from 0, for tasks that draw inputs or targets anew in each epoch.
            seed: The seed of the run.
            plan: The layout, and what losses are averaged over.
        """
        return self.evaluation_batch(split, indices, plan)

    def evaluation_batch(self, split: EncodedSplit, indices: Indices, plan: Plan = PLAIN) -> Batch:
        """A batch for evaluation, the same for every model.

        Args:
            split: The encoded split.
            indices: The numbers of the sentences in the split.
            plan: The layout, and what losses are averaged over.
        """
        tokens = split.gather(indices)
        return build_batch(tokens, self.targets(tokens), plan)

    def targets(self, tokens: Tokens) -> Targets:
        """Inputs and targets of tokens; by default all columns of `fields_of` are targets."""
        names = [name for name in tokens.split.fields if name not in ("words", "heads")]
        return Targets(tokens["words"], of_words={name: tokens[name] for name in names})

    # Loss and metrics

    @abstractmethod
    def loss(self, output: Output, batch: Batch) -> Tensor:
        """The loss to minimise.

        Args:
            output: The model's output for the batch, with head marginals if `needs_heads`.
            batch: Inputs, targets and their weights.

        Returns:
            The mean losses of the batch's chunks, added up: a scalar.
        """

    @abstractmethod
    def count(self, output: Output, batch: Batch) -> CountsSoFar:
        """The sums over a batch that `metrics` needs.

        Args:
            output: The model's output for the batch, with head marginals if `needs_heads`.
            batch: Inputs, targets and their weights.
        """

    @abstractmethod
    def metrics(self, counts: Counts) -> dict[str, float]:
        """Metrics of a split.

        Args:
            counts: Sums over its batches; zero for a name that no batch has counted.

        Returns:
            "loss", the main metric, and "score", the higher the better, among others.
        """

    def count_details(self, output: Output, batch: Batch) -> CountsSoFar:
        """The sums over a batch that `metrics` and `details` need; by default those of `count`.

        Args:
            output: The model's output for the batch, with head marginals if `needs_heads`.
            batch: Inputs, targets and their weights.
        """
        return self.count(output, batch)

    def details(self, counts: Counts) -> list[ScoreTable]:
        """Tables that say where predictions on a split are right and wrong; by default none.

        Args:
            counts: Sums over its batches of what `count_details` returns.
        """
        return []

    # Answers

    @abstractmethod
    def answer(
        self, output: Output, words: Sequence[str], word_of: Sequence[int]
    ) -> dict[str, Any]:
        """The prediction for one sentence.

        Args:
            output: The model's output for this sentence alone, without padding: `Output.sentence`.
            words: The words of the sentence.
            word_of: The number of the word that each token belongs to.

        Returns:
            "words" and the predictions, of types that JSON has.
        """

    @abstractmethod
    def as_text(self, answer: Mapping[str, Any]) -> str:
        """An answer as the command line prints it."""


def first_tokens(word_of: Sequence[int]) -> list[int]:
    """The position of each word's first token."""
    return [i for i, word in enumerate(word_of) if i == 0 or word != word_of[i - 1]]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """The loss at each position: (B, n, classes) and (B, n) -> (B, n), or without n.

    It is zero where there is no target, or where the target does not occur in the training data.
    """
    known = targets.masked_fill(targets < 0, IGNORE)
    return F.cross_entropy(logits.movedim(-1, 1), known, reduction="none", ignore_index=IGNORE)


def sentence_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean loss of the words of each sentence, as published: (B, n, classes) -> (B,)."""
    losses = cross_entropy(logits, targets)
    return losses.sum(1) / (targets != IGNORE).sum(1).clamp(min=1)


def weighted_loss(logits: Tensor, batch: Batch, name: str) -> Tensor:
    """Σ weight × cross-entropy over the targets of one name."""
    return (cross_entropy(logits, batch.targets[name]) * batch.weights[name]).sum()
