"""A layer of the transformers: attention and feed-forward."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from probformer.config import TransformerSettings
from probformer.models.fused_layers import LayerParts
from probformer.packing import Packing


class Layer(nn.Module):
    """Attention and feed-forward, each with residual connection, dropout and layer norm."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        self.pre = settings.norm == "pre"
        self.dropout = settings.dropout
        self.attention = Attention(settings)
        self.attention_norm = nn.LayerNorm(settings.width)
        self.feed_forward = nn.Sequential(
            _linear(settings.width, settings.feed_forward, settings),
            nn.ReLU(),
            _linear(settings.feed_forward, settings.width, settings),
        )
        self.feed_forward_norm = nn.LayerNorm(settings.width)

    def forward(
        self, x: Tensor, mask: Tensor, weights: bool, packing: Packing | None = None
    ) -> tuple[Tensor, Tensor | None]:
        if self.pre:
            update, attention = self.attention(self.attention_norm(x), mask, weights, packing)
            x = x + self._drop(update)
            return x + self._drop(self.feed_forward(self.feed_forward_norm(x))), attention
        update, attention = self.attention(x, mask, weights, packing)
        x = self.attention_norm(x + self._drop(update))
        return self.feed_forward_norm(x + self._drop(self.feed_forward(x))), attention

    def parts(self) -> LayerParts:
        inner, _, outer = self.feed_forward
        assert isinstance(inner, nn.Linear)
        assert isinstance(outer, nn.Linear)
        return LayerParts(
            projections=tuple(self.attention.projections()),
            output=self.attention.output,
            attention_norm=self.attention_norm,
            inner=inner,
            outer=outer,
            feed_forward_norm=self.feed_forward_norm,
        )

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class Attention(nn.Module):
    """Attention without biases, with heads of any width; relative positions or tied matrices."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        self.heads, self.head_width = settings.heads, settings.head_width
        self.dropout, self.tied = settings.dropout, settings.tied
        self.query = _projection(settings)
        self.key = _projection(settings)
        self.value = None if settings.tied else _projection(settings)
        self.output = None if settings.tied else _projection(settings, output=True)
        self.key_offsets = self.value_offsets = None
        if settings.relative is not None:
            self.key_offsets = Offsets(settings)
            if settings.relative_values:
                self.value_offsets = Offsets(settings)

    def forward(
        self, x: Tensor, mask: Tensor, weights: bool, packing: Packing | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """From (B, n, d) to (B, n, d), and with `weights` the attention (B, heads, n, n).

        Without `weights` and relative positions, PyTorch's fused attention computes it.
        """
        projected = F.linear(x, torch.cat(tuple(self.projections())))
        q, k, *rest = projected.unflatten(-1, (-1, self.heads, self.head_width)).unbind(2)
        v = rest[0] if rest else k
        fused = not weights and self.key_offsets is None
        if packing is None:
            context, attention = self._padded(q, k, v, mask, fused)
        else:
            q, k, v = (packing.sentences(part) for part in (q, k, v))
            context, attention = self._padded(q, k, v, packing.mask(), fused)
            context = packing.pack(context, x.shape[1])
        output = self.query if self.output is None else self.output
        return context.flatten(2) @ output, attention

    def projections(self) -> list[Tensor]:
        """The projections to queries, keys and, unless keys are the values, values."""
        return [m for m in (self.query, self.key, self.value) if m is not None]

    @property
    def _rate(self) -> float:
        return self.dropout if self.training else 0.0

    def _padded(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, fused: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Contexts (B, n, heads, head width), and the attention unless it is `fused`."""
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))  # (B, heads, n, head width)
        # A sentence of padding attends to all of it: the softmax of no key would be NaN.
        keys = (mask | ~mask.any(1, keepdim=True))[:, None, None]
        if fused:
            with _kernels_with_finite_gradients(q):
                context = F.scaled_dot_product_attention(
                    q, k, v, attn_mask=keys, dropout_p=self._rate
                )
            return context.transpose(1, 2), None
        scores = q @ k.mT
        if self.key_offsets is not None:
            scores = scores + self.key_offsets.scores(q)
        scores = (scores * self.head_width**-0.5).masked_fill(~keys, -math.inf)
        attention = scores.softmax(-1)
        dropped = F.dropout(attention, self._rate)
        context = dropped @ v
        if self.value_offsets is not None:
            context = context + self.value_offsets.contexts(dropped)
        attention = attention * (mask[:, None, :, None] & mask[:, None, None, :])
        return context.transpose(1, 2), attention


def _kernels_with_finite_gradients(q: Tensor) -> AbstractContextManager[Any]:
    """Excludes cuDNN's kernel where n modulo 128 is 64: its last tile of keys is half empty, and
    its gradients may be NaN, at least with torch 2.11."""
    if not (q.is_cuda and q.shape[2] % 128 == 64):
        return nullcontext()
    return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


class Offsets(nn.Module):
    """Shaw's relative positions: a vector for each clipped distance i−j, shared by all heads."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        assert settings.relative is not None
        self.clip, width = settings.relative, settings.head_width
        std = width**-0.5 if settings.matrices == "xavier" else 1.0
        self.table = nn.Parameter(torch.randn(2 * self.clip + 1, width) * std)

    def scores(self, q: Tensor) -> Tensor:
        """q_i · a_{i−j}: (B, heads, n, width) -> (B, heads, n, n)."""
        by_offset = q @ self.table.mT
        return by_offset.gather(-1, self._index(q.shape[2]).expand(*q.shape[:2], -1, -1))

    def contexts(self, attention: Tensor) -> Tensor:
        """Σ_j α_ij a_{i−j}: (B, heads, n, n) -> (B, heads, n, width)."""
        by_offset = attention.new_zeros(*attention.shape[:3], len(self.table))
        index = self._index(attention.shape[2]).expand_as(attention)
        return by_offset.scatter_add(-1, index, attention) @ self.table

    def _index(self, n: int) -> Tensor:
        position = torch.arange(n, device=self.table.device)
        offset = position[:, None] - position
        return offset.clamp(-self.clip, self.clip) + self.clip


def _projection(settings: TransformerSettings, output: bool = False) -> nn.Parameter:
    """The matrix of all heads, (heads × head width, width)."""
    heads, own, width = settings.heads, settings.head_width, settings.width
    matrix = nn.Parameter(torch.empty(heads * own, width))
    if settings.matrices == "xavier":
        nn.init.xavier_uniform_(matrix)
    else:  # Xavier's rule on the tensor of all heads, with their number as one side
        first, second, rest = (heads, own, width) if output else (heads, width, own)
        nn.init.normal_(matrix, std=math.sqrt(2 / ((first + second) * rest)))
    return matrix


def _linear(inputs: int, outputs: int, settings: TransformerSettings) -> nn.Linear:
    linear = nn.Linear(inputs, outputs)  # PyTorch's initialisation, as published
    if settings.matrices == "xavier":
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
    return linear
