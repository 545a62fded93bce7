"""What is measured side by side: training steps of encoders at the paper's PTB-MLM sizes.

A candidate is built for a batch and returns a function that runs one step, forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.baselines import Transformer
from probformer.config import (
    EncoderSettings,
    Inference,
    PotentialSettings,
    RotarySettings,
    SharedUVSettings,
    TransformerSettings,
    UVSettings,
)
from probformer.encoder import Encoder
from probformer.potentials.buckets import Buckets

VOCABULARY = 10_000
LABELS, CHANNELS, ITERATIONS, GAMMA, RANK = 384, 16, 5, 3, 64
BUCKETS = 2 * GAMMA + 2

Step = Callable[[], None]


@dataclass(frozen=True)
class Shape:
    batch: int
    length: int
    dropout: float
    device: torch.device


def potential(settings: PotentialSettings) -> Callable[[Shape], Step]:
    def build(shape: Shape) -> Step:
        model = EncoderSettings(
            labels=LABELS,
            channels=CHANNELS,
            dropout=shape.dropout,
            potential=settings,
            inference=Inference(iterations=ITERATIONS),
        )
        return _step(Encoder(VOCABULARY, model), shape)

    return build


def transformer(relative: bool) -> Callable[[Shape], Step]:
    def build(shape: Shape) -> Step:
        settings = TransformerSettings(
            width=384,
            layers=5,
            heads=8,
            head_width=256,
            feed_forward=2048,
            dropout=shape.dropout,
            positions="none" if relative else "learned",
            max_length=max(512, shape.length),
            relative=GAMMA if relative else None,
        )
        return _step(Transformer(VOCABULARY, settings), shape, attention=False)

    return build


class DenseEinsums(nn.Module):
    """Equations 3, 4, 9 to 12 and 14 as they stand: every bucket for every pair."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.word_scores = nn.Embedding(VOCABULARY, LABELS)
        nn.init.xavier_uniform_(self.word_scores.weight)
        self.U = nn.Parameter(torch.randn(BUCKETS, LABELS, CHANNELS, RANK) / RANK**0.5)
        self.V = nn.Parameter(torch.randn(BUCKETS, LABELS, CHANNELS, RANK) / RANK**0.5)
        self.dropout, n = shape.dropout, shape.length
        of = Buckets(GAMMA).of
        bucket = torch.tensor([[of(i - j) if i != j else -1 for j in range(n)] for i in range(n)])
        distance = bucket == torch.arange(BUCKETS)[:, None, None]
        self.distance = nn.Buffer(distance.float())
        self.itself = nn.Buffer(torch.eye(n, dtype=torch.bool))

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        scores = unary = self.word_scores(words)
        distance = self.distance
        for _ in range(ITERATIONS):
            q = scores.softmax(-1)
            f = torch.einsum("xia,kacl,kbcl,xjb,kij->xcij", q, self.U, self.V, q, distance)
            p = (f * LABELS).masked_fill(self.itself, -1e9).softmax(-1)
            p = F.dropout(p, self.dropout)
            g = torch.einsum("xcij,kij,xjb,kbcl,kacl->xia", p, distance, q, self.V, self.U)
            g = g + torch.einsum("xcji,kji,xjb,kbcl,kacl->xia", p, distance, q, self.U, self.V)
            scores = F.dropout(unary + g, self.dropout)
        return scores


def dense_einsums(shape: Shape) -> Step:
    return _step(DenseEinsums(shape), shape)


def necessary_products(shape: Shape) -> Step:
    """The two products an iteration, and the two of each one's backward pass, and nothing else."""
    rows, inner = shape.batch * shape.length, 2 * BUCKETS * CHANNELS * RANK
    weight, q, x = (
        torch.randn(size, device=shape.device)
        for size in ((inner, LABELS), (rows, LABELS), (rows, inner))
    )
    gradient, projected, message = (torch.empty_like(like) for like in (weight, x, q))

    def step() -> None:
        for _ in range(ITERATIONS):
            torch.mm(q, weight.mT, out=projected)  # X = Q Wᵀ
            torch.mm(x, weight, out=message)  # G = Y W
            for _ in range(2):  # the backward pass of one product is the other two kinds
                torch.mm(x.mT, q, out=gradient)
            torch.mm(q, weight.mT, out=projected)
            torch.mm(x, weight, out=message)

    return step


CANDIDATES: dict[str, Callable[[Shape], Step]] = {
    "necessary products of UV": necessary_products,
    "UV": potential(UVSettings(rank=RANK, gamma=GAMMA)),
    "SharedUV": potential(SharedUVSettings(rank=RANK, gamma=GAMMA)),
    "Rotary": potential(RotarySettings(rank=RANK)),
    "UV as dense einsums": dense_einsums,
    "Transformer": transformer(relative=False),
    "relative Transformer": transformer(relative=True),
}


def _step(model: nn.Module, shape: Shape, **options: bool) -> Step:
    torch.manual_seed(0)
    model = model.to(shape.device).train()
    size = (shape.batch, shape.length)
    words = torch.randint(VOCABULARY, size, device=shape.device)
    mask = torch.ones(size, dtype=torch.bool, device=shape.device)
    cotangent = torch.randn(*size, LABELS, device=shape.device)

    def step() -> None:
        model.zero_grad(set_to_none=True)
        output = model(words, mask, **options)
        scores = output if isinstance(output, Tensor) else output.z_scores
        (scores * cotangent).sum().backward()

    return step
