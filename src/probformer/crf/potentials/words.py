"""The potentials between a word and its head: T and its low-rank forms.

Parameters have the labels on the last axis, so that a projection is one matrix product with the
parameter as it lies in memory: U[k, c, l, a] is the paper's U[k]_{a,c,l}.
"""

from __future__ import annotations

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
from probformer.crf.potentials.word_potential import Matrices, WordPotential
from probformer.errors import InputError, require_whole


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
