"""The random variables of one kind, what is believed of them, and how a message changes that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from probformer.config import Inference
from probformer.crf.evidence import Clamp, Evidence
from probformer.crf.normalisers import Normaliser, get_normaliser
from probformer.crf.potentials import Potentials
from probformer.sentinels import ROOT, UNOBSERVED

Dropout = Callable[[Tensor], Tensor]


class Belief(NamedTuple):
    """What is known of the variables of one kind, (B, …, values) each."""

    message: Tensor
    """M: what they heard, with damping."""
    scores: Tensor
    """M/λ; of labels, with dropout."""
    marginals: Tensor
    """Q, in float32 at least; never touched by dropout."""
    read: Tensor
    """Q as messages read it: with dropout, in the precision of the model."""


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
    dropout: Dropout | None
    drop_scores: bool
    """Dropout acts on the scores of labels, and on the probabilities of heads."""

    def start(self) -> Belief:
        """Before the first iteration: Q ∝ exp(S) for Z, uniform for the others (eqs. 7, 8)."""
        scores = _precise(self.prior)
        q = self._distribution(scores, None, 1.0)
        return Belief(self.prior, scores, q, q.to(self.prior.dtype))

    def update(self, old: Belief, message: Tensor, step: float, heard: bool = True) -> Belief:
        """Message weights (eqs. 11, 12), step sizes and damping (appendices B.1 and B.2):

        M = (1−β)·message + β·M,  Q = α·softmax(M/λ) + (1−α)·Q.

        Labels of the last iteration are not `heard`: no message reads them any more.
        """
        if self.damping:
            message = (1 - self.damping) * message + self.damping * old.message
        scores = _precise(message) / self.weight
        marginals = read = self._distribution(scores, old, step)
        if self.dropout is not None and self.drop_scores:
            scores = self.dropout(scores)
            read = self._distribution(scores, old, step) if heard else marginals
        elif self.dropout is not None:
            read = self._observe(self.dropout(marginals))
        return Belief(message, scores, marginals, read.to(self.prior.dtype))

    def _distribution(self, scores: Tensor, old: Belief | None, step: float) -> Tensor:
        q = self.normaliser(scores, self.forbidden)
        if old is not None and step < 1:
            q = step * q + (1 - step) * old.marginals
        return self._observe(q)

    def _observe(self, q: Tensor) -> Tensor:
        return q if self.clamp is None else self.clamp(q)


def _precise(x: Tensor) -> Tensor:
    """In float32 at least: 1/λ_H = d takes half-precision scores out of their range."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def label_variables(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    inference: Inference,
    evidence: Evidence,
    dropout: Dropout | None,
) -> list[Variables]:
    """Z and, with a root, Z_ROOT."""

    def kind(prior: Tensor, forbidden: Tensor, observed: Tensor | None) -> Variables:
        return Variables(
            prior=prior,
            forbidden=forbidden,
            clamp=Clamp.at(observed, prior.shape[-1]),
            weight=inference.lambda_z,
            damping=inference.damping_z,
            normaliser=get_normaliser(inference.normaliser_z),
            dropout=dropout,
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
    dropout: Dropout | None,
) -> list[Variables]:
    """H and, with split globals, G."""

    def kind(channels: int, forbidden: Tensor, observed: Tensor | None) -> Variables:
        batch, n, columns = forbidden.shape
        return Variables(
            prior=unary.new_zeros(()).expand(batch, channels, n, columns),
            forbidden=forbidden.unsqueeze(1),
            clamp=Clamp.at(observed, columns),
            weight=inference.lambda_h_for(potentials.words.labels),
            damping=inference.damping_h,
            normaliser=get_normaliser(inference.normaliser_h),
            dropout=dropout,
            drop_scores=False,
        )

    n, features = mask.shape[1], potentials.globals
    words, padding = mask.unsqueeze(-1), ~mask.unsqueeze(-1)
    itself = torch.eye(n, dtype=torch.bool, device=mask.device)
    others = potentials.columns(n)[1:]  # of ROOT and all-dep globals
    forbidden = ~(words & words.mT) | itself
    if others:
        forbidden = torch.cat([forbidden, padding.expand(-1, -1, sum(others))], dim=-1)
    observed = _observed_columns(evidence, n, others, potentials.has_split_globals)
    variables = [kind(potentials.words.channels, forbidden, observed)]
    if features is not None and potentials.has_split_globals:
        forbidden = padding.expand(-1, -1, features.count)
        variables.append(kind(features.channels, forbidden, evidence.globals))
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
        there = torch.where(evidence.globals == UNOBSERVED, UNOBSERVED, first + evidence.globals)
        observed = there if observed is None else torch.where(there == UNOBSERVED, observed, there)
    return observed


def dropout_at(rate: float, generator: torch.Generator | None) -> Dropout | None:
    """Ordinary dropout, from a random stream of the caller's if there is one."""
    if rate == 0:
        return None
    if generator is None:
        return lambda x: F.dropout(x, rate)

    def drop(x: Tensor) -> Tensor:
        draw = torch.rand(x.shape, generator=generator, dtype=torch.float32, device=x.device)
        return x * (draw >= rate) / (1 - rate)

    return drop
