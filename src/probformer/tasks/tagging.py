"""Tagging: one of a column's values for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from probformer.baselines import Transformer
from probformer.config import TaggingSettings
from probformer.data.encoded import EncodedSplit
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.encoder import Encoder
from probformer.errors import InputError
from probformer.heads import Model
from probformer.tasks.task import (
    IGNORE,
    UNSEEN,
    Batch,
    Counts,
    Indices,
    Task,
    cross_entropy,
    tensors,
)


class Tagging(Task):
    """The tags are those of the training data; another one in dev or test counts as wrong."""

    metric, counted = "accuracy", ("loss", "right", "words")

    def __init__(self, settings: TaggingSettings, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.column = settings.column
        self.tags: list[str] = []
        self.unseen: Counter[str] = Counter()
        """Tags that training does not know, as they were met."""

    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        found = {tag for sentence in sentences for tag in self._tags_of(sentence)}
        self.load_state({"tags": sorted(found)})

    def state(self) -> dict[str, Any]:
        return {"tags": self.tags}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.tags = list(state["tags"])
        self._index = {tag: index for index, tag in enumerate(self.tags)}

    def _tags_of(self, sentence: Sentence) -> Sequence[str]:
        if self.column not in sentence.columns:
            known = ", ".join(sentence.columns) or "none"
            raise InputError(
                f"task.column must be a column of the data ({known}), got {self.column!r}"
            )
        return sentence.columns[self.column]

    def build_head(self, encoder: Encoder | Transformer) -> nn.Module:
        return nn.Linear(encoder.width, len(self.tags))

    def targets_of(self, sentence: Sentence, word_of: Sequence[int]) -> list[int]:
        """A word of several tokens is asked for at its first one."""
        tags, targets, last = self._tags_of(sentence), [], -1
        for word in word_of:
            target = self._index.get(tags[word], UNSEEN) if word != last else IGNORE
            if target == UNSEEN:
                self.unseen[tags[word]] += 1
            targets.append(target)
            last = word
        return targets

    def warnings(self) -> list[str]:
        if not self.unseen:
            return []
        tags = ", ".join(f"{tag!r} ({count})" for tag, count in self.unseen.most_common(5))
        self.unseen.clear()
        return [f"tags that training does not have count as wrong: {tags}"]

    def training_batch(self, split: EncodedSplit, indices: Indices, epoch: int, seed: int) -> Batch:
        return self.evaluation_batch(split, indices)

    def evaluation_batch(self, split: EncodedSplit, indices: Indices) -> Batch:
        padded = split.gather(indices)
        return tensors(padded, padded.fields["words"], padded.fields["targets"])

    def loss(self, model: Model, read: Tensor, batch: Batch) -> Tensor:
        """The mean over sentences of the mean over their words, as published."""
        losses = cross_entropy(model.head(read), batch.targets)
        return (losses.sum(1) / (batch.targets != IGNORE).sum(1).clamp(min=1)).mean()

    def count(self, model: Model, read: Tensor, batch: Batch) -> Counts:
        logits, asked = model.head(read), batch.targets != IGNORE
        right = (logits.argmax(-1) == batch.targets) & asked
        return {
            "loss": cross_entropy(logits, batch.targets).double().sum().item(),
            "right": float(right.sum()),
            "words": float(asked.sum()),
        }

    def metrics(self, counts: Counts) -> dict[str, float]:
        words = max(counts["words"], 1)
        accuracy = counts["right"] / words
        # Rounded as published: ties are common, and the loss decides them.
        return {"loss": counts["loss"] / words, "accuracy": accuracy, "score": round(accuracy, 4)}
