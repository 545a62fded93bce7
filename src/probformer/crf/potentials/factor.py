"""What a factor declares: its variables, its values of H, its messages, fields of the posterior.

The energy is a sum over the unary scores and the factors. A factor may add variables that have
labels (`label_variables`, such as ROOT's), variables that choose something for each word
(`head_variables`, such as split global features), and values that any head may take (`columns`).
`mean_field`, evidence, the posterior and the energy go over the list of factors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from probformer.crf.evidence import Evidence
from probformer.sentinels import UNOBSERVED


@dataclass(frozen=True)
class Variable:
    """Latent variables of one kind: one per sentence, per word, or per word and channel."""

    name: str
    """The name of their indices in `Evidence`."""
    symbol: str
    """The first part of their names in `reference`, such as "Z"."""
    values: int
    """The number of values that each can take."""
    marginals: str
    """The field of `Posterior` for their distributions; any other name is a key of its `others`."""
    scores: str | None = None
    """The same for their un-normalised scores; None if these are not returned."""
    per_word: bool = False
    """Whether they belong to words."""
    channels: int | None = None
    """The number of channels; None for variables without channels."""

    def shape(self, batch: int, n: int) -> tuple[int, ...]:
        """The shape of their indices in `Evidence`.

        Args:
            batch: B, the number of sentences.
            n: the number of words.

        Returns:
            (B, channels, n), without the axes that they do not have.
        """
        channels = () if self.channels is None else (self.channels,)
        return batch, *channels, *((n,) if self.per_word else ())


class Factor(nn.Module, ABC):
    """Scores the labels of words together with other variables.

    A factor without columns and head variables, such as one between every word's label and a topic
    of the sentence, is passed None in place of the distributions of heads.
    """

    label_variables: Sequence[Variable] = ()
    """Variables with labels that it adds beside Z; their message weight is λ_Z."""
    head_variables: Sequence[Variable] = ()
    """Variables that it adds beside H, at most one kind; their message weight is λ_H."""
    column_field: str | None = None
    """The field of `Posterior` for the probabilities of its columns."""
    column_evidence: str | None = None
    """The name in `Evidence` under which its columns are observed, if it is not `heads`."""
    labelled_channel: int | None = None
    """The channel whose arcs it gives labels: `head_scores` are then (B, m, n, columns of H), added
    to the scores of that channel's heads, for each of the m labels."""
    label_count: int = 0
    """m, with `labelled_channel`."""

    def columns(self, n: int) -> int:
        """The number of values that it adds to each H of a sentence of n words."""
        return 0

    def column_fields(self, p: Tensor) -> dict[str, Tensor]:
        """Fields of the posterior, from the marginals of its columns, (B, h, n, columns)."""
        assert self.column_field is not None
        return {self.column_field: p}

    def forbidden_columns(self, mask: Tensor) -> Tensor:
        """(B, n, columns), true where a word cannot have this value as its head."""
        return ~mask.unsqueeze(-1).expand(-1, -1, self.columns(mask.shape[1]))

    def observed_columns(self, evidence: Evidence) -> Tensor | None:
        """(B, h, n): the observed column, or `UNOBSERVED`; None if evidence has no indices."""
        return None if self.column_evidence is None else evidence.index(self.column_evidence)

    @abstractmethod
    def prepare(self, q: Tensor, *own: Tensor) -> Any:
        """What both messages are computed from; the methods below get it as `x`.

        Args:
            q: Q_Z (B, n, d), the distributions over the labels of words.
            own: the distributions of its `label_variables`.
        """

    def head_scores(self, x: Any) -> Tensor | None:
        """The messages to its columns or head variables, (B, h, n, values); None without either."""
        return None

    @abstractmethod
    def label_messages(self, p: Tensor | None, x: Any) -> tuple[Tensor, ...]:
        """The messages to Z, without S, and to each of its label variables.

        Args:
            p: Q of its columns or of its head variables, (B, h, n, values); None without either.
            x: what `prepare` returned.

        Returns:
            (B, n, d), whose values at padding are ignored, then one tensor per label variable.
        """

    def expected_score(self, p: Tensor | None, x: Any) -> Tensor:
        """Its part of −E(Q); to be overridden if `head_scores` returns None.

        Args:
            p: as for `label_messages`.
            x: what `prepare` returned.

        Returns:
            (B,).
        """
        scores = self.head_scores(x)
        assert scores is not None, f"{type(self).__name__} must define expected_score"
        assert p is not None
        return (p * scores).flatten(1).sum(1)

    def reference_score(self, q: Mapping[tuple, Tensor], n: int) -> Tensor:
        """Its part of −E(Q) for one sentence in plain loops, with which `reference` computes.

        Args:
            q: distributions by variable: ("Z", i), (symbol,), (symbol, i) or (symbol, channel, i);
                for a factor with columns, ("H", channel, i) has the probabilities of these alone.
            n: the number of words.

        Returns:
            A scalar.

        Raises:
            NotImplementedError: the factor does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define reference_score")


def observed_columns(factors: Sequence[Factor], evidence: Evidence, n: int) -> Tensor | None:
    """(B, h, n): the observed column among all of H, or `UNOBSERVED`; None without evidence."""
    observed, first = None, 0
    for factor in factors:
        own = factor.observed_columns(evidence)
        if own is not None:
            own = torch.where(own == UNOBSERVED, UNOBSERVED, first + own)
            observed = own if observed is None else torch.where(own == UNOBSERVED, observed, own)
        first += factor.columns(n)
    return observed
