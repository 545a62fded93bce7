"""What inference returns."""

from __future__ import annotations

from dataclasses import dataclass

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
    free_energy: Tensor | None = None
    """(B,), in a trace only, without gradient; None where no softmax leaves it undefined."""
    trace: list[Posterior] | None = None
    """The posterior after each iteration, only when asked for."""
