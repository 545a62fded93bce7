"""The processes that share a run."""

from __future__ import annotations

import os
from typing import cast

import torch
from accelerate import Accelerator
from torch import Tensor


def join_processes() -> Accelerator:
    """The device, and the other processes if torchrun or accelerate started several."""
    several = "RANK" in os.environ
    return Accelerator(cpu=True) if several and not torch.cuda.is_available() else Accelerator()


def sum_over_processes(accelerator: Accelerator, values: Tensor) -> Tensor:
    if accelerator.num_processes == 1:
        return values
    summed = accelerator.reduce(values.to(accelerator.device), "sum")
    return cast(Tensor, summed).to(values.device)
