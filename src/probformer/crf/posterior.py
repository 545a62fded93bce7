"""The result of inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Posterior:
    """Scores and marginals. B sentences, n words, d labels, h channels; zero on padding.

    Transformers return one too: their representation, and attention in place of heads.
    """

    z_scores: Tensor
    """(B, n, d): (S + G)/λ_Z of the last iteration, un-normalised: the representation."""
    z_marginals: Tensor | None = None
    """(B, n, d): the distribution over the labels of each word."""
    head_marginals: Tensor | None = None
    """(B, h, n, n): row i is the distribution over the word that heads word i."""
    root_head_marginals: Tensor | None = None
    """(B, h, n): the probability that ROOT heads word i."""
    root_scores: Tensor | None = None
    """(B, d_root): un-normalised scores of ROOT's label: the sentence's representation."""
    root_marginals: Tensor | None = None
    """(B, d_root): the distribution over ROOT's labels."""
    global_marginals: Tensor | None = None
    """(B, h or 1, n, m): the probability that word i attaches to global feature k."""
    head_scores: Tensor | None = None
    """(B, h, n, n) or, with ROOT in the last column, (B, h, n, n+1): the messages to heads over
    λ_H of the last iteration, of which a structure makes the marginals. Where arcs have labels
    they are logsumexp over these."""
    arc_label_marginals: Tensor | None = None
    """(B, n, n or n+1, m): the probability that word j, or ROOT in the last column, heads word i
    with label l, in the channel whose arcs have labels. Sums over l are its head marginals."""
    arc_label_scores: Tensor | None = None
    """(B, n, n or n+1, m): the scores of these pairs, F_ijl/λ_H."""
    others: Mapping[str, Tensor] = field(default_factory=dict)
    """Marginals and scores of other factors, by `Variable.marginals`, `Variable.scores` and
    `Factor.column_field`."""
    free_energy: Tensor | None = None
    """(B,), without gradient; in a trace only, and None where a structure has no entropy."""
    trace: list[Posterior] | None = None
    """The posterior after each iteration, if called with `trace=True`."""

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], **more: list[Posterior] | None) -> Posterior:
        """From tensors by name.

        Args:
            tensors: those whose name is not a field go to `others`.
            more: fields that are no tensors.
        """
        others = {name: tensor for name, tensor in tensors.items() if name not in _FIELDS}
        known = {name: tensor for name, tensor in tensors.items() if name in _FIELDS}
        return cls(**known, others=others, **more)  # type: ignore[arg-type]

    def tensor(self, name: str) -> Tensor | None:
        """A field, or one of `others`, by its name; None if there is none."""
        return getattr(self, name, None) if name not in self.others else self.others[name]


_FIELDS = frozenset(item.name for item in fields(Posterior))
