"""The settings of factors: between words, with ROOT, with global features, and labels of arcs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probformer.config.reading import Settings
from probformer.errors import require, require_between, require_whole

GlobalMode = Literal["all-dep", "dep-split", "single-split"]


def check_gamma(gamma: int | None) -> None:
    if gamma is not None:
        require_whole("gamma", gamma, low=0)


@dataclass(frozen=True)
class FullSettings(Settings):
    """T[k]^c, one d × d matrix for every distance bucket and channel."""

    kind: Literal["full"] = "full"
    gamma: int | None = 3
    """γ, the largest distance that has a bucket of its own (eq. 10); None for one bucket in all."""

    def check(self) -> None:
        check_gamma(self.gamma)


@dataclass(frozen=True)
class _LowRankSettings(Settings):
    rank: int = 64
    """r, the number of columns of U and V."""
    gamma: int | None = 3
    """γ, the largest distance that has a bucket of its own (eq. 10); None for one bucket in all."""

    def check(self) -> None:
        require_whole("rank", self.rank)
        check_gamma(self.gamma)


@dataclass(frozen=True)
class UVSettings(_LowRankSettings):
    """T[k]^c = U[k]^c (V[k]^c)ᵀ (eq. 14)."""

    kind: Literal["uv"] = "uv"


@dataclass(frozen=True)
class UVWSettings(_LowRankSettings):
    """T[k]^c = U[k] diag(W[k]^c) V[k]ᵀ, with U and V shared by the channels (eq. 13)."""

    kind: Literal["uvw"] = "uvw"


@dataclass(frozen=True)
class SharedUVSettings(_LowRankSettings):
    """T[k]^c = U^c diag(D[k]^c) (V^c)ᵀ, with U and V shared by the distance buckets."""

    kind: Literal["shared-uv"] = "shared-uv"


@dataclass(frozen=True)
class RotarySettings(Settings):
    """T_δ^c = U^c R(δ) (V^c)ᵀ with rotations R by the distance δ, which is not clipped."""

    kind: Literal["rotary"] = "rotary"
    rank: int = 64
    """r, the number of columns of U and V; even."""

    def check(self) -> None:
        check_rotary_rank(self.rank)


def check_rotary_rank(rank: int) -> None:
    require_whole("rank", rank)
    require(rank % 2 == 0, f"rank must be even for a rotary potential, got {rank}")


PotentialSettings = FullSettings | UVSettings | UVWSettings | SharedUVSettings | RotarySettings


@dataclass(frozen=True)
class RootSettings(Settings):
    """ROOT, which may head any word and has a label of its own (section 2.3.5)."""

    labels: int
    """d_root, the number of labels of ROOT."""
    initial_scores: float = 1.0
    """Standard deviation of T′ before training."""

    def check(self) -> None:
        require_whole("labels", self.labels)
        require_between("initial_scores", self.initial_scores, 0)


ROOT_OF_PARSERS = RootSettings(labels=1, initial_scores=0.1)
"""Where heads form trees or arcs have labels, and no ROOT is given. Scores of heads are multiplied
by 1/λ_H = d: with the published deviation of 1, all words start with the same few labels, and a
parser takes several epochs to leave that state."""


@dataclass(frozen=True)
class GlobalSettings(Settings):
    """Global features, which any word may attach to (appendix B.3)."""

    mode: GlobalMode = "single-split"
    """Where features are chosen: as values of each H ("all-dep"), by a variable G beside each H
    ("dep-split"), or by one G per word ("single-split")."""
    count: int = 64
    """m, the number of global features."""
    features: bool = False
    """Whether B = P(F) T″ᵀ, where P(F) is a distribution over labels for each feature; needs mode
    "all-dep"."""

    def check(self) -> None:
        require_whole("count", self.count)
        check_features(self.mode, self.features)


def check_features(mode: str, features: bool) -> None:
    message = f"features needs mode 'all-dep', got mode {mode!r}"
    require(not features or mode == "all-dep", message)


@dataclass(frozen=True)
class ArcLabelSettings(Settings):
    """Labels of the arcs in one channel: head and label of a word are one variable."""

    channel: int = 0
    """The channel whose arcs have labels, from 0."""
    count: int | None = None
    """m, the number of labels; by default as many as the data of a parser has."""
    rank: int = 8
    """r, the number of columns of each label's U and V."""

    def check(self) -> None:
        require_whole("channel", self.channel, low=0)
        if self.count is not None:
            require_whole("count", self.count)
        require_whole("rank", self.rank)
