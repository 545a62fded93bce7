"""Which devices have kernels."""

from __future__ import annotations

from importlib.util import find_spec

import torch


def kernels_run_on(device: torch.device) -> bool:
    """Whether it is an NVIDIA GPU, and Triton is installed."""
    nvidia = device.type == "cuda" and torch.version.hip is None
    return nvidia and find_spec("triton") is not None
