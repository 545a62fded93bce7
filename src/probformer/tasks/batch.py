"""Batches: the tensors that a model gets, the targets of its loss, and their weights.

A loss is Σ weight × cross-entropy over target positions. The weights contain the division by the
number of targets, so that several chunks, each with a mean loss of its own, can go through the
model together: the sum is then the sum of their means.
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
"""With `Plan.rounded`, sentences are padded to a multiple of this length."""
_POSITIONS = 256
"""With `Plan.rounded`, the number of target positions is padded to a multiple of this."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """How sentences are laid out, and what their losses are averaged over."""

    chunk: int | None = None
    """Sentences per chunk, each of which has a mean loss of its own; None: all in one chunk."""
    packed: bool = False
    """Whether sentences are laid end to end in one row, without padding between them."""
    front: int = 0
    """Positions left free before each packed sentence: 1 for a CLS vector, else 0."""
    rounded: bool = False
    """Whether sizes are rounded up, so that few shapes occur: each needs its own CUDA graph."""
    longest: int | None = None
    """The longest sentence that fits the model's position table, which rounding up must not exceed;
    None: the model has no such table."""
    lowest_head: int | None = None
    """The smallest gold head that has a weight in the loss: `ROOT` for a model with a root, else 0.
    None: batches have no gold heads."""

    def layout(self, lengths: Ints) -> Layout:
        if self.packed:
            return packed(lengths, self.front)
        return padded(lengths, LENGTHS if self.rounded else 1, self.longest)


PLAIN = Plan()


@dataclass(frozen=True)
class Batch:
    """B sentences padded to n words; or, with `packing`, one row (B = 1) that holds them all."""

    words: Tensor
    """(B, n) long: the ids of words or subwords."""
    mask: Tensor
    """(B, n) bool, false on padding."""
    targets: dict[str, Tensor]
    """Class numbers by name, such as "tag": (B, n) for words, (B,) for sentences, (P,) for
    `target_positions`; `IGNORE` where there is no target."""
    weights: dict[str, Tensor]
    """The weight of each target in the loss, by the same names; "heads" for gold heads."""
    target_positions: Tensor | None
    """(P,) long, for tasks with few targets: b · n + i for word i of sentence b."""
    heads: Tensor | None
    """(B, n) long, with `Plan.lowest_head` only: gold heads, `ROOT` for the root, `UNOBSERVED`
    where the data has none."""
    packing: Packing | None
    """Where sentences begin and end, if `words` is one row of them laid end to end."""
    chunks: int
    """Number of chunks, each with a mean loss of its own."""

    def to(self, device: torch.device) -> Batch:
        """Copy to a device; to a GPU without waiting for its earlier work."""
        if device.type != "cuda":
            return self.map(lambda tensor: tensor.to(device))
        return self.map(lambda tensor: tensor.pin_memory().to(device, non_blocking=True))

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """A batch with `change` applied to every tensor."""
        packing = self.packing
        if packing is not None:
            packing = Packing(change(packing.starts), change(packing.lengths), packing.longest)
        return Batch(
            change(self.words),
            change(self.mask),
            {name: change(target) for name, target in self.targets.items()},
            {name: change(weight) for name, weight in self.weights.items()},
            None if self.target_positions is None else change(self.target_positions),
            None if self.heads is None else change(self.heads),
            packing,
            self.chunks,
        )

    def shape(self) -> tuple[Any, ...]:
        """All sizes: batches of the same shape can share a CUDA graph."""
        longest = None if self.packing is None else self.packing.longest
        return self.chunks, longest, *(tuple(tensor.shape) for tensor in self._tensors())

    def to_bytes(self) -> Tensor:
        """All tensors as one, (bytes,) uint8, so that one copy moves the batch."""
        return torch.cat([tensor.flatten().view(torch.uint8) for tensor in self._tensors()])

    def from_bytes(self, content: Tensor) -> Batch:
        """A batch of the same shape, whose tensors are views of what `to_bytes` returned."""
        tensors = self._tensors()
        parts = content.split([tensor.nbytes for tensor in tensors])
        part_of = dict(zip(map(id, tensors), parts, strict=True))
        return self.map(lambda x: part_of[id(x)].view(x.dtype).view(x.shape))

    def _tensors(self) -> list[Tensor]:
        """The types of most bytes first, so that each is aligned in `to_bytes`."""
        found: list[Tensor] = []
        self.map(lambda tensor: found.append(tensor) or tensor)
        return sorted(found, key=lambda tensor: -tensor.element_size())


@dataclass(frozen=True)
class Targets:
    """Inputs and targets of T tokens in S sentences.

    Targets are class numbers, by name; `IGNORE` where there is none.
    """

    words: Ints
    """(T,): the model's input, in which words may be masked."""
    of_words: Mapping[str, Ints] = field(default_factory=dict)
    """(T,) each: the loss is the mean over sentences of the mean over their words."""
    of_words_by_chunk: Mapping[str, Ints] = field(default_factory=dict)
    """(T,) each: the loss is the mean over all targets of a chunk."""
    of_some_words: Mapping[str, Ints] = field(default_factory=dict)
    """(T,) each, most of them `IGNORE`: the loss is the mean over all targets of a chunk."""
    of_sentences: Mapping[str, Ints] = field(default_factory=dict)
    """(S,) each: the loss is the mean over sentences."""


