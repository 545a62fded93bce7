"""Updates of the parameters: clipping and Adam, skipped if a loss or a gradient is not finite.

With `training.average`, an average of the parameters over updates is kept as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from probformer.config import TrainingSettings


class Updates:
    """Updates on a CPU, where loss and gradient norm can be checked before each one."""

    max_pending = 1
    """The number of updates after which `read_back` must be called."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], loss: Tensor, settings: TrainingSettings
    ) -> None:
        """`loss` is the tensor into which the loss of each update is added up, as gradients are."""
        self.parameters, self.loss = parameters, loss
        self.clip, self.average = settings.clip, settings.average
        self.optimizer = self._adam(settings)
        self._found: list[tuple[float, float]] = []

    def _adam(self, settings: TrainingSettings) -> torch.optim.Adam:
        return adam(self.parameters, settings, settings.learning_rate)

    def apply(self, rate: float) -> None:
        """Update the parameters with this learning rate, unless loss or norm is not finite."""
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self._found.append((self.loss.item(), norm.item()))
        if all(map(math.isfinite, self._found[-1])):
            self.optimizer.param_groups[0]["lr"] = rate
            self._step()

    @torch.no_grad()
    def _step(self) -> None:
        """A step of Adam; the average is a mean for 1 / (1 − average) steps, then exponential."""
        self.optimizer.step()
        if not self.average:
            return
        for parameter in self.parameters:
            state = self.optimizer.state[parameter]  # saved in checkpoints
            if "average" not in state:
                state["average"] = parameter.clone()
            weight = state["step"].reciprocal().clamp(min=1 - self.average)
            state["average"].lerp_(parameter, weight)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Within the context the parameters are their averages, with `training.average`."""
        if not self.average:
            yield
            return
        own = [parameter.detach().clone() for parameter in self.parameters]
        averages = [self.optimizer.state[parameter]["average"] for parameter in self.parameters]
        try:
            self._set(averages)
            yield
        finally:
            self._set(own)

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.copy_(value)

    def read_back(self) -> list[tuple[float, float]]:
        """Loss and gradient norm of each update since the last call."""
        found, self._found = self._found, []
        return found


class DeviceUpdates(Updates):
    """Updates without waiting for the device, which itself skips those that are not finite.

    After one such update it skips all that follow. On a GPU an update is one CUDA graph.
    """

    max_pending = 50

    def __init__(
        self, parameters: Sequence[nn.Parameter], loss: Tensor, settings: TrainingSettings
    ) -> None:
        super().__init__(parameters, loss, settings)
        device = loss.device
        self.skipped = torch.zeros((), device=device)
        self.excess = torch.ones((), device=device)
        """The gradient norm divided by `clip`, at least 1; Adam divides gradients by it."""
        self.optimizer.grad_scale = self.excess  # type: ignore[attr-defined]  of fused Adam
        self.optimizer.found_inf = self.skipped  # type: ignore[attr-defined]
        self.results = torch.zeros(self.max_pending, 2, device=device)
        self.slot = torch.zeros(1, dtype=torch.long, device=device)
        self.made = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def _adam(self, settings: TrainingSettings) -> torch.optim.Adam:
        self.rate = torch.tensor(settings.learning_rate, device=self.loss.device)
        on_gpu = self.rate.is_cuda
        return adam(self.parameters, settings, self.rate, fused=True, capturable=on_gpu)

    def apply(self, rate: float) -> None:
        assert self.made < self.max_pending, "call read_back first"
        self.rate.fill_(rate)
        if self.graph is not None:
            self.graph.replay()
        else:
            self._apply()
            if self.loss.is_cuda:  # the first update has initialised Adam
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self._apply()
        self.made += 1

    def _apply(self) -> None:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        self.excess.copy_((norm / self.clip).clamp(min=1))
        found = torch.stack([self.loss, norm])
        self.results.index_copy_(0, self.slot, found.unsqueeze(0))
        self.slot += 1
        self.skipped.copy_(torch.maximum(self.skipped, (~found.isfinite()).any().float()))
        self._step()

    def read_back(self) -> list[tuple[float, float]]:
        found = [(loss, norm) for loss, norm in self.results[: self.made].tolist()]
        self.made = 0
        self.slot.zero_()
        return found


def adam(
    parameters: Sequence[nn.Parameter],
    settings: TrainingSettings,
    rate: float | Tensor,
    **options: bool,
) -> torch.optim.Adam:
    """Adam with coupled weight decay (L2), as published."""
    decay = settings.weight_decay
    return torch.optim.Adam(
        parameters, lr=rate, betas=(0.9, 0.999), eps=1e-9, weight_decay=decay, **options
    )
