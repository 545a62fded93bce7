"""Iterations whose head beliefs nobody looks at, through the fused kernels.

H is summed out on the way from labels to labels: F, its softmax, dropout and G never exist as
n × n matrices in memory, unless step sizes ask for the heads of the iteration before. The result is
that of the plain path.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from probformer.config import Inference
from probformer.crf.evidence import Evidence
from probformer.crf.normalisers import softmax
from probformer.crf.potentials import Potentials
from probformer.crf.variables import Belief, Variables, dropout_at
from probformer.packing import Packing

HALF = torch.bfloat16
"""Scores over λ_H leave the range of float16."""


def can_fuse(
    unary: Tensor,
    potentials: Potentials,
    inference: Inference,
    evidence: Evidence,
    trace: bool,
    attention: bool,
) -> bool:
    """Whether kernels may stand in: nobody wishes to see or set their heads.

    Heads of the last iteration can be seen, as the plain path does that one, but not if they are
    made of earlier ones.
    """
    return (
        kernels_run_on(unary.device)
        and not torch.compiler.is_compiling()
        and unary.dtype != torch.float64
        and dtype_of_products(unary) in (torch.float32, HALF)
        and potentials.words.has_matrices
        and kernels_support(inference)
        and evidence.heads is None
        and evidence.globals is None
        and not trace
        and not (attention and _mixes_heads(inference))
    )


def kernels_support(inference: Inference) -> bool:
    """Whether heads are a softmax of what they hear, or a step towards it, as often as is asked."""
    return (
        inference.asynchronous
        and inference.normaliser_h == "softmax"
        and not inference.damping_h
        and inference.tolerance is None
    )


def _mixes_heads(inference: Inference) -> bool:
    """Whether some heads are made of those of the iteration before."""
    return any(inference.steps(t)[1] < 1 for t in range(inference.iterations))


def kernels_run_on(device: torch.device) -> bool:
    nvidia = device.type == "cuda" and torch.version.hip is None
    return nvidia and find_spec("triton") is not None


def dtype_of_products(x: Tensor) -> torch.dtype:
    """Of the large ones, with x."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


class _Heads(NamedTuple):
    """Beliefs about heads that the next iteration mixes its own with, without dropout."""

    words: Tensor | None
    """(R, h, longest), as kernels left them."""
    others: list[Tensor]
    """ROOT and globals, (B, h, n, m) each."""


