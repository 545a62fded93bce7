"""Distances: which bucket a pair of words falls into, and matrices whose diagonals are buckets."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from probformer.config.factor_settings import check_gamma


@dataclass(frozen=True)
class Buckets:
    """The clipped distances f(i−j) of eq. 10.

    γ ≥ 1: each of the distances 1 … γ has a bucket per direction, and all larger distances in a
    direction share one. γ = 0: only the direction counts. γ = None: one bucket for all pairs.
    """

    gamma: int | None

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    @property
    def count(self) -> int:
        """K, the number of buckets."""
        return 1 if self.gamma is None else 2 * self.gamma + 2

    def of(self, offset: int) -> int:
        """f(i−j), eq. 10."""
        if self.gamma is None:
            return 0
        if offset < -self.gamma:
            return 0
        if offset < 0:
            return offset + self.gamma + 1
        if offset <= self.gamma:
            return offset + self.gamma
        return 2 * self.gamma + 1

    @property
    def far(self) -> list[int]:
        """The open-ended buckets, first the one with the head to the right."""
        return [0] if self.gamma is None else [0, self.count - 1]

    @property
    def near(self) -> list[int]:
        """j−i of the buckets 1 … K−2, each of them a single distance."""
        gamma = self.gamma or 0
        return [shift for shift in range(gamma, -gamma - 1, -1) if shift]


def matrix_from_band(band: Tensor) -> Tensor:
    """(…, n, 2γ+1) -> (…, n, n): column s of row i moves to column i + s − γ, the rest is zero.

    What falls off the edge is dropped. In memory the target is the source with n zeros behind
    each row, read in rows that are one shorter; so it is padding and views for every n and γ.
    """
    n, width = band.shape[-2:]
    gamma = width // 2
    padded = F.pad(band, (0, n)).flatten(-2)[..., : n * (n + width - 1)]
    return padded.unflatten(-1, (n, n + width - 1))[..., gamma : gamma + n]


def band_from_matrix(matrix: Tensor, gamma: int) -> Tensor:
    """(…, n, n) -> (…, n, 2γ+1): the inverse of `matrix_from_band`, zero beyond the edge."""
    n, width = matrix.shape[-1], 2 * gamma + 1
    padded = F.pad(F.pad(matrix, (gamma, gamma)).flatten(-2), (0, n))
    return padded.unflatten(-1, (n, n + width))[..., :width]
