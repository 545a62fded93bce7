"""Tagging: for each word one of the values of a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from probformer.config import NERSettings, TaggingSettings
from probformer.data.encoded import EncodedSentence
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.errors import InputError
from probformer.models.encoder import Encoder
from probformer.models.readout import Output
from probformer.models.transformer import Transformer
from probformer.tasks.batch import Batch
from probformer.tasks.labels import IGNORE, Labels
from probformer.tasks.task import (
    Counts,
    CountsSoFar,
    Task,
    first_tokens,
    sentence_losses,
    weighted_loss,
)


class Tagging(Task):
    """The classes are the tags of the training data; other tags in dev and test count as wrong."""

    metric = "accuracy"

    def __init__(self, settings: TaggingSettings | NERSettings, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.column = settings.column
        self.tags = Labels()

    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        usable = self.usable(sentences)
        self.tags = Labels(sorted({tag for sentence in usable for tag in self.tags_of(sentence)}))

    def check(self, sentence: Sentence) -> None:
        self.tags_of(sentence)

    def state(self) -> dict[str, Any]:
        return {"tags": self.tags.names}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.tags = Labels(state["tags"])

    def tags_of(self, sentence: Sentence) -> Sequence[str]:
        if self.column not in sentence.columns:
            known = ", ".join(sentence.columns) or "none"
            message = f"task.column must be a column of the data ({known}), got {self.column!r}"
            raise InputError(message)
        return sentence.columns[self.column]

    def build_readout(self, encoder: Encoder | Transformer) -> nn.Module:
        return nn.Linear(encoder.width, len(self.tags))

    def fields_of(self, sentence: Sentence, word_of: Sequence[int]) -> EncodedSentence:
        """The tag of a word of several tokens is the target of its first token."""
        targets = [IGNORE] * len(word_of)
        for first, tag in zip(first_tokens(word_of), self.tags_of(sentence), strict=True):
            targets[first] = self.tags.number(tag)
        return {"tag": targets}

    def warnings(self) -> list[str]:
        return [*super().warnings(), *self.tags.take_warnings("tags")]

    def loss(self, output: Output, batch: Batch) -> Tensor:
        return weighted_loss(output.readout(output.representation), batch, "tag")

    def count(self, output: Output, batch: Batch) -> CountsSoFar:
        return self.count_tags(output.readout(output.representation), batch.targets["tag"])

    def count_tags(self, logits: Tensor, targets: Tensor) -> CountsSoFar:
        return {
            "loss": sentence_losses(logits, targets).sum(),
            "sentences": float(len(targets)),
            "right": (logits.argmax(-1) == targets).sum(),
            "words": (targets != IGNORE).sum(),
        }

    def metrics(self, counts: Counts) -> dict[str, float]:
        loss = counts["loss"] / max(counts["sentences"], 1)
        accuracy = counts["right"] / max(counts["words"], 1)
        # Rounded as published, which makes ties common: the lower loss then wins.
        return {"loss": loss, "accuracy": accuracy, "score": round(accuracy, 4)}

    def answer(
        self, output: Output, words: Sequence[str], word_of: Sequence[int]
    ) -> dict[str, Any]:
        of_words = output.representation[0, first_tokens(word_of)]
        best = output.readout(of_words).argmax(-1).tolist()
        return {"words": words, "tags": [self.tags.name(tag) for tag in best]}

    def as_text(self, answer: Mapping[str, Any]) -> str:
        pairs = zip(answer["words"], answer["tags"], strict=True)
        return " ".join(f"{word}/{tag}" for word, tag in pairs)
