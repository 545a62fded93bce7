"""The random variables of one kind, what is believed of them, and how a message changes that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from probformer.config import Inference
from probformer.evidence import FREE, ROOT, Clamp, Evidence
from probformer.normalisers import Normaliser, get_normaliser
from probformer.potentials import Potentials

Dropout = Callable[[Tensor], Tensor]


class Belief(NamedTuple):
    """What is known of the variables of one kind, (B, …, values) each."""

    message: Tensor
    """M: what they heard, with damping."""
    scores: Tensor
    """M/λ; of labels, with dropout."""
    marginals: Tensor
    """Q, never touched by dropout."""
    read: Tensor
    """Q as messages read it, with dropout."""


@dataclass(frozen=True)
class Variables:
    """All variables of one kind: Z, ROOT's label, H or split G."""

    prior: Tensor
    """M before anything is heard: S for Z, zero for the others."""
    forbidden: Tensor
    """True for values that cannot be taken (broadcastable)."""
    clamp: Clamp | None
    weight: float
    """λ."""
    damping: float
    """β."""
    normaliser: Normaliser
    drop: Dropout
    drop_scores: bool
    """Dropout acts on the scores of labels, and on the probabilities of heads."""

    def start(self) -> Belief:
        """Before the first iteration: Q ∝ exp(S) for Z, uniform for the others (eqs. 7, 8)."""
        q = self._distribution(self.prior, None, 1.0)
        return Belief(self.prior, self.prior, q, q)

    def update(self, old: Belief, message: Tensor, step: float) -> Belief:
        """M = (1−β)·message + βM and Q = α·softmax(M/λ) + (1−α)Q (eqs. 11, 12, 32, 33)."""
        if self.damping:
            message = (1 - self.damping) * message + self.damping * old.message
        scores = message / self.weight
        marginals = self._distribution(scores, old, step)
        if self.drop_scores:
            scores = self.drop(scores)
            return Belief(message, scores, marginals, self._distribution(scores, old, step))
        return Belief(message, scores, marginals, self.drop(marginals))

    def _distribution(self, scores: Tensor, old: Belief | None, step: float) -> Tensor:
        q = self.normaliser(scores, self.forbidden)
        if old is not None and step < 1:
            q = step * q + (1 - step) * old.marginals
        return q if self.clamp is None else self.clamp(q)


def label_variables(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    inference: Inference,
    evidence: Evidence,
    drop: Dropout,
) -> list[Variables]:
    """Z and, with a root, Z_ROOT."""

    def kind(prior: Tensor, forbidden: Tensor, observed: Tensor | None) -> Variables:
        return Variables(
            prior,
            forbidden,
            Clamp.at(observed, prior.shape[-1], prior.dtype),
            inference.lambda_z,
            inference.damping_z,
            get_normaliser("normaliser_z", inference.normaliser_z),
            drop,
            drop_scores=True,
        )

    variables = [kind(unary, ~mask.unsqueeze(-1), evidence.labels)]
    if potentials.root is not None:
        prior = unary.new_zeros(len(unary), potentials.root.labels)
        variables.append(kind(prior, mask.new_zeros(1, 1), evidence.root))
    return variables


def head_variables(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    inference: Inference,
    evidence: Evidence,
    drop: Dropout,
) -> list[Variables]:
    """H and, with split globals, G."""

    def kind(channels: int, forbidden: Tensor, observed: Tensor | None) -> Variables:
        batch, n, columns = forbidden.shape
        return Variables(
            unary.new_zeros(()).expand(batch, channels, n, columns),
            forbidden.unsqueeze(1),
            Clamp.at(observed, columns, unary.dtype),
            inference.lambda_h_for(potentials.words.labels),
            inference.damping_h,
            get_normaliser("normaliser_h", inference.normaliser_h),
            drop,
            drop_scores=False,
        )

    n, globals_ = mask.shape[1], potentials.globals
    words, padding = mask.unsqueeze(-1), ~mask.unsqueeze(-1)
    itself = torch.eye(n, dtype=torch.bool, device=mask.device)
    others = potentials.columns(n)[1:]  # of ROOT and all-dep globals
    forbidden = ~(words & words.mT) | itself
    if others:
        forbidden = torch.cat([forbidden, padding.expand(-1, -1, sum(others))], dim=-1)
    observed = _observed_columns(evidence, n, others, potentials.has_split_globals)
    variables = [kind(potentials.words.channels, forbidden, observed)]
    if globals_ is not None and potentials.has_split_globals:
        forbidden = padding.expand(-1, -1, globals_.count)
        variables.append(kind(globals_.channels, forbidden, evidence.globals))
    return variables


def _observed_columns(
    evidence: Evidence, n: int, others: Sequence[int], split: bool
) -> Tensor | None:
    """Observed heads as columns of H: words, then ROOT, then all-dep globals."""
    observed = evidence.heads
    if observed is not None:
        observed = torch.where(observed == ROOT, n, observed)
    if evidence.globals is not None and not split:
        first = n + sum(others[:-1])
        there = torch.where(evidence.globals == FREE, FREE, first + evidence.globals)
        observed = there if observed is None else torch.where(there == FREE, observed, there)
    return observed


def dropout_function(rate: float, generator: torch.Generator | None) -> Dropout:
    """Ordinary dropout at a rate, from a random stream of the caller's if there is one."""
    if rate == 0:
        return lambda x: x
    if generator is None:
        return lambda x: F.dropout(x, rate)

    def drop(x: Tensor) -> Tensor:
        draw = torch.rand(x.shape, generator=generator, dtype=torch.float32, device=x.device)
        return x * (draw >= rate) / (1 - rate)

    return drop
