"""A transformer's layers on packed sentences, with fused kernels.

One kernel rounds all matrices to half precision, and one does what lies between two matrix
products, in place of many small kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from probformer.crf.devices import kernels_run_on
from probformer.crf.fused import dtype_of_products
from probformer.packing import Packing


class LayerParts(NamedTuple):
    """The weights of a layer with norms after its residual connections."""

    projections: tuple[Tensor, ...]
    """Queries, keys and values, (heads × w, d) each; without values, keys are the values."""
    output: Tensor | None
    """(heads × w, d); None where the projection to queries is used (tied)."""
    attention_norm: nn.LayerNorm
    inner: nn.Linear
    outer: nn.Linear
    feed_forward_norm: nn.LayerNorm


def can_fuse_layers(x: Tensor, packing: Packing, head_width: int) -> bool:
    """Whether the kernels support this device, precision and size."""
    if not kernels_run_on(x.device) or torch.compiler.is_compiling() or x.dtype != torch.float32:
        return False
    return _is_short(packing, dtype_of_products(x)) or _flash_supports(
        x.device, dtype_of_products(x), head_width
    )


def _is_short(packing: Packing, dtype: torch.dtype) -> bool:
    from probformer.kernels.transformer.attention import most_words  # needs Triton

    return packing.longest <= most_words(dtype)


def _flash_supports(device: torch.device, dtype: torch.dtype, head_width: int) -> bool:
    """Whether PyTorch's flash attention can be used for long packed sentences, with gradients."""
    if dtype == torch.float32 or not torch.backends.cuda.is_flash_attention_available():
        return False
    chip = torch.cuda.get_device_capability(device)
    widest = 256 if chip in ((8, 0), (9, 0)) else 192  # other GPUs have less shared memory
    return chip >= (8, 0) and head_width % 8 == 0 and head_width <= widest


def apply_layers(
    layers: Sequence[LayerParts], times: int, x: Tensor, packing: Packing, heads: int, rate: float
) -> Tensor:
    """Run packed sentences through all layers.

    Args:
        layers: The weights of each layer.
        times: How often each layer is applied.
        x: (1, R, d): the row of sentences.
        packing: Where the sentences are in the row.
        heads: The number of attention heads.
        rate: The rate of dropout.

    Returns:
        (1, R, d).
    """
    from probformer.kernels.transformer.residual import add_and_normalise

    groups = [group for layer in layers for group in _products(layer)]
    rounded = iter(rounded_together(groups, dtype_of_products(x)))
    products = [[next(rounded) for _ in _products(layer)] for layer in layers]
    steps = [pair for pair in zip(layers, products, strict=True) for _ in range(times)]
    seeds: Any = [(None, None, None)] * len(steps)
    if rate:
        seeds = torch.randint(2**62, (len(steps), 3, 1), device=x.device)
    x = x[0]
    hidden = x.to(dtype_of_products(x))
    for (layer, matrices), (for_heads, for_context, for_words) in zip(steps, seeds, strict=True):
        projections, inner, inner_bias, outer, *output = matrices
        projected = F.linear(hidden, projections).view(
            len(hidden), len(layer.projections), heads, -1
        )
        context = _attend(projected, packing, rate, for_heads).flatten(1)
        update = context @ (output[0] if output else projections[: context.shape[1]])
        x, hidden = add_and_normalise(x, update, None, layer.attention_norm, rate, for_context)
        update = F.linear(F.relu(F.linear(hidden, inner, inner_bias)), outer)
        norm = layer.feed_forward_norm
        x, hidden = add_and_normalise(x, update, layer.outer.bias, norm, rate, for_words)
    return x.unsqueeze(0)


def _attend(projected: Tensor, packing: Packing, rate: float, seed: Tensor | None) -> Tensor:
    """Contexts (R, heads, w) from projections (R, 2 or 3, heads, w)."""
    from probformer.kernels.transformer.attention import attend

    if _is_short(packing, projected.dtype):
        return attend(projected, packing, rate, seed)
    q, k, v = projected[:, 0], projected[:, 1], projected[:, -1]
    borders, longest = packing.borders(len(projected)), packing.longest
    context, *_ = torch.ops.aten._flash_attention_forward(
        *(q, k, v, borders, borders, longest, longest, rate, False, False)
    )
    return context


def _products(layer: LayerParts) -> list[tuple[Tensor, ...]]:
    """Groups of matrices; each group is stacked into one matrix."""
    single = layer.inner.weight, layer.inner.bias, layer.outer.weight, layer.output
    return [layer.projections, *((matrix,) for matrix in single if matrix is not None)]


def rounded_together(groups: Sequence[tuple[Tensor, ...]], dtype: torch.dtype) -> list[Tensor]:
    """Stack each group of equal shapes and change its dtype, with one kernel for all groups."""
    counts = [len(group) for group in groups]
    return [*_Rounded.apply(dtype, counts, *(matrix for group in groups for matrix in group))]


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, dtype: torch.dtype, counts: list[int], *matrices: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.counts, ctx.dtypes = counts, [matrix.dtype for matrix in matrices]
        left = iter(matrices)
        groups = [[next(left) for _ in range(count)] for count in counts]
        shapes = [(sum(map(len, group)), *group[0].shape[1:]) for group in groups]
        stacked = [matrices[0].new_empty(shape, dtype=dtype) for shape in shapes]
        torch._foreach_copy_(_parts(stacked, counts), matrices)  # type: ignore[attr-defined]
        return tuple(stacked)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        parts = _parts([gradient.contiguous() for gradient in gradients], ctx.counts)
        found = [torch.empty_like(p, dtype=t) for p, t in zip(parts, ctx.dtypes, strict=True)]
        torch._foreach_copy_(found, parts)  # type: ignore[attr-defined]
        return None, None, *found


def _parts(stacked: Sequence[Tensor], counts: Sequence[int]) -> list[Tensor]:
    pairs = zip(stacked, counts, strict=True)
    return [part for matrix, count in pairs for part in matrix.chunk(count)]
