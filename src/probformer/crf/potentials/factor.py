"""What every factor declares: its variables, its values of H, its messages and its fields.

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
    """Latent variables of one kind: one a sentence, one a word, or one a word and channel."""

    name: str
    """Of their indices in `Evidence`."""
    symbol: str
    """Their letter in `reference`."""
    values: int
    """How many values each can take."""
    marginals: str
    """The field of `Posterior` for their distributions; a name of your own goes to `others`."""
    scores: str | None = None
    """Likewise for their un-normalised scores."""
    per_word: bool = False
    channels: int | None = None

    def shape(self, batch: int, n: int) -> tuple[int, ...]:
        """(B, channels, n) of the variables, as far as they have channels and words."""
        channels = () if self.channels is None else (self.channels,)
        return batch, *channels, *((n,) if self.per_word else ())


class Factor(nn.Module, ABC):
    """Scores the labels of words together with other variables.

    A factor without columns and head variables, such as one between every word's label and a topic
    of the sentence, gets None where others get the distributions of heads.
    """

    label_variables: Sequence[Variable] = ()
    """Beside the labels of words; messages to them are weighted by λ_Z."""
    head_variables: Sequence[Variable] = ()
    """Beside H, at most one kind; messages to them are weighted by λ_H."""
    column_field: str | None = None
    """The field of `Posterior` for the probabilities of its columns."""
    column_evidence: str | None = None
    """The index in `Evidence` that observes one of its columns, if it is not `heads`."""

    def columns(self, n: int) -> int:
        """How many values it adds to each H of a sentence of n words."""
        return 0

    def column_fields(self, p: Tensor) -> dict[str, Tensor]:
        """What the posterior has of the distributions over its columns, (B, h, n, columns)."""
        assert self.column_field is not None
        return {self.column_field: p}

    def forbidden_columns(self, mask: Tensor) -> Tensor:
        """(B, n, columns), true where a word cannot have this value as its head."""
        return ~mask.unsqueeze(-1).expand(-1, -1, self.columns(mask.shape[1]))

    def observed_columns(self, evidence: Evidence) -> Tensor | None:
        """(B, h, n): the column that is observed, `UNOBSERVED` elsewhere; None for nowhere."""
        return None if self.column_evidence is None else evidence.index(self.column_evidence)

    @abstractmethod
    def prepare(self, q: Tensor, *own: Tensor) -> Any:
        """What both messages need.

        Args:
            q: Q_Z (B, n, d), the distributions over the labels of words.
            own: those of its own label variables.
        """

    def head_scores(self, x: Any) -> Tensor | None:
        """The messages to its columns (B, h, n, columns), or to its head variables."""
        return None

    @abstractmethod
    def label_messages(self, p: Tensor | None, x: Any) -> tuple[Tensor, ...]:
        """To Z (B, n, d), without S, and to each of its label variables.

        Messages to padding do not matter.

        Args:
            p: the distributions over its columns, or of its head variables, (B, h, n, values).
            x: what `prepare` made of the distributions over labels.
        """

    def expected_score(self, p: Tensor | None, x: Any) -> Tensor:
        """Its part of −E(Q), (B,). A factor without heads must say."""
        scores = self.head_scores(x)
        assert scores is not None, f"{type(self).__name__} must define expected_score"
        assert p is not None
        return (p * scores).flatten(1).sum(1)

    def reference_score(self, q: Mapping[tuple, Tensor], n: int) -> Tensor:
        """Its part of −E(Q) for one sentence, in plain loops: what `reference` knows of a factor.

        Args:
            q: distributions by variable: ("Z", i), (symbol,), (symbol, i) or (symbol, channel, i).
            n: the number of words.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define reference_score")


def observed_columns(factors: Sequence[Factor], evidence: Evidence, n: int) -> Tensor | None:
    """(B, h, n): the observed column of all of H, `UNOBSERVED` elsewhere; None for nowhere."""
    observed, first = None, 0
    for factor in factors:
        own = factor.observed_columns(evidence)
        if own is not None:
            own = torch.where(own == UNOBSERVED, UNOBSERVED, first + own)
            observed = own if observed is None else torch.where(own == UNOBSERVED, observed, own)
        first += factor.columns(n)
    return observed
