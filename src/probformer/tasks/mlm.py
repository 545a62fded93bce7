"""Masked language modelling: predict the masked words from the others."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from probformer.config import MaskedLMSettings
from probformer.data.encoded import EncodedSentence, EncodedSplit, Tokens
from probformer.data.randomness import Purpose, derive_seed, uniform
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import MASK, Vocabulary
from probformer.errors import require
from probformer.models.encoder import Encoder
from probformer.models.readout import Output, word_readout
from probformer.models.transformer import Transformer
from probformer.tasks.batch import PLAIN, Batch, Plan, Targets, build_batch
from probformer.tasks.labels import IGNORE
from probformer.tasks.task import (
    Counts,
    CountsSoFar,
    Indices,
    Task,
    cross_entropy,
    weighted_loss,
)

_EVALUATION_SEED = 313
_NOTHING_MASKED = (
    "no known word is masked: the split is too small, or has too few words of the vocabulary"
)
_FILLERS = 5
"""Number of words that a prediction lists for each mask."""


class MaskedLM(Task):
    """Each known word is masked with probability `task.rate`, always by the mask symbol.

    Training draws new masks in every epoch. Those of dev and test are fixed, as published, so that
    perplexities can be compared: one draw of Python's `random.Random(313)` for each word in the
    order of the corpus, unknown words included.
    """

    metric = "perplexity"

    def __init__(self, settings: MaskedLMSettings, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.rate, self.tied = settings.rate, settings.tied

    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        pass  # the classes are the vocabulary

    def check(self, sentence: Sentence) -> None:
        pass  # there is no annotation

    def why_no_metrics(self, split: EncodedSplit) -> str | None:
        words, masked = split.fields["words"], split.fields["masked"]
        return None if self._hidden(words, masked == 1).any() else _NOTHING_MASKED

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        pass

    @property
    def classes(self) -> int:
        return len(self.vocabulary) - 1  # all but the mask, the last entry

    def build_readout(self, encoder: Encoder | Transformer) -> nn.Module:
        return word_readout(encoder, self.vocabulary.mask, self.tied)

    def encode(self, sentences: Iterable[Sentence]) -> EncodedSplit:
        self._draws = random.Random(_EVALUATION_SEED)
        return super().encode(sentences)

    def fields_of(self, sentence: Sentence, word_of: Sequence[int]) -> EncodedSentence:
        return {"masked": [self._draws.random() < self.rate for _ in word_of]}

    def training_batch(
        self, split: EncodedSplit, indices: Indices, epoch: int, seed: int, plan: Plan = PLAIN
    ) -> Batch:
        tokens = split.gather(indices)
        draws = uniform(derive_seed(seed, Purpose.MASKING, epoch), tokens.positions)
        return build_batch(tokens, self._masked(tokens, draws < self.rate), plan)

    def targets(self, tokens: Tokens) -> Targets:
        return self._masked(tokens, tokens["masked"] == 1)

    def _masked(self, tokens: Tokens, chosen: NDArray[np.bool_]) -> Targets:
        words = tokens["words"]
        chosen = self._hidden(words, chosen)
        inputs = np.where(chosen, self.vocabulary.mask, words)
        return Targets(inputs, of_some_words={"word": np.where(chosen, words, IGNORE)})

    def _hidden(self, words: NDArray[Any], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The words to mask: of those `chosen`, not <unk> and <mask>."""
        return chosen & (words != self.vocabulary.unk) & (words != self.vocabulary.mask)

    def loss(self, output: Output, batch: Batch) -> Tensor:
        """The mean over the masked words of a chunk; zero if there are none."""
        return weighted_loss(self._logits(output, batch), batch, "word")

    def count(self, output: Output, batch: Batch) -> CountsSoFar:
        targets = batch.targets["word"]
        losses = cross_entropy(self._logits(output, batch), targets)
        return {"loss": losses.sum(), "words": (targets != IGNORE).sum()}

    def _logits(self, output: Output, batch: Batch) -> Tensor:
        """(P, classes), for masked words only: for all words they would take much memory."""
        assert batch.target_positions is not None
        of_words = output.representation.flatten(0, 1)
        return output.readout(of_words.index_select(0, batch.target_positions))

    def metrics(self, counts: Counts) -> dict[str, float]:
        require(counts["words"] > 0, _NOTHING_MASKED)
        loss = counts["loss"] / counts["words"]
        return {"loss": loss, "perplexity": math.exp(min(loss, 700)), "score": -loss}

    def answer(
        self, output: Output, words: Sequence[str], word_of: Sequence[int]
    ) -> dict[str, Any]:
        masked = [position for position, word in enumerate(word_of) if words[word] == MASK]
        if not masked:
            return {"words": words, "masks": []}
        probabilities = output.readout(output.representation[0, masked]).softmax(-1)
        return {"words": words, "masks": [self._fillers(row) for row in probabilities]}

    def _fillers(self, probabilities: Tensor) -> dict[str, float]:
        """The most probable words; of several pieces with the same text, the most probable one."""
        found: dict[str, float] = {}
        best = probabilities.sort(descending=True)
        for index, p in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            found.setdefault(self.vocabulary.decode([index])[0], round(p, 4))
            if len(found) == _FILLERS:
                break
        return found

    def as_text(self, answer: Mapping[str, Any]) -> str:
        """The sentence with its masks filled, and below it the most probable words."""
        if not answer["masks"]:
            return f"{' '.join(answer['words'])}\n  (no {MASK} to fill)"
        fillers = iter(answer["masks"])
        filled = [next(iter(next(fillers))) if w == MASK else w for w in answer["words"]]
        details = [", ".join(f"{w} {p:.2f}" for w, p in row.items()) for row in answer["masks"]]
        return " ".join(filled) + "".join(f"\n  {detail}" for detail in details)
