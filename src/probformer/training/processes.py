"""Sums over the processes that share a run."""

from __future__ import annotations

from typing import cast

from accelerate import Accelerator
from torch import Tensor


def sum_over_processes(accelerator: Accelerator, values: Tensor) -> Tensor:
    if accelerator.num_processes == 1:
        return values
    summed = accelerator.reduce(values.to(accelerator.device), "sum")
    return cast(Tensor, summed).to(values.device)
