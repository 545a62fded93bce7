"""From gradients to parameters: clipping and Adam, unless a loss or a gradient is not finite.

And the average of the parameters over the updates, if asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from probformer.config import TrainingSettings


class Updates:
    """Looks at each update before it is made; what a CPU does.

    Parameters' gradients and their loss have been added up before.
    """

    unread = 1
    """So many updates may be made before `read` must be called."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], loss: Tensor, settings: TrainingSettings
    ) -> None:
        self.parameters, self.loss = parameters, loss
        self.clip, self.average = settings.clip, settings.average
        self.optimizer = self._adam(settings)
        self._found: list[tuple[float, float]] = []

    def _adam(self, settings: TrainingSettings) -> torch.optim.Adam:
        return adam(self.parameters, settings, settings.learning_rate)

    def apply(self, rate: float) -> None:
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self._found.append((self.loss.item(), norm.item()))
        if all(map(math.isfinite, self._found[-1])):
            self.optimizer.param_groups[0]["lr"] = rate
            self._step()

    @torch.no_grad()
    def _step(self) -> None:
        """Adam's; and of the parameters so far the mean, then that of the latest ones."""
        self.optimizer.step()
        if not self.average:
            return
        for parameter in self.parameters:
            state = self.optimizer.state[parameter]  # which a checkpoint keeps
            if "average" not in state:
                state["average"] = parameter.clone()
            weight = state["step"].reciprocal().clamp(min=1 - self.average)
            state["average"].lerp_(parameter, weight)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Meanwhile the parameters are their averages, if those were asked for."""
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

    def read(self) -> list[tuple[float, float]]:
        """The loss and the gradient's norm of each update since the last call."""
        found, self._found = self._found, []
        return found


class DeviceUpdates(Updates):
    """The same without waiting for the device, which refuses by itself what is not finite.

    After one such update it refuses all. On a GPU the whole of it is a CUDA graph.
    """

    unread = 50

    def __init__(
        self, parameters: Sequence[nn.Parameter], loss: Tensor, settings: TrainingSettings
    ) -> None:
        super().__init__(parameters, loss, settings)
        device = loss.device
        self.refused = torch.zeros((), device=device)
        self.excess = torch.ones((), device=device)
        """How many times larger than allowed the gradient is; Adam divides by it."""
        self.optimizer.grad_scale = self.excess  # type: ignore[attr-defined]  fused Adam's own
        self.optimizer.found_inf = self.refused  # type: ignore[attr-defined]
        self.results = torch.zeros(self.unread, 2, device=device)
        self.slot = torch.zeros(1, dtype=torch.long, device=device)
        self.made = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def _adam(self, settings: TrainingSettings) -> torch.optim.Adam:
        self.rate = torch.tensor(settings.learning_rate, device=self.loss.device)
        on_gpu = self.rate.is_cuda
        return adam(self.parameters, settings, self.rate, fused=True, capturable=on_gpu)

    def apply(self, rate: float) -> None:
        assert self.made < self.unread, "what updates found has not been read"
        self.rate.fill_(rate)
        if self.graph is not None:
            self.graph.replay()
        else:
            self._apply()
            if self.loss.is_cuda:  # the first one has set Adam up
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
        self.refused.copy_(torch.maximum(self.refused, (~found.isfinite()).any().float()))
        self._step()

    def read(self) -> list[tuple[float, float]]:
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
    """With weight decay coupled, as published."""
    decay = settings.weight_decay
    return torch.optim.Adam(
        parameters, lr=rate, betas=(0.9, 0.999), eps=1e-9, weight_decay=decay, **options
    )