class FusedIterations:
    """Mean field without a look at the heads."""

    def __init__(
        self,
        unary: Tensor,
        mask: Tensor,
        packing: Packing | None,
        potentials: Potentials,
        inference: Inference,
        labels: Sequence[Variables],
        rate: float,
        generator: torch.Generator | None,
    ) -> None:
        self.unary = unary
        self.potentials = potentials
        self.inference = inference
        self.labels = labels
        self.padding = ~mask[:, None, :, None]
        self.weight = inference.lambda_h_for(potentials.words.labels)
        self.rate = rate
        self.drop = dropout_at(rate, generator)
        self.mask = mask.contiguous().flatten()
        self.packing = Packing.of_padded(mask)
        if packing is not None:
            self.packing = packing.covering(len(self.mask))
        self.dtype = dtype_of_products(unary)
        matrices = potentials.words.matrices(self.packing.longest)
        self.scale, self.angles = matrices.scale, matrices.angles
        self.dependents = matrices.dependents.to(self.dtype)  # once, for all iterations
        self.heads = None if matrices.heads is None else matrices.heads.to(self.dtype)
        self.seeds = None
        if rate:
            size = (inference.iterations, 2, 1)  # for heads and for labels
            self.seeds = torch.randint(2**62, size, device=unary.device, generator=generator)

    def up_to(self, count: int, beliefs: Sequence[Belief]) -> list[Belief]:
        """Beliefs about the labels after the first `count` iterations."""
        beliefs, heads = list(beliefs), None
        for t in range(count):
            heard = t + 1 < self.inference.iterations
            remember = t + 1 < count and self.inference.steps(t + 1)[1] < 1
            labels = [belief.read for belief in beliefs]
            (to_z, *to_root), heads = self._messages(labels, heads, t, remember)
            step, _ = self.inference.steps(t)
            z, *root = self.labels
            if t + 1 < count and self._labels_are_plain(t):
                beliefs[0] = beliefs[0]._replace(read=self._updated(to_z, t))
            else:
                beliefs[0] = z.update(beliefs[0], self.unary + to_z, step, heard)
            for i, (kind, message) in enumerate(zip(root, to_root, strict=True), 1):
                beliefs[i] = kind.update(beliefs[i], message, step, heard)
        return beliefs

    def _labels_are_plain(self, t: int) -> bool:
        """Whether the next Q, and the one after it, depend on nothing but S + G, by a softmax."""
        inference, z = self.inference, self.labels[0]
        plain = inference.normaliser_z == "softmax" and z.clamp is None
        whole = inference.steps(t)[0] == inference.steps(t + 1)[0] == 1
        return plain and whole and not inference.damping_z

    def _updated(self, message: Tensor, t: int) -> Tensor:
        from probformer.kernels.crf.labels import updated_labels

        rows, weight = self.mask, self.inference.lambda_z
        seed = None if self.seeds is None else self.seeds[t, 1]
        read = updated_labels(
            self.unary.flatten(0, 1), message.flatten(0, 1), rows, weight, self.rate, seed
        )
        return read.view_as(message)

    def _messages(
        self, labels: Sequence[Tensor], old: _Heads | None, t: int, remember: bool
    ) -> tuple[list[Tensor], _Heads | None]:
        """To Z (B, n, d), without S, and, with a root, to Z_ROOT, in iteration t.

        With them, where the next iteration is to `remember` them, the heads that they come from.
        """
        x = self.potentials.project_others(labels)
        factors = zip(self.potentials.factors[1:], x, strict=True)
        scores = [factor.head_scores(part).float() / self.weight for factor, part in factors]
        split = [softmax(scores.pop(), self.padding)] if self.potentials.has_split_globals else []
        to_z, normaliser, words = self._word_messages(labels[0], scores, old, t, remember)
        heads = [(score - normaliser).exp() for score in scores] + split
        if old is not None:
            _, step = self.inference.steps(t)
            pairs = zip(heads, old.others, strict=True)
            heads = [step * p + (1 - step) * q for p, q in pairs]
        kept = _Heads(words, heads) if remember else None
        if self.drop is not None:
            heads = [self.drop(p) for p in heads]
        heads = [p.to(self.unary.dtype) for p in heads]
        return self.potentials.add_others(to_z, heads, x), kept

    def _word_messages(
        self, q: Tensor, columns: Sequence[Tensor], old: _Heads | None, t: int, remember: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """What words hear of words (B, n, d), the normaliser of H (B, h, n, 1), and H itself.

        `columns` (B, h, n, m) are the scores of heads that are no words.
        """
        from probformer.kernels.crf.messages import word_messages
        from probformer.kernels.crf.problem import Problem

        problem = Problem(
            packing=self.packing,
            mask=self.mask,
            channels=self.potentials.words.channels,
            gamma=self.potentials.words.buckets.gamma,
            weight=self.weight,
            angles=self.angles,
            rate=self.rate,
            seed=None if self.seeds is None else self.seeds[t, 0],
            step=self.inference.steps(t)[1],
            remembers=remember,
        )
        rest = None
        if columns:
            rest = torch.cat(tuple(columns), -1).logsumexp(-1).transpose(1, 2).flatten(0, 1)
        before = None if old is None else old.words
        message, normaliser, words = word_messages(
            q.flatten(0, 1), self.dependents, self.heads, self.scale, rest, before, problem
        )
        normaliser = normaliser.unflatten(0, q.shape[:2]).transpose(1, 2).unsqueeze(-1)
        return message.view_as(q), normaliser, words
