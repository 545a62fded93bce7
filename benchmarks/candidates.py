"""The candidates of the benchmarks: encoders at the sizes of the paper's PTB language model.

A candidate builds a model for a shape; `step_of` returns a function that runs one training step of
it, or inference once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.config import (
    EncoderSettings,
    FullSettings,
    Inference,
    PotentialSettings,
    RotarySettings,
    SharedUVSettings,
    TransformerSettings,
    UVSettings,
)
from probformer.crf import fused
from probformer.crf.potentials.buckets import Buckets
from probformer.models.encoder import Encoder
from probformer.models.transformer import Transformer

VOCABULARY = 10_000

Step = Callable[[], None]
Mode = Literal["eager", "compiled", "graph"]


@dataclass(frozen=True)
class Sizes:
    """Sizes by the paper's letters; a transformer has d as its width and T layers."""

    d: int = 384
    h: int = 16
    T: int = 5
    gamma: int = 3
    r: int = 64

    @property
    def buckets(self) -> int:
        return 2 * self.gamma + 2


@dataclass(frozen=True)
class Shape:
    batch: int
    length: int
    dropout: float
    device: torch.device
    sizes: Sizes = field(default_factory=Sizes)
    bf16: bool = False


def probabilistic(potential: Callable[[Sizes], PotentialSettings]) -> Callable[[Shape], nn.Module]:
    def build(shape: Shape) -> nn.Module:
        sizes = shape.sizes
        settings = EncoderSettings(
            labels=sizes.d,
            channels=sizes.h,
            dropout=shape.dropout,
            potential=potential(sizes),
            inference=Inference(iterations=sizes.T),
        )
        return _WithoutAttention(Encoder(VOCABULARY, settings))

    return build


def transformer(relative: bool) -> Callable[[Shape], nn.Module]:
    def build(shape: Shape) -> nn.Module:
        settings = TransformerSettings(
            width=shape.sizes.d,
            layers=shape.sizes.T,
            heads=8,
            head_width=256,
            feed_forward=2048,
            dropout=shape.dropout,
            positions="none" if relative else "learned",
            max_length=max(512, shape.length),
            relative=max(1, shape.sizes.gamma) if relative else None,
        )
        return _WithoutAttention(Transformer(VOCABULARY, settings))

    return build


