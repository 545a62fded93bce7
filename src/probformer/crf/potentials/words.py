"""Ternary potentials between a word and its head: T and its low-rank forms.

Each is given by two linear maps of the label distributions, `project`, and their adjoint,
`collect`; what happens in between is the same for all and lives in `pairwise.py`. A potential
of your own needs these two, `dense`, `squared_norm` and an initialisation; with `matrices` it
runs in fused kernels, too.

Parameters have the labels on the last axis, so that a projection is one matrix product with the
parameter as it lies in memory: U[k, c, l, a] is the paper's U[k]_{a,c,l}.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.config.factor_settings import (
    FullSettings,
    PotentialSettings,
    RotarySettings,
    SharedUVSettings,
    UVSettings,
    UVWSettings,
    check_rotary_rank,
)
from probformer.crf.evidence import Evidence
from probformer.crf.potentials.all_pairs import AllPairs
from probformer.crf.potentials.buckets import Buckets
from probformer.crf.potentials.factor import Factor
from probformer.crf.potentials.pairwise import Pairs
from probformer.errors import InputError, require_whole
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
        """Σ T² over all buckets, channels and pairs of labels, without building T; a scalar."""

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


class Full(WordPotential):
    """T itself, undecomposed: UV with U = T and V = I.

    As in U, the label of the dependent is the last axis: the parameter's T[k, c, b, a] is the
    paper's T[k]^c_ab.

    Args:
        labels: d, the number of labels of a word.
        channels: h, the number of head variables of a word.
        gamma: γ, the largest distance with a bucket of its own; None for one bucket in all.
    """

    def __init__(self, labels: int, channels: int, gamma: int | None = 3) -> None:
        super().__init__(labels, channels, gamma)
        self.T = nn.Parameter(torch.randn(self.buckets.count, channels, labels, labels))

    def project(self, q: Tensor) -> tuple[Tensor, Tensor]:
        return _project(q, self.T), q[:, :, None, None]

    def collect(self, to_dependents: Tensor, to_heads: Tensor) -> Tensor:
        return _collect(to_dependents, self.T) + to_heads.flatten(2)

    def dense(self, offset: int) -> Tensor:
        return self.T[self.buckets.of(offset)].mT

    def matrices(self, longest: int) -> Matrices:
        return Matrices(self.T, None)

    def squared_norm(self) -> Tensor:
        return _precise(self.T).square().sum()


class UV(WordPotential):
    """T[k]^c = U[k]^c V[k]^cᵀ (eq. 14).

    Args:
        labels: d, the number of labels of a word.
        channels: h, the number of head variables of a word.
        rank: r, the number of columns of U and V.
        gamma: γ, the largest distance with a bucket of its own; None for one bucket in all.
    """

    def __init__(self, labels: int, channels: int, rank: int, gamma: int | None = 3) -> None:
        super().__init__(labels, channels, gamma)
        self.U = _low_rank(self.buckets.count, channels, rank, labels)
        self.V = _low_rank(self.buckets.count, channels, rank, labels)

    def project(self, q: Tensor) -> tuple[Tensor, Tensor]:
        return _project(q, self.U), _project(q, self.V)

    def collect(self, to_dependents: Tensor, to_heads: Tensor) -> Tensor:
        return _collect(to_dependents, self.U) + _collect(to_heads, self.V)

    def dense(self, offset: int) -> Tensor:
        k = self.buckets.of(offset)
        return self.U[k].mT @ self.V[k]

    def matrices(self, longest: int) -> Matrices:
        return Matrices(self.U, self.V)

    def squared_norm(self) -> Tensor:
        return (_gram(self.U) * _gram(self.V)).sum()


class UVW(WordPotential):
    """T[k]^c = U[k] diag(W[k]^c) V[k]ᵀ, the Kruskal form (eq. 13).

    Args:
        labels: d, the number of labels of a word.
        channels: h, the number of head variables of a word.
        rank: r, the number of columns of U and V.
        gamma: γ, the largest distance with a bucket of its own; None for one bucket in all.
    """

    def __init__(self, labels: int, channels: int, rank: int, gamma: int | None = 3) -> None:
        super().__init__(labels, channels, gamma)
        self.U = _low_rank(self.buckets.count, rank, labels)
        self.V = _low_rank(self.buckets.count, rank, labels)
        self.W = nn.Parameter(torch.randn(self.buckets.count, channels, rank) / rank**0.5)

    def project(self, q: Tensor) -> tuple[Tensor, Tensor]:
        dependents = _project(q, self.U).unsqueeze(3) * self.W  # (B, n, K, h, r)
        return dependents, _project(q, self.V).unsqueeze(3)

    def collect(self, to_dependents: Tensor, to_heads: Tensor) -> Tensor:
        message = _collect((to_dependents * self.W).sum(3), self.U)
        return message + _collect(to_heads, self.V)

    def dense(self, offset: int) -> Tensor:
        k = self.buckets.of(offset)
        return (self.U[k].mT * self.W[k].unsqueeze(1)) @ self.V[k]

    def matrices(self, longest: int) -> Matrices:
        return Matrices(self.U.unsqueeze(1), self.V.unsqueeze(1), self.W)

    def squared_norm(self) -> Tensor:
        return (_gram(self.U) * _gram(self.V) * _gram(self.W.mT)).sum()


class SharedUV(WordPotential):
    """T[k]^c = U^c diag(D[k]^c) V^cᵀ: each bucket adds only r parameters per channel.

    Args:
        labels: d, the number of labels of a word.
        channels: h, the number of head variables of a word.
        rank: r, the number of columns of U and V.
        gamma: γ, the largest distance with a bucket of its own; None for one bucket in all.
    """

    def __init__(self, labels: int, channels: int, rank: int, gamma: int | None = 3) -> None:
        super().__init__(labels, channels, gamma)
        self.U = _low_rank(channels, rank, labels)
        self.V = _low_rank(channels, rank, labels)
        self.D = nn.Parameter(torch.randn(self.buckets.count, channels, rank))

    def project(self, q: Tensor) -> tuple[Tensor, Tensor]:
        dependents, heads = _project(q, self.U).unsqueeze(2), _project(q, self.V).unsqueeze(2)
        return dependents * self.D, heads

    def collect(self, to_dependents: Tensor, to_heads: Tensor) -> Tensor:
        message = _collect((to_dependents * self.D).sum(2), self.U)
        return message + _collect(to_heads, self.V)

    def dense(self, offset: int) -> Tensor:
        scale = self.D[self.buckets.of(offset)]
        return (self.U.mT * scale.unsqueeze(1)) @ self.V

    def matrices(self, longest: int) -> Matrices:
        return Matrices(self.U.unsqueeze(0), self.V.unsqueeze(0), self.D)

    def squared_norm(self) -> Tensor:
        distances = _precise(self.D).permute(1, 2, 0)  # (h, r, K)
        return (_gram(self.U) * _gram(self.V) * _gram(distances)).sum()


class Rotary(WordPotential):
    """T_δ^c = U^c R(δ) V^cᵀ with R(δ) turning the pair (l, l + r/2) by δ·10000^(−2l/r).

    R(i−j) = R(i) R(j)ᵀ, so the vectors of each word are turned by its position, and its contexts
    turned back. ‖T_δ‖ depends on δ: the norm is that of T_0.

    Args:
        labels: d, the number of labels of a word.
        channels: h, the number of head variables of a word.
        rank: r, the number of columns of U and V; even.
    """

    def __init__(self, labels: int, channels: int, rank: int) -> None:
        super().__init__(labels, channels, gamma=None)
        check_rotary_rank(rank)
        self.U = _low_rank(channels, rank, labels)
        self.V = _low_rank(channels, rank, labels)

    def project(self, q: Tensor) -> tuple[Tensor, Tensor]:
        angles = self._angles(torch.arange(q.shape[1], device=q.device), q)
        dependents, heads = (_turn(_project(q, x), angles) for x in (self.U, self.V))
        return dependents.unsqueeze(2), heads.unsqueeze(2)

    def collect(self, to_dependents: Tensor, to_heads: Tensor) -> Tensor:
        x, y = to_dependents.squeeze(2), to_heads.squeeze(2)
        back = self._angles(-torch.arange(x.shape[1], device=x.device), x)
        return _collect(_turn(x, back), self.U) + _collect(_turn(y, back), self.V)

    def dense(self, offset: int) -> Tensor:
        angles = self._angles(torch.tensor([offset], device=self.U.device), self.U)
        turned = _turn(self.U.movedim(-1, 0).unsqueeze(1), angles).squeeze(1)  # (d, h, r)
        return turned.transpose(0, 1) @ self.V

    def matrices(self, longest: int) -> Matrices:
        cos, sin = self._angles(torch.arange(longest, device=self.U.device), self.U)
        return Matrices(
            self.U.unsqueeze(0), self.V.unsqueeze(0), angles=(cos.squeeze(1), sin.squeeze(1))
        )

    def squared_norm(self) -> Tensor:
        return (_gram(self.U) * _gram(self.V)).sum()

    def _angles(self, positions: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine (n, 1, r/2), angles in at least float32: bfloat16 rounds positions."""
        dtype = torch.promote_types(like.dtype, torch.float32)
        rank = self.U.shape[1]
        pairs = torch.arange(rank // 2, device=like.device, dtype=dtype)
        angles = positions.to(dtype)[:, None, None] * 10000 ** (-2 * pairs / rank)
        return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def build_word_potential(settings: PotentialSettings, labels: int, channels: int) -> WordPotential:
    """The potential that the settings describe, with d labels and h channels."""
    match settings:
        case FullSettings(gamma=gamma):
            return Full(labels, channels, gamma)
        case UVSettings(rank=rank, gamma=gamma):
            return UV(labels, channels, rank, gamma)
        case UVWSettings(rank=rank, gamma=gamma):
            return UVW(labels, channels, rank, gamma)
        case SharedUVSettings(rank=rank, gamma=gamma):
            return SharedUV(labels, channels, rank, gamma)
        case RotarySettings(rank=rank):
            return Rotary(labels, channels, rank)
    raise InputError(f"words must be settings of a potential, got {settings!r}")


def _low_rank(*shape: int) -> nn.Parameter:
    """N(0, 1/r), r the last axis but one."""
    require_whole("rank", shape[-2])
    return nn.Parameter(torch.randn(shape) / shape[-2] ** 0.5)


def _project(q: Tensor, weight: Tensor) -> Tensor:
    """(B, n, d), (…, d) -> (B, n, …): one matrix product."""
    return F.linear(q, weight.flatten(0, -2)).unflatten(-1, weight.shape[:-1])


def _collect(x: Tensor, weight: Tensor) -> Tensor:
    """(B, n, …), (…, d) -> (B, n, d): the adjoint of `_project`, one matrix product."""
    return x.flatten(2) @ weight.flatten(0, -2)


def _gram(x: Tensor) -> Tensor:
    """(…, r, d) -> (…, r, r)."""
    x = _precise(x)
    return x @ x.mT


def _precise(x: Tensor) -> Tensor:
    """In float32 at least: at the paper's sizes, sums of squares overflow in float16."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _turn(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Row vectors (…, n, h, r) times the rotation of their position."""
    cos, sin = angles
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
