"""The precision of matrix products, as contexts that restore what they found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from probformer.config import Precision


@contextmanager
def tf32_if(enabled: bool) -> Iterator[None]:
    """Float32 matrix products on CUDA in tf32 if `enabled`, else in full precision."""
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = enabled
    try:
        yield
    finally:
        matmul.allow_tf32 = before


@contextmanager
def matrix_products(precision: Precision, device: torch.device) -> Iterator[None]:
    """Matrix products in this precision; for bf16 by autocast, so around the forward pass only."""
    with (
        tf32_if(precision == "tf32"),
        torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"),
    ):
        yield
