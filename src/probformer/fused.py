"""Iterations whose head beliefs nobody looks at, through the fused kernels.

H is summed out on the way from labels to labels: F, its softmax, dropout and G never exist as
n × n matrices in memory. The result is that of the plain path.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import torch
from torch import Tensor

from probformer.config import Inference
from probformer.evidence import Evidence
from probformer.normalisers import softmax
from probformer.potentials import Potentials
from probformer.variables import dropout_at

HALF = torch.bfloat16
"""Scores over λ_H leave the range of float16."""


def can_fuse(
    unary: Tensor, potentials: Potentials, inference: Inference, evidence: Evidence, trace: bool
) -> bool:
    """Whether kernels may stand in: softmax, whole steps, and no wish to see or set a head."""
    return (
        kernels_run_on(unary.device)
        and not torch.compiler.is_compiling()
        and _dtype(unary) in (torch.float32, HALF)
        and potentials.words.matrices(1) is not None
        and inference.asynchronous
        and inference.normaliser_h == "softmax"
        and not inference.damping_h
        and all(inference.steps(t)[1] == 1 for t in range(inference.iterations))
        and inference.tolerance is None
        and evidence.heads is None
        and evidence.globals is None
        and not trace
    )


def kernels_run_on(device: torch.device) -> bool:
    return device.type == "cuda" and find_spec("triton") is not None


def _dtype(unary: Tensor) -> torch.dtype:
    """What the large products are done in."""
    kind = unary.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else unary.dtype


class FusedMessages:
    """The messages to the labels, straight from the labels."""

    def __init__(
        self,
        unary: Tensor,
        mask: Tensor,
        potentials: Potentials,
        inference: Inference,
        rate: float,
        generator: torch.Generator | None,
    ) -> None:
        from probformer.kernels.problem import Layout  # Triton is not everywhere

        self.potentials = potentials
        self.padding = ~mask[:, None, :, None]
        self.weight = inference.lambda_h_for(potentials.words.labels)
        self.rate = rate
        self.drop = dropout_at(rate, generator)
        self.layout = Layout.padded(mask)
        self.dtype = _dtype(unary)
        matrices = potentials.words.matrices(self.layout.longest)
        assert matrices is not None
        self.scale, self.angles = matrices.scale, matrices.angles
        self.dependents = matrices.dependents.to(self.dtype)  # once, for all iterations
        self.heads = None if matrices.heads is None else matrices.heads.to(self.dtype)
        size = (inference.iterations, 1)
        self.seeds = (
            torch.randint(2**62, size, device=unary.device, generator=generator) if rate else None
        )

    def __call__(self, labels: Sequence[Tensor], t: int) -> list[Tensor]:
        """To Z (B, n, d), without S, and, with a root, to Z_ROOT, in iteration t."""
        x = self.potentials.project_others(labels)
        factors = self.potentials.factors[1:]
        scores = [
            f.head_scores(part).float() / self.weight for f, part in zip(factors, x, strict=True)
        ]
        split = [softmax(scores.pop(), self.padding)] if self.potentials.has_split_globals else []
        to_z, normaliser = self._words(labels[0], scores, t)
        heads = [(s - normaliser).exp() for s in scores] + split
        if self.drop is not None:
            heads = [self.drop(p) for p in heads]
        return self.potentials.add_others(to_z, heads, x)

    def _words(self, q: Tensor, columns: Sequence[Tensor], t: int) -> tuple[Tensor, Tensor]:
        """What words hear of words (B, n, d), and the normaliser of H (B, h, n, 1).

        `columns` (B, h, n, m) are the scores of heads that are no words.
        """
        from probformer.kernels.messages import word_messages
        from probformer.kernels.problem import Problem

        problem = Problem(
            layout=self.layout,
            channels=self.potentials.words.channels,
            gamma=self.potentials.words.buckets.gamma,
            weight=self.weight,
            angles=self.angles,
            rate=self.rate,
            seed=None if self.seeds is None else self.seeds[t],
        )
        rest = None
        if columns:
            rest = torch.cat(tuple(columns), -1).logsumexp(-1).transpose(1, 2).flatten(0, 1)
        rows = q.flatten(0, 1).to(self.dtype)
        message, normaliser = word_messages(
            rows, self.dependents, self.heads, self.scale, rest, problem
        )
        normaliser = normaliser.unflatten(0, q.shape[:2]).transpose(1, 2).unsqueeze(-1)
        return message.view_as(q), normaliser
