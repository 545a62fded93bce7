"""Forward and backward of a chunk as one CUDA graph, for small models whose time is all launches.

A graph is bound to its shapes, so sentences are padded to a few lengths; a shape that does not
repeat is not worth a graph. Random numbers are as in eager mode: a replay reads the seed that
`torch.manual_seed` set before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.tasks.labels import IGNORE
from probformer.tasks.task import UNKNOWN_HEAD, Batch

LENGTHS = 8
"""Sentences are padded to multiples of this."""
_REPEATS = 3
"""A shape that came so often will come again."""


class Gradients:
    """Adds the gradient of a chunk's loss to the parameters' own; what a CPU does."""

    def __init__(self, loss_of: Callable[[Batch], Tensor]) -> None:
        self.loss_of = loss_of

    def add(self, batch: Batch) -> Tensor:
        """Returns the loss, which stays as it is until the next call."""
        loss = self.loss_of(batch)
        loss.backward()
        return loss.detach()


class CapturedGradients(Gradients):
    """The same, replayed from a CUDA graph where shapes repeat."""

    def __init__(
        self,
        loss_of: Callable[[Batch], Tensor],
        parameters: Sequence[nn.Parameter],
        longest: int | None = None,
    ) -> None:
        """`longest` is what the model can take."""
        super().__init__(loss_of)
        self.parameters = parameters
        self.longest = longest
        self.seen: Counter[tuple[int, ...]] = Counter()
        self.graphs: dict[tuple[int, ...], _Graph] = {}
        self.memory: Any = None

    def add(self, batch: Batch) -> Tensor:
        length = -(-batch.words.shape[1] // LENGTHS) * LENGTHS
        batch = padded(batch, length if self.longest is None else min(length, self.longest))
        shape = tuple(batch.words.shape)
        self.seen[shape] += 1
        if shape not in self.graphs:
            if self.seen[shape] < _REPEATS:
                return super().add(batch)
            self.graphs[shape] = self._capture(batch)
        graph = self.graphs[shape]
        for static, given in zip(_tensors(graph.batch), _tensors(batch), strict=True):
            static.copy_(given)
        graph.graph.replay()
        return graph.loss

    def _capture(self, batch: Batch) -> _Graph:
        kept = [p.grad.clone() for p in self.parameters if p.grad is not None]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries set themselves up outside of the graph
            for _ in range(2):
                self.loss_of(batch).backward()
        torch.cuda.current_stream().wait_stream(stream)
        for parameter, gradient in zip(self.parameters, kept, strict=True):
            assert parameter.grad is not None
            parameter.grad.copy_(gradient)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.memory):
            loss = self.loss_of(batch)
            loss.backward()
        self.memory = self.memory or graph.pool()
        return _Graph(graph, batch, loss.detach())


@dataclass(frozen=True)
class _Graph:
    graph: torch.cuda.CUDAGraph
    batch: Batch
    """What it reads."""
    loss: Tensor
    """What it writes, beside gradients."""


def padded(batch: Batch, length: int) -> Batch:
    """The same sentences, with more padding."""
    extra = length - batch.words.shape[1]
    if extra == 0:
        return batch
    return Batch(
        F.pad(batch.words, (0, extra)),
        F.pad(batch.mask, (0, extra)),
        {
            name: F.pad(target, (0, extra), value=IGNORE) if target.dim() == 2 else target
            for name, target in batch.targets.items()
        },
        F.pad(batch.heads, (0, extra), value=UNKNOWN_HEAD),
    )


def _tensors(batch: Batch) -> list[Tensor]:
    return [batch.words, batch.mask, batch.heads, *batch.targets.values()]
