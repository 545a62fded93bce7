"""What a ternary potential between a word and its head declares.

Each is given by two linear maps of the label distributions, `project`, and their adjoint,
`collect`; what happens in between is the same for all and is in `pairwise.py`. A potential of your
own needs these two, `dense`, `squared_norm` and an initialisation; with `matrices` it runs in fused
kernels, too.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from probformer.crf.evidence import Evidence
from probformer.crf.potentials.all_pairs import AllPairs
from probformer.crf.potentials.buckets import Buckets
from probformer.crf.potentials.factor import Factor
from probformer.crf.potentials.pairwise import Pairs
from probformer.errors import require_whole
from probformer.sentinels import ROOT, UNOBSERVED


@dataclass(frozen=True, eq=False)
class Matrices:
    """A potential as a product of matrices: T[k]^c = U[k]^c diag(D[k]^c) V[k]^cᵀ."""

    dependents: Tensor
    """U (K, h, r, d); an axis of size one is shared by all buckets, or by all channels."""
    heads: Tensor | None
    """V, likewise; None stands for the identity."""
    scale: Tensor | None = None
    """D (K, h, r); None stands for ones."""
    angles: tuple[Tensor, Tensor] | None = None
    """Cosine and sine (n, r/2) of the angles by which rotary vectors turn at each position."""


class WordPotential(Factor):
    """T[f(i−j)]^c_ab scores label a of a word i with label b of its head j in channel c.

    Args:
        labels: d, the number of labels of a word.
        channels: h, the number of head variables of a word.
        gamma: γ, the largest distance with a bucket of its own; None for one bucket in all.
    """

    pair_implementation: type[Pairs] | type[AllPairs] = Pairs
    """The class that computes scores and contexts of pairs of words."""
    column_field = "head_marginals"

    def __init__(self, labels: int, channels: int, gamma: int | None) -> None:
        super().__init__()
        require_whole("labels", labels)
        require_whole("channels", channels)
        self.labels = labels
        self.channels = channels
        self.buckets = Buckets(gamma)

    @abstractmethod
    def project(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """A vector of each word as a dependent, and one as a head: linear maps of Q_Z.

        Args:
            q: Q_Z (B, n, d).

        Returns:
            Two tensors (B, n, K, h, r); that of heads has 1 for K or h where all buckets or
            channels share it.
        """

    @abstractmethod
    def collect(self, to_dependents: Tensor, to_heads: Tensor) -> Tensor:
        """The adjoint of `project`.

        Args:
            to_dependents: (B, n, K, h, r), the contexts of words as dependents.
            to_heads: their contexts as heads, in the shape of `project`'s second result.

        Returns:
            The message to labels, (B, n, d).
        """

    @abstractmethod
    def dense(self, offset: int) -> Tensor:
        """T_δ[c, a, b] (h, d, d) for i−j = `offset`."""

    @abstractmethod
    def squared_norm(self) -> Tensor:
        """Σ T² over all buckets, channels and pairs of labels, without building T; a scalar.

        In float32 at least: sums of squares overflow in float16.
        """

    @property
    def has_matrices(self) -> bool:
        """Whether the class defines `matrices`, which fused kernels need."""
        return type(self).matrices is not WordPotential.matrices

    def matrices(self, longest: int) -> Matrices:
        """The matrices for fused kernels, for sentences of up to `longest` words."""
        raise NotImplementedError

    def norm(self) -> Tensor:
        """‖T‖_F, not squared, a scalar: the paper's L2 term."""
        with torch.autocast(next(self.parameters()).device.type, enabled=False):
            total = self.squared_norm()
        return total.clamp(min=torch.finfo(total.dtype).tiny).sqrt()

    def columns(self, n: int) -> int:
        """Every word of the sentence may be a head."""
        return n

    def forbidden_columns(self, mask: Tensor) -> Tensor:
        """(B, n, n), true where j cannot head i: one of them is padding, or i = j."""
        words = mask.unsqueeze(-1)
        return ~(words & words.mT) | torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)

    def observed_columns(self, evidence: Evidence) -> Tensor | None:
        if evidence.heads is None:
            return None
        return torch.where(evidence.heads == ROOT, UNOBSERVED, evidence.heads)

    def prepare(self, q: Tensor, *own: Tensor) -> Pairs | AllPairs:
        return self.pair_implementation.of(*self.project(q), self.buckets)

    def head_scores(self, x: Pairs | AllPairs) -> Tensor:
        """F (B, h, n, n), eq. 3."""
        return x.scores

    def label_messages(self, p: Tensor | None, x: Pairs | AllPairs) -> tuple[Tensor]:
        """G (B, n, d), eq. 4: each word receives messages from its head and its dependents."""
        assert p is not None
        return (self.collect(*x.contexts(p)),)
