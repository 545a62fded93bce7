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
    """Puts the gradient of a batch's loss into the parameters' own, and the loss into a total."""

    loss_of: Callable[[Batch], Tensor]
    total: Tensor
    parameters: Sequence[nn.Parameter]

    def add(self, batch: Batch, first: bool) -> None:
        """The `first` batch of an update takes the place of what was there."""
        self._add(batch.to(self.total.device), first)

    def clear(self) -> None:
        """For an update without a batch."""
        self.total.zero_()
        for parameter in self.parameters:
            assert parameter.grad is not None
            parameter.grad.zero_()

    def _add(self, batch: Batch, first: bool) -> None:
        """In one kernel for all parameters, where `backward` would launch one for each."""
        loss, found = self._of(batch)
        pairs = [(p.grad, g) for p, g in zip(self.parameters, found, strict=True)]
        sums, gradients = zip(*(pair for pair in pairs if pair[1] is not None), strict=True)
        if first:
            torch._foreach_copy_(sums, gradients)  # type: ignore[attr-defined]
            self.total.copy_(loss)
            for old in (old for old, new in pairs if new is None and old is not None):
                old.zero_()
        else:
            torch._foreach_add_(sums, gradients)  # type: ignore[attr-defined]
            self.total.add_(loss)

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

    def add(self, batch: Batch, first: bool) -> None:
        kind = first, *batch.shape()
        self.seen[kind] += 1
        if kind not in self.graphs:
            if self.seen[kind] < _REPEATS or len(self.graphs) == _MOST_GRAPHS:
                super().add(batch, first)
                return
            self.graphs[kind] = self._capture(batch, first)
        graph = self.graphs[kind]
        graph.input.copy_(batch.to_bytes().pin_memory(), non_blocking=True)
        graph.graph.replay()

    def _capture(self, example: Batch, first: bool) -> _Graph:
        piece = example.to_bytes().to(self.total.device)
        batch = example.from_bytes(piece)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries set themselves up outside of the graph
            for _ in range(2):
                self._of(batch)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.memory):
            self._add(batch, first)
        self.memory = self.memory or graph.pool()
        return _Graph(graph, piece)


@dataclass(frozen=True)
class _Graph:
    graph: torch.cuda.CUDAGraph
    input: Tensor
    """What it reads: a batch in one piece."""
