"""The random variables of one kind, their distributions, and how a message changes those."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from probformer.config import Inference
from probformer.crf.evidence import Evidence
from probformer.crf.potentials import Potentials
from probformer.crf.potentials.factor import Variable, observed_columns
from probformer.crf.structures import (
    Independent,
    Labelled,
    OfSentence,
    Structure,
    head_structure,
    label_structure,
    row_structure,
)

Dropout = Callable[[Tensor], Tensor]


class Belief(NamedTuple):
    """The state of the variables of one kind, (B, …, values) each."""

    message: Tensor
    """M: the messages to these variables, after damping."""
    scores: Tensor
    """M/λ; those of labels after dropout."""
    marginals: Tensor
    """Q, in float32 at least, from scores without dropout."""
    sent: Tensor
    """Q from which the next messages are computed: after dropout, in the model's precision."""


@dataclass(frozen=True)
class Variables:
    """All variables of one kind: Z, ROOT's label, H, or those of another factor."""

    prior: Tensor
    """M before the first message: S for Z, zero for the others."""
    forbidden: Tensor
    """True for values that cannot be taken (broadcastable), because of padding or evidence."""
    observed: Tensor | None
    """(…, 1): true for observed variables, whose point mass dropout leaves as it is."""
    weight: float
    """λ."""
    damping: float
    """β."""
    structure: Structure
    dropout: Dropout | None
    drop_scores: bool
    """Whether dropout is applied to scores, as for labels, or to Q, as for heads."""

    def start(self) -> Belief:
        """Before the first iteration: Q ∝ exp(S) for Z, uniform for the others (eqs. 7, 8)."""
        scores = _precise(self.prior)
        q = self._distribution(scores, None, 1.0)
        return Belief(self.prior, scores, q, q.to(self.prior.dtype))

    def update(self, old: Belief, message: Tensor, step: float, is_sent: bool = True) -> Belief:
        """Message weights (eqs. 11, 12), step sizes and damping (appendices B.1 and B.2):

        M = (1−β)·message + β·M,  Q = α·softmax(M/λ) + (1−α)·Q.

        `is_sent` is false in the last iteration, where no message is computed from labels any more.
        """
        if self.damping:
            message = (1 - self.damping) * message + self.damping * old.message
        scores = _precise(message) / self.weight
        marginals = sent = self._distribution(scores, old, step)
        if self.dropout is not None and self.drop_scores:
            scores = self.dropout(scores)
            sent = self._distribution(scores, old, step) if is_sent else marginals
        elif self.dropout is not None:
            sent = self.dropout(marginals)
            if self.observed is not None:
                sent = torch.where(self.observed, marginals, sent)
        return Belief(message, scores, marginals, sent.to(self.prior.dtype))

    def entropy(self, belief: Belief, step: float) -> Tensor | None:
        """H(Q) of each sentence after an update, (B,); None where the structure has none."""
        return self.structure.entropy(belief.scores, belief.marginals, self.forbidden, step)

    def _distribution(self, scores: Tensor, old: Belief | None, step: float) -> Tensor:
        q = self.structure.marginals(scores, self.forbidden)
        if old is not None and step < 1:
            q = step * q + (1 - step) * old.marginals
            if self.observed is not None:  # α + (1 − α) need not be 1 in floating point
                q = torch.where(self.observed, old.marginals, q)
        return q


def _precise(x: Tensor) -> Tensor:
    """In float32 at least: times 1/λ_H = d, half-precision scores may overflow."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def label_variables(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    inference: Inference,
    evidence: Evidence,
    dropout: Dropout | None,
) -> list[Variables]:
    """Z, then the label variables of factors, such as ROOT's."""
    batch, n, _ = unary.shape
    of_words, kinds = label_structure(inference), []
    for i, variable in enumerate(potentials.label_variables):
        shape = *variable.shape(batch, n), variable.values
        is_block = len(shape) > 2 or isinstance(of_words, Independent)
        structure = of_words if is_block else OfSentence(of_words)
        index = evidence.index(variable.name)
        padding = padding_of(variable, mask)
        forbidden, observed = _conditioned(structure, padding, index, variable.values)
        kinds.append(
            Variables(
                prior=unary if i == 0 else unary.new_zeros(shape),
                forbidden=forbidden,
                observed=observed,
                weight=inference.lambda_z,
                damping=inference.damping_z,
                structure=structure,
                dropout=dropout,
                drop_scores=True,
            )
        )
    return kinds


