"""Masked language modelling: guess the words that were masked from the others."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from probformer.baselines import Transformer
from probformer.config import MaskedLMSettings
from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import Purpose, derive_seed, uniform
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.encoder import Encoder
from probformer.heads import Model, TiedProjection
from probformer.tasks.task import IGNORE, Batch, Counts, Indices, Task, cross_entropy, tensors

_EVALUATION_SEED = 313


class MaskedLM(Task):
    """Each known word is masked with the same probability, and always by the mask symbol.

    Training draws new masks in every epoch. Dev and test have fixed ones: Python's
    `random.Random(313)`, one draw a word in the order of the corpus, drawn for unknown words too,
    as published, so that perplexities compare.
    """

    metric, counted = "perplexity", ("loss", "words")

    def __init__(self, settings: MaskedLMSettings, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.rate = settings.rate

    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        pass  # the classes are the vocabulary

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        pass

    @property
    def classes(self) -> int:
        return len(self.vocabulary) - 1  # all but the mask, which comes last

    def build_head(self, encoder: Encoder | Transformer) -> nn.Module:
        """Tied to the embeddings for transformers, a layer of its own for PT, as published."""
        if isinstance(encoder, Transformer):
            return TiedProjection(encoder.words, self.classes)
        return nn.Linear(encoder.width, self.classes)

    def targets_of(self, sentence: Sentence, word_of: Sequence[int]) -> list[int]:
        return [0] * len(word_of)  # made with the masks

    def encode(self, sentences: Iterable[Sentence]) -> EncodedSplit:
        split = super().encode(sentences)
        stream = random.Random(_EVALUATION_SEED)
        draws = np.fromiter((stream.random() for _ in range(split.tokens)), float, split.tokens)
        split.fields["masked"] = (draws < self.rate).astype(np.int32)
        return split

    def training_batch(self, split: EncodedSplit, indices: Indices, epoch: int, seed: int) -> Batch:
        padded = split.gather(indices)
        draws = uniform(derive_seed(seed, Purpose.MASKING, epoch), padded.positions)
        return self._masked(padded, draws < self.rate)

    def evaluation_batch(self, split: EncodedSplit, indices: Indices) -> Batch:
        padded = split.gather(indices)
        return self._masked(padded, padded.fields["masked"] == 1)

    def _masked(self, padded, chosen) -> Batch:
        words = padded.fields["words"]
        chosen = chosen & padded.mask & (words != self.vocabulary.unk)
        inputs = np.where(chosen, self.vocabulary.mask, words)
        return tensors(padded, inputs, np.where(chosen, words, IGNORE))

    def loss(self, model: Model, read: Tensor, batch: Batch) -> Tensor:
        """The mean over the masked words of the chunk; zero if there are none."""
        losses = self._losses(model, read, batch)
        return losses.sum() / max(len(losses), 1)

    def count(self, model: Model, read: Tensor, batch: Batch) -> Counts:
        losses = self._losses(model, read, batch)
        return {"loss": losses.double().sum().item(), "words": float(len(losses))}

    def _losses(self, model: Model, read: Tensor, batch: Batch) -> Tensor:
        asked = batch.targets != IGNORE
        return cross_entropy(model.head(read[asked]), batch.targets[asked])

    def metrics(self, counts: Counts) -> dict[str, float]:
        loss = counts["loss"] / max(counts["words"], 1)
        return {"loss": loss, "perplexity": math.exp(min(loss, 700)), "score": -loss}
