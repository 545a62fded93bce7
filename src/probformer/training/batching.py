"""The batches of training: which sentences, in which chunks, laid out how."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from probformer.config import RunSettings
from probformer.data.batches import Indices, training_batches
from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import Purpose, derive_seed
from probformer.data.word_dropout import drop_words
from probformer.runs.run_folder import Run
from probformer.tasks import Batch, Task
from probformer.tasks.batch import Plan
from probformer.tasks.objective import lowest_head

MAX_TOKENS = 16384
"""On a GPU, chunks go through the model together up to this number of tokens, padding included."""


def plan_for(run: Run, needs_heads: bool, on_gpu: bool) -> Plan:
    """The layout of training batches: on a GPU in few different shapes, packed where possible."""
    training, encoder = run.settings.training, run.model.encoder
    can_pack = encoder.can_pack(run.task.reads_single_words, training.precision)
    return Plan(
        chunk=training.chunk,
        packed=on_gpu and can_pack and not needs_heads,
        front=encoder.settings.extra_places,
        rounded=on_gpu,
        longest=encoder.settings.max_words,
        lowest_head=lowest_head(encoder) if needs_heads else None,
    )


@dataclass
class TrainingBatches:
    """Makes the batches of a training split."""

    settings: RunSettings
    task: Task
    split: EncodedSplit
    plan: Plan
    max_tokens: int
    """Chunks go through the model together up to this number of tokens; one by one with 0."""

    def __post_init__(self) -> None:
        self._words_of_epoch = self.split

    def of_epoch(self, epoch: int) -> list[Indices]:
        """Begin an epoch: draw its word dropout, and return the sentences of each batch."""
        self._words_of_epoch = self._with_word_dropout(epoch)
        training = self.settings.training
        return training_batches(
            self.split.lengths, training.batch, epoch, self.settings.seed, training.by_length
        )

    def chunks(self, batch: Indices) -> list[Indices]:
        """A batch in chunks, each of which has a mean loss of its own."""
        size = self.settings.training.chunk or self.settings.training.batch
        return [batch[start : start + size] for start in range(0, len(batch), size)]

    def passes(self, chunks: Sequence[Indices], numbers: Iterable[int]) -> list[list[int]]:
        """The chunks with these numbers, grouped by which go through the model together."""
        passes: list[list[int]] = []
        lengths, sentences, longest = self.split.lengths, 0, 0
        for number in numbers:
            sentences += len(chunks[number])
            longest = max(longest, int(lengths[chunks[number]].max()))
            if not passes or sentences * longest > self.max_tokens:
                passes.append([])
                sentences, longest = len(chunks[number]), int(lengths[chunks[number]].max())
            passes[-1].append(number)
        return passes

    def build(self, chunks: Sequence[Indices], epoch: int) -> Batch:
        """The tensors of one pass."""
        indices, seed = np.concatenate(chunks), self.settings.seed
        return self.task.training_batch(self._words_of_epoch, indices, epoch, seed, self.plan)

    def _with_word_dropout(self, epoch: int) -> EncodedSplit:
        strength = self.settings.vocabulary.word_dropout
        if not strength:
            return self.split
        seed = derive_seed(self.settings.seed, Purpose.WORD_DROPOUT, epoch)
        return drop_words(self.split, self.task.vocabulary.unk, strength, seed)
