"""Gradients of training batches: forward and backward, eagerly or replayed from CUDA graphs.

Most of a small model's time on a GPU goes into launching kernels; one CUDA graph launches them all.
A graph is bound to the shapes it was captured with, so batches are padded to few different shapes,
and shapes that are rare stay eager. Random numbers are those of eager mode: a replay takes the seed
that `torch.manual_seed` set before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from probformer.tasks.batch import Batch
from probformer.training.loss import TrainingLoss
from probformer.training.precision import tf32_if

_CAPTURE_AT = 3
"""The occurrence of a shape at which its graph is captured."""
_MAX_GRAPHS = 64
"""Each graph holds GPU memory; further shapes stay eager."""


@dataclass
class EagerGradients:
    """Adds the gradient of a batch's loss to the parameters' `grad`, and the loss to `total`."""

    loss: TrainingLoss
    total: Tensor
    parameters: Sequence[nn.Parameter]

    def add(self, batch: Batch, first: bool) -> None:
        """With `first`, the first batch of an update, the gradients replace those of the last."""
        self._add(batch.to(self.total.device), first)

    def clear(self) -> None:
        """Zero loss and gradients, for an update in which this process has no batch."""
        self.total.zero_()
        for parameter in self.parameters:
            assert parameter.grad is not None
            parameter.grad.zero_()

    def _add(self, batch: Batch, first: bool) -> None:
        """Add with one kernel for all parameters: `backward` would launch one for each."""
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
        with tf32_if(self.loss.precision == "tf32"):  # the backward pass and the penalty, too
            loss = self.loss(batch)
            gradients = torch.autograd.grad(loss, tuple(self.parameters), allow_unused=True)
        return loss.detach(), gradients


@dataclass
class CapturedGradients(EagerGradients):
    """`EagerGradients` that replay a CUDA graph for each shape that has occurred often enough."""

    seen: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    graphs: dict[tuple[Any, ...], _Graph] = field(default_factory=dict)
    memory: Any = None

    def add(self, batch: Batch, first: bool) -> None:
        shape = first, *batch.shape()
        self.seen[shape] += 1
        if shape not in self.graphs:
            if self.seen[shape] < _CAPTURE_AT or len(self.graphs) == _MAX_GRAPHS:
                super().add(batch, first)
                return
            self.graphs[shape] = self._capture(batch, first)
        graph = self.graphs[shape]
        graph.input.copy_(batch.to_bytes().pin_memory(), non_blocking=True)
        graph.graph.replay()

    def _capture(self, example: Batch, first: bool) -> _Graph:
        content = example.to_bytes().to(self.total.device)
        batch = example.from_bytes(content)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries initialise themselves outside of the graph
            for _ in range(2):
                self._of(batch)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.memory):
            self._add(batch, first)
        self.memory = self.memory or graph.pool()
        return _Graph(graph, content)


@dataclass(frozen=True)
class _Graph:
    graph: torch.cuda.CUDAGraph
    input: Tensor
    """The memory that it takes a batch from, as `Batch.to_bytes` lays it out."""
