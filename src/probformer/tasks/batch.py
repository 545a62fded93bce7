"""What a model is given at a time, and what is asked of it.

A loss is Σ weight × cross-entropy over what is asked. The weights say what is averaged, so several
chunks, each with a mean of its own, can go through the model together: their losses add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probformer.data.encoded import Tokens
from probformer.data.layout import Layout, packed, padded, round_up
from probformer.packing import Packing
from probformer.sentinels import UNOBSERVED
from probformer.tasks.labels import IGNORE

LENGTHS = 8
"""Where shapes should repeat, sentences are padded to multiples of this."""
_ASKED = 256
"""And so many words at a time are asked for."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """How sentences are laid out, and what their losses are averaged over."""

    chunk: int | None = None
    """So many sentences have a mean of their own; None: all."""
    packed: bool = False
    front: int = 0
    """So many places in front of each packed sentence are not for words, but for CLS."""
    rounded: bool = False
    """Sizes are rounded up, so that shapes repeat."""
    longest: int | None = None
    """What the model can take."""
    lowest_head: int | None = None
    """Gold heads from here on are asked for: 0 for words, `ROOT` for the root too."""

    def layout(self, lengths: Ints) -> Layout:
        if self.packed:
            return packed(lengths, self.front)
        return padded(lengths, LENGTHS if self.rounded else 1, self.longest)


PLAIN = Plan()


@dataclass(frozen=True)
class Batch:
    words: Tensor
    """(B, n) long."""
    mask: Tensor
    """(B, n) bool."""
    targets: dict[str, Tensor]
    """What the task asks, by name: (B, n), (B,) or one a cell of `asked`; `IGNORE` for nothing."""
    weights: dict[str, Tensor]
    """What each target counts in the loss, and each gold head."""
    asked: Tensor | None
    """Where only few words are asked for: their cells, counted row by row."""
    heads: Tensor | None
    """(B, n) long, if asked for: `ROOT` for the root, `UNOBSERVED` where the data has none."""
    packing: Packing | None
    chunks: int

    def to(self, device: torch.device) -> Batch:
        """On a GPU, without waiting for what it is doing."""
        if device.type != "cuda":
            return self.map(lambda tensor: tensor.to(device))
        return self.map(lambda tensor: tensor.pin_memory().to(device, non_blocking=True))

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        packing = self.packing
        if packing is not None:
            packing = Packing(change(packing.starts), change(packing.lengths), packing.longest)
        return Batch(
            change(self.words),
            change(self.mask),
            {name: change(target) for name, target in self.targets.items()},
            {name: change(weight) for name, weight in self.weights.items()},
            None if self.asked is None else change(self.asked),
            None if self.heads is None else change(self.heads),
            packing,
            self.chunks,
        )

    def shape(self) -> tuple[Any, ...]:
        """Batches of the same shape can share a CUDA graph."""
        longest = None if self.packing is None else self.packing.longest
        return self.chunks, longest, *(tuple(tensor.shape) for tensor in self._tensors())

    def bytes(self) -> Tensor:
        """All of it in one piece, which is quicker to copy."""
        return torch.cat([tensor.flatten().view(torch.uint8) for tensor in self._tensors()])

    def reading(self, piece: Tensor) -> Batch:
        """A batch of the same shape, whose tensors are parts of a piece as `bytes` makes it."""
        tensors = self._tensors()
        parts = piece.split([tensor.nbytes for tensor in tensors])
        part_of = dict(zip(map(id, tensors), parts, strict=True))
        return self.map(lambda x: part_of[id(x)].view(x.dtype).view(x.shape))

    def _tensors(self) -> list[Tensor]:
        """The largest types first, so that one after the other all of them are aligned."""
        found: list[Tensor] = []
        self.map(lambda tensor: found.append(tensor) or tensor)
        return sorted(found, key=lambda tensor: -tensor.element_size())


@dataclass(frozen=True)
class Question:
    """What the model sees of some tokens, and what is asked of it."""

    words: Ints
    of_words: Mapping[str, Ints] = field(default_factory=dict)
    """Targets by name, one a token, of which each sentence has a mean."""
    of_some_words: Mapping[str, Ints] = field(default_factory=dict)
    """Targets by name, one a token, most of which ask nothing: a chunk has one mean."""
    of_sentences: Mapping[str, Ints] = field(default_factory=dict)
    """Targets by name, one a sentence."""


def build_batch(tokens: Tokens, question: Question, plan: Plan) -> Batch:
    layout, count = plan.layout(tokens.lengths), len(tokens.lengths)
    chunk_of = np.arange(count) // (plan.chunk or count)
    share = 1 / np.bincount(chunk_of)[chunk_of]  # of a sentence in the mean of its chunk
    targets, weights, asked, heads = {}, {}, None, None
    for name, target in question.of_words.items():
        targets[name] = layout.place(target, IGNORE)
        means = mean_weights(target != IGNORE, tokens.sentences) * share[tokens.sentences]
        weights[name] = layout.place(means, 0)
    for name, target in question.of_some_words.items():
        where = np.flatnonzero(target != IGNORE)
        size = round_up(len(where), _ASKED) if plan.rounded else len(where)
        means = mean_weights(np.ones(len(where), np.bool_), chunk_of[tokens.sentences[where]])
        asked = _extended(layout.cells[where], size, 0)
        targets[name] = _extended(target[where], size, IGNORE)
        weights[name] = _extended(means, size, 0)
    for name, target in question.of_sentences.items():
        size = count if layout.packing is None else len(layout.packing.starts)
        targets[name], weights[name] = _extended(target, size, IGNORE), _extended(share, size, 0)
    if plan.lowest_head is not None:
        gold = tokens["heads"]
        means = mean_weights(gold >= plan.lowest_head, chunk_of[tokens.sentences])
        heads, weights["heads"] = layout.place(gold, UNOBSERVED), layout.place(means, 0)
    return Batch(
        torch.from_numpy(layout.place(question.words, 0)),
        torch.from_numpy(layout.place(np.ones(len(question.words), np.bool_), False)),
        {name: torch.from_numpy(target) for name, target in targets.items()},
        {name: torch.from_numpy(weight.astype(np.float32)) for name, weight in weights.items()},
        None if asked is None else torch.from_numpy(asked),
        None if heads is None else torch.from_numpy(heads),
        layout.packing,
        chunks=int(chunk_of[-1]) + 1,
    )


def mean_weights(asked: NDArray[np.bool_], groups: Ints) -> NDArray[np.float64]:
    """Weights with which a sum over what is asked is the sum of its groups' means."""
    sizes = np.bincount(groups[asked], minlength=groups.max(initial=0) + 1)
    return asked / np.maximum(sizes, 1)[groups]


def _extended(values: NDArray[Any], size: int, fill: float) -> NDArray[Any]:
    longer = np.full(size, fill, dtype=values.dtype)
    longer[: len(values)] = values
    return longer