class _WithoutAttention(nn.Module):
    """An encoder called with `attention=False`, so that it may use fused kernels."""

    def __init__(self, model: Encoder | Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        return self.model(words, mask, attention=False).z_scores


class _WithoutKernels(nn.Module):
    """The same without fused kernels, as on a CPU."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        with patch.object(fused, "kernels_run_on", return_value=False):
            return self.model(words, mask)


def plain(build: Callable[[Shape], nn.Module]) -> Callable[[Shape], nn.Module]:
    return lambda shape: _WithoutKernels(build(shape))


class DenseEinsums(nn.Module):
    """Equations 3, 4 and 9 to 12 as einsums: every bucket for every pair."""

    def __init__(self, shape: Shape, factored: bool) -> None:
        """`factored`: whether T is the product U Vᵀ of eq. 14."""
        super().__init__()
        s = self.sizes = shape.sizes
        self.word_scores = nn.Embedding(VOCABULARY, s.d)
        nn.init.xavier_uniform_(self.word_scores.weight)
        sizes = [(s.buckets, s.d, s.h, s.r)] * 2 if factored else [(s.buckets, s.d, s.h, s.d)]
        scale = s.r**0.5 if factored else 1.0
        self.factors = nn.ParameterList([torch.randn(size) / scale for size in sizes])
        self.letters = ("kacl", "kbcl") if factored else ("kacb",)
        self.dropout, n = shape.dropout, shape.length
        of = Buckets(s.gamma).of
        bucket = torch.tensor([[of(i - j) if i != j else -1 for j in range(n)] for i in range(n)])
        distance = bucket == torch.arange(s.buckets)[:, None, None]
        self.distance = nn.Buffer(distance.float())
        self.itself = nn.Buffer(torch.eye(n, dtype=torch.bool))

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        scores = unary = self.word_scores(words)
        t, letters = list(self.factors), ",".join(self.letters)
        back = ",".join(reversed(self.letters))  # einsum contracts from left to right
        for _ in range(self.sizes.T):
            q = scores.softmax(-1)
            f = torch.einsum(f"xia,{letters},xjb,kij->xcij", q, *t, q, self.distance)
            p = (f * self.sizes.d).masked_fill(self.itself, -1e9).softmax(-1)
            p = F.dropout(p, self.dropout, self.training)
            g = torch.einsum(f"xcij,kij,xjb,{back}->xia", p, self.distance, q, *reversed(t))
            g = g + torch.einsum(f"xcij,kij,xia,{letters}->xjb", p, self.distance, q, *t)
            scores = F.dropout(unary + g, self.dropout, self.training)
        return scores


def necessary_products(shape: Shape, training: bool) -> Step:
    """The two matrix products of an iteration of UV, and two per product in the backward pass."""
    sizes, dtype = shape.sizes, torch.bfloat16 if shape.bf16 else torch.float32
    rows, inner = shape.batch * shape.length, 2 * sizes.buckets * sizes.h * sizes.r
    weight, q, x = (
        torch.randn(size, device=shape.device, dtype=dtype)
        for size in ((inner, sizes.d), (rows, sizes.d), (rows, inner))
    )
    gradient, projected, message = (torch.empty_like(like) for like in (weight, x, q))

    def step() -> None:
        for _ in range(sizes.T):
            torch.mm(q, weight.mT, out=projected)  # X = Q Wᵀ
            torch.mm(x, weight, out=message)  # G = Y W
            if not training:
                continue
            for _ in range(2):  # of each product: the gradient of W, and one of the other kind
                torch.mm(x.mT, q, out=gradient)
            torch.mm(q, weight.mT, out=projected)
            torch.mm(x, weight, out=message)

    return step


PRODUCTS = "necessary products of UV"
_UV = probabilistic(lambda s: UVSettings(rank=s.r, gamma=s.gamma))
_FULL = probabilistic(lambda s: FullSettings(gamma=s.gamma))
CANDIDATES: dict[str, Callable[[Shape], nn.Module]] = {
    "UV": _UV,
    "SharedUV": probabilistic(lambda s: SharedUVSettings(rank=s.r, gamma=s.gamma)),
    "Rotary": probabilistic(lambda s: RotarySettings(rank=s.r)),
    "UV, plain path": plain(_UV),
    "UV as dense einsums": lambda shape: DenseEinsums(shape, factored=True),
    "Full": _FULL,
    "Full, plain path": plain(_FULL),
    "Full as dense einsums": lambda shape: DenseEinsums(shape, factored=False),
    "Transformer": transformer(relative=False),
    "relative Transformer": transformer(relative=True),
}


def step_of(name: str, shape: Shape, training: bool = True, mode: Mode = "eager") -> Step:
    """A function that runs forward and backward, or forward alone, on random words."""
    if name == PRODUCTS:
        return necessary_products(shape, training)
    torch.manual_seed(0)
    model = CANDIDATES[name](shape).to(shape.device).train(training)
    size = (shape.batch, shape.length)
    words = torch.randint(VOCABULARY, size, device=shape.device)
    mask = torch.ones(size, dtype=torch.bool, device=shape.device)
    cotangent = torch.randn(*size, shape.sizes.d, device=shape.device)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter) if training else None
    called = torch.compile(model, dynamic=False) if mode == "compiled" else model

    def scores() -> Tensor:
        with torch.autocast(shape.device.type, torch.bfloat16, enabled=shape.bf16):
            return called(words, mask)

    def train() -> None:
        model.zero_grad(set_to_none=False)
        (scores() * cotangent).sum().backward()

    @torch.no_grad()
    def infer() -> None:
        scores()

    step = train if training else infer
    return captured(step) if mode == "graph" else step


def captured(step: Step) -> Step:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(_reads: Step = step) -> None:  # keeps the tensors that the graph reads alive
        graph.replay()

    return replay
