"""Masked language modelling: guess the words that were masked from the others."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from probformer.baselines import Transformer
from probformer.config import MaskedLMSettings
from probformer.data.encoded import EncodedSplit, Padded, Row
from probformer.data.randomness import Purpose, derive_seed, uniform
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import MASK, Vocabulary
from probformer.encoder import Encoder
from probformer.errors import require
from probformer.heads import Model, TiedProjection
from probformer.tasks.labels import IGNORE
from probformer.tasks.task import Batch, Counts, Indices, Task, as_batch, cross_entropy

_EVALUATION_SEED = 313
_SHOWN = 5


class MaskedLM(Task):
    """Each known word is masked with the same probability, and always by the mask symbol.

    Training draws new masks in every epoch. Dev and test have fixed ones: Python's
    `random.Random(313)`, one draw a word in the order of the corpus, drawn for unknown words too,
    as published, so that perplexities compare.
    """

    metric = "perplexity"

    def __init__(self, settings: MaskedLMSettings, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.rate = settings.rate

    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        pass  # the classes are the vocabulary

    def check(self, sentence: Sentence) -> None:
        pass  # words are all that is asked for

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

    def encode(self, sentences: Iterable[Sentence]) -> EncodedSplit:
        self._draws = random.Random(_EVALUATION_SEED)
        return super().encode(sentences)

    def fields_of(self, sentence: Sentence, word_of: Sequence[int]) -> Row:
        return {"masked": [self._draws.random() < self.rate for _ in word_of]}

    def training_batch(self, split: EncodedSplit, indices: Indices, epoch: int, seed: int) -> Batch:
        padded = split.gather(indices)
        draws = uniform(derive_seed(seed, Purpose.MASKING, epoch), padded.positions)
        return self._masked(padded, draws < self.rate)

    def evaluation_batch(self, split: EncodedSplit, indices: Indices) -> Batch:
        padded = split.gather(indices)
        return self._masked(padded, padded.fields["masked"] == 1)

    def _masked(self, padded: Padded, chosen: NDArray[np.bool_]) -> Batch:
        words = padded.fields["words"]
        special = (words == self.vocabulary.unk) | (words == self.vocabulary.mask)
        chosen = chosen & padded.mask & ~special
        inputs = np.where(chosen, self.vocabulary.mask, words)
        return as_batch(padded, inputs, {"word": np.where(chosen, words, IGNORE)})

    def loss(self, model: Model, read: Tensor, batch: Batch) -> Tensor:
        """The mean over the masked words of the chunk; zero if there are none."""
        targets = batch.targets["word"]
        if not targets.is_cuda:
            losses = self._losses(model, read, batch)
            return losses.sum() / max(len(losses), 1)
        # A CUDA graph has no room for shapes that depend on values: all words are asked.
        losses = cross_entropy(model.head(read), targets)
        return losses.sum() / (targets != IGNORE).sum().clamp(min=1)

    def count(self, model: Model, read: Tensor, batch: Batch) -> Counts:
        losses = self._losses(model, read, batch)
        return {"loss": losses.sum().item(), "words": float(len(losses))}

    def _losses(self, model: Model, read: Tensor, batch: Batch) -> Tensor:
        targets = batch.targets["word"]
        asked = targets != IGNORE
        return cross_entropy(model.head(read[asked]), targets[asked])

    def metrics(self, counts: Counts) -> dict[str, float]:
        require(counts["words"] > 0, "there is no word to mask: all words of a split are unknown")
        loss = counts["loss"] / counts["words"]
        return {"loss": loss, "perplexity": math.exp(min(loss, 700)), "score": -loss}

    def answer(
        self, model: Model, read: Tensor, words: Sequence[str], word_of: Sequence[int]
    ) -> dict[str, Any]:
        asked = [position for position, word in enumerate(word_of) if words[word] == MASK]
        if not asked:
            return {"words": words, "masks": []}
        best = model.head(read[0, asked]).softmax(-1).topk(min(_SHOWN, self.classes))
        fillers = [
            {self.vocabulary.decode([i])[0]: round(p, 4) for i, p in zip(row, values, strict=True)}
            for row, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        return {"words": words, "masks": fillers}

    def as_text(self, answer: Mapping[str, Any]) -> str:
        """The sentence with its masks filled, and below it the likeliest words for each."""
        if not answer["masks"]:
            return f"{' '.join(answer['words'])}\n  (no {MASK} to fill)"
        fillers = iter(answer["masks"])
        filled = [next(iter(next(fillers))) if w == MASK else w for w in answer["words"]]
        details = [", ".join(f"{w} {p:.2f}" for w, p in row.items()) for row in answer["masks"]]
        return " ".join(filled) + "".join(f"\n  {detail}" for detail in details)