def build_batch(tokens: Tokens, given: Targets, plan: Plan) -> Batch:
    """Lay out tokens and targets, and compute the weights of targets in the loss.

    Args:
        tokens: The tokens of the batch's sentences.
        given: Input words and targets.
        plan: The layout, and what losses are averaged over.

    Returns:
        The batch, on the CPU.
    """
    layout, count = plan.layout(tokens.lengths), len(tokens.lengths)
    chunk_of = np.arange(count) // (plan.chunk or count)
    share = 1 / np.bincount(chunk_of)[chunk_of]  # a sentence's weight in its chunk's mean
    targets, weights, positions, heads = {}, {}, None, None
    for name, target in given.of_words.items():
        targets[name] = layout.place(target, IGNORE)
        means = mean_weights(target != IGNORE, tokens.sentences) * share[tokens.sentences]
        weights[name] = layout.place(means, 0)
    for name, target in given.of_words_by_chunk.items():
        targets[name] = layout.place(target, IGNORE)
        means = mean_weights(target != IGNORE, chunk_of[tokens.sentences])
        weights[name] = layout.place(means, 0)
    for name, target in given.of_some_words.items():
        where = np.flatnonzero(target != IGNORE)
        size = round_up(len(where), _POSITIONS) if plan.rounded else len(where)
        means = mean_weights(np.ones(len(where), np.bool_), chunk_of[tokens.sentences[where]])
        positions = _extended(layout.cells[where], size, 0)
        targets[name] = _extended(target[where], size, IGNORE)
        weights[name] = _extended(means, size, 0)
    for name, target in given.of_sentences.items():
        size = count if layout.packing is None else len(layout.packing.starts)
        targets[name], weights[name] = _extended(target, size, IGNORE), _extended(share, size, 0)
    if plan.lowest_head is not None:
        gold = tokens["heads"]
        means = mean_weights(gold >= plan.lowest_head, chunk_of[tokens.sentences])
        heads, weights["heads"] = layout.place(gold, UNOBSERVED), layout.place(means, 0)
    return Batch(
        torch.from_numpy(layout.place(given.words, 0)),
        torch.from_numpy(layout.place(np.ones(len(given.words), np.bool_), False)),
        {name: torch.from_numpy(target) for name, target in targets.items()},
        {name: torch.from_numpy(weight.astype(np.float32)) for name, weight in weights.items()},
        None if positions is None else torch.from_numpy(positions),
        None if heads is None else torch.from_numpy(heads),
        layout.packing,
        chunks=int(chunk_of[-1]) + 1,
    )


def mean_weights(has_target: NDArray[np.bool_], groups: Ints) -> NDArray[np.float64]:
    """Weights with which the sum over all targets is the sum of the groups' means."""
    sizes = np.bincount(groups[has_target], minlength=groups.max(initial=0) + 1)
    return has_target / np.maximum(sizes, 1)[groups]


def _extended(values: NDArray[Any], size: int, fill: float) -> NDArray[Any]:
    longer = np.full(size, fill, dtype=values.dtype)
    longer[: len(values)] = values
    return longer