def head_variables(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    inference: Inference,
    evidence: Evidence,
    dropout: Dropout | None,
) -> list[Variables]:
    """The blocks of heads, in the order of `Potentials.head_messages`."""
    batch, n, _ = unary.shape

    def block(
        shape: tuple[int, ...],
        structure: Structure,
        forbidden: Tensor,
        observed: Tensor | None,
        dropout: Dropout | None = dropout,
    ) -> Variables:
        return Variables(
            prior=unary.new_zeros(()).expand(shape),
            forbidden=forbidden,
            observed=observed,
            weight=inference.lambda_h_for(potentials.words.labels),
            damping=inference.damping_h,
            structure=structure,
            dropout=dropout,
            drop_scores=False,
        )

    structure, labelled = head_structure(inference), potentials.labelling
    columns = [factor.forbidden_columns(mask) for factor in potentials.with_columns]
    excluded = (columns[0] if len(columns) == 1 else torch.cat(columns, dim=-1)).unsqueeze(1)
    index = observed_columns(potentials.with_columns, evidence, n)
    values = excluded.shape[-1]
    blocks: list[Variables] = []
    if labelled is not None:
        channel = labelled.labelled_channel
        assert channel is not None
        of_channel = None if index is None else index[:, channel : channel + 1]
        blocks.append(
            block(
                (batch, labelled.label_count, n, values),
                Labelled(structure.of_channel(channel)),
                *_observed_arcs(
                    structure, excluded, of_channel, evidence.arc_labels, labelled.label_count
                ),
                dropout and _same_for_all_labels(dropout),
            )
        )
        index = None if index is None else potentials.without_labelled(index)
        structure = structure.without(channel)
    channels = potentials.words.channels - len(blocks)
    given = _conditioned(structure, excluded, index, values)
    blocks.insert(0, block((batch, channels, n, values), structure, *given))
    for variable in potentials.head_variables:
        padding, index = padding_of(variable, mask), evidence.index(variable.name)
        rows = row_structure(inference)
        given = _conditioned(rows, padding, index, variable.values)
        blocks.append(block((*variable.shape(batch, n), variable.values), rows, *given))
    return blocks


def padding_of(variable: Variable, mask: Tensor) -> Tensor:
    """True at padding: (B, n, 1), or (B, 1, n, 1) with channels; false (1, 1) without words."""
    if not variable.per_word:
        return mask.new_zeros(1, 1)
    padding = ~mask.unsqueeze(-1)
    return padding if variable.channels is None else padding.unsqueeze(1)


def _conditioned(
    structure: Structure, forbidden: Tensor, index: Tensor | None, values: int
) -> tuple[Tensor, Tensor | None]:
    """What is forbidden given the observed values, and which variables are observed."""
    if index is None:
        return forbidden, None
    forbidden = forbidden.expand(*forbidden.shape[:-1], values)
    return structure.condition(forbidden, index), (index >= 0).unsqueeze(-1)


def _observed_arcs(
    structure: Structure,
    forbidden: Tensor,
    heads: Tensor | None,
    labels: Tensor | None,
    count: int,
) -> tuple[Tensor, Tensor | None]:
    """The same for pairs of head and label, from the heads (B, 1, n) and the labels (B, n)."""
    forbidden, observed = _conditioned(structure, forbidden, heads, forbidden.shape[-1])
    if labels is None:
        return forbidden, None
    every = torch.arange(count, device=labels.device).view(-1, 1, 1)
    given = labels[:, None, :, None]  # (B, 1, n, 1)
    known = given >= 0
    return forbidden | known & (every != given), None if observed is None else observed & known


def _same_for_all_labels(dropout: Dropout) -> Dropout:
    """Dropout of arcs, with all of their labels."""
    return lambda q: q * dropout(torch.ones_like(q[:, :1]))


def dropout_at(rate: float, generator: torch.Generator | None) -> Dropout | None:
    """Ordinary dropout, which draws from `generator` if one is given; None at rate 0."""
    if rate == 0:
        return None
    if generator is None:
        return lambda x: F.dropout(x, rate)

    def drop(x: Tensor) -> Tensor:
        draw = torch.rand(x.shape, generator=generator, dtype=torch.float32, device=x.device)
        return x * (draw >= rate) / (1 - rate)

    return drop
