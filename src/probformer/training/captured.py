"""Forward and backward as one CUDA graph, for small models whose time is all launches.

A graph is bound to its shapes, so batches are made in a few sizes; a shape that does not repeat is
not worth a graph. Random numbers are as in eager mode: a replay reads the seed that
`torch.manual_seed` set before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from probformer.tasks.batch import Batch

_REPEATS = 3
"""A shape that came so often will come again."""
_MOST_GRAPHS = 64
"""More would be many shapes that each come seldom, and each of them keeps memory."""


@dataclass
class Gradients:
    """Adds the gradient of a batch's loss to the parameters' own, and the loss to a total."""

    loss_of: Callable[[Batch], Tensor]
    total: Tensor
    parameters: Sequence[nn.Parameter]

    def add(self, batch: Batch) -> None:
        self._add(batch.to(self.total.device))

    def _add(self, batch: Batch) -> None:
        """In one kernel for all parameters, where `backward` would launch one for each."""
        loss, found = self._of(batch)
        used = [(p.grad, g) for p, g in zip(self.parameters, found, strict=True) if g is not None]
        sums, gradients = zip(*used, strict=True)
        torch._foreach_add_(sums, gradients)  # type: ignore[attr-defined]
        self.total += loss

    def _of(self, batch: Batch) -> tuple[Tensor, Sequence[Tensor | None]]:
        loss = self.loss_of(batch)
        gradients = torch.autograd.grad(loss, tuple(self.parameters), allow_unused=True)
        return loss.detach(), gradients


@dataclass
class CapturedGradients(Gradients):
    """The same, replayed from a CUDA graph where shapes repeat."""

    seen: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    graphs: dict[tuple[Any, ...], _Graph] = field(default_factory=dict)
    memory: Any = None

    def add(self, batch: Batch) -> None:
        shape = batch.shape()
        self.seen[shape] += 1
        if shape not in self.graphs:
            if self.seen[shape] < _REPEATS or len(self.graphs) == _MOST_GRAPHS:
                super().add(batch)
                return
            self.graphs[shape] = self._capture(batch)
        graph = self.graphs[shape]
        graph.input.copy_(batch.bytes().pin_memory(), non_blocking=True)
        graph.graph.replay()

    def _capture(self, example: Batch) -> _Graph:
        piece = example.bytes().to(self.total.device)
        batch = example.reading(piece)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries set themselves up outside of the graph
            for _ in range(2):
                self._of(batch)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.memory):
            self._add(batch)
        self.memory = self.memory or graph.pool()
        return _Graph(graph, piece)


@dataclass(frozen=True)
class _Graph:
    graph: torch.cuda.CUDAGraph
    input: Tensor
    """What it reads: a batch in one piece."""
