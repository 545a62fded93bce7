"""The settings of the model: frozen dataclasses that check their own values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from probformer.config.reading import Settings
from probformer.errors import require, require_between, require_whole

GlobalMode = Literal["all-dep", "dep-split", "single-split"]
Readout = Literal["scores", "marginals", "root"]
NormaliserName = Literal["softmax", "relu", "squares"]
HeadStructure = Literal["independent"]


@dataclass(frozen=True)
class Inference(Settings):
    """How mean field runs. Subscripts as in the paper: z for labels and ROOT, h for heads."""

    iterations: int = 5
    """T: how many times H and Z are updated; with a tolerance, at most so many times."""
    tolerance: float | None = None
    """Stop a sentence once none of its marginals moves by more than this."""
    asynchronous: bool = True
    """Z hears the new H of the same iteration (default), or everything hears the old values."""
    lambda_z: float = 1.0
    lambda_h: float | None = None
    """λ, the message weights (eqs. 11, 12); λ_H is 1/d unless given."""
    step_z: float = 1.0
    step_h: float = 1.0
    """α in (0, 1]: how far a distribution moves towards its new value (appendix B.1)."""
    step_decay: bool = False
    """Multiply the step sizes by 2/(t+2), t = 0, 1, …: the Frank-Wolfe schedule."""
    damping_z: float = 0.0
    damping_h: float = 0.0
    """β in [0, 1): how much of the old message stays (appendix B.2)."""
    normaliser_z: NormaliserName | Callable[..., Any] = "softmax"
    normaliser_h: NormaliserName | Callable[..., Any] = "softmax"
    """One of `probformer.crf.normalisers` by name, or a function of yours like them."""
    heads: HeadStructure | Callable[..., Any] = "independent"
    """How the heads of a channel depend on each other; or a `crf.structures.Structure` of yours."""

    def check(self) -> None:
        require_whole("iterations", self.iterations)
        if self.tolerance is not None:
            require_between("tolerance", self.tolerance, 0, low_open=True)
        require_between("lambda_z", self.lambda_z, 0, low_open=True)
        if self.lambda_h is not None:
            require_between("lambda_h", self.lambda_h, 0, low_open=True)
        require_between("step_z", self.step_z, 0, 1, low_open=True)
        require_between("step_h", self.step_h, 0, 1, low_open=True)
        require_between("damping_z", self.damping_z, 0, 1, high_open=True)
        require_between("damping_h", self.damping_h, 0, 1, high_open=True)

    def steps(self, t: int) -> tuple[float, float]:
        """α_Z and α_H in iteration t = 0, 1, …

        Asynchronously the first H is taken whole: what it would mix with, nobody has read.
        """
        factor = 2 / (t + 2) if self.step_decay else 1.0
        first = self.asynchronous and t == 0
        return self.step_z * factor, 1.0 if first else self.step_h * factor

    def lambda_h_for(self, labels: int) -> float:
        return 1 / labels if self.lambda_h is None else self.lambda_h


def check_gamma(gamma: int | None) -> None:
    if gamma is not None:
        require_whole("gamma", gamma, low=0)


@dataclass(frozen=True)
class FullSettings(Settings):
    """T[k]^c, one d × d matrix for every distance bucket and channel."""

    kind: Literal["full"] = "full"
    gamma: int | None = 3

    def check(self) -> None:
        check_gamma(self.gamma)


@dataclass(frozen=True)
class _LowRankSettings(Settings):
    rank: int = 64
    gamma: int | None = 3

    def check(self) -> None:
        require_whole("rank", self.rank)
        check_gamma(self.gamma)


@dataclass(frozen=True)
class UVSettings(_LowRankSettings):
    """T[k]^c = U Vᵀ (eq. 14)."""

    kind: Literal["uv"] = "uv"


@dataclass(frozen=True)
class UVWSettings(_LowRankSettings):
    """T[k]^c = U diag(W^c) Vᵀ, U and V shared by the channels (eq. 13)."""

    kind: Literal["uvw"] = "uvw"


@dataclass(frozen=True)
class SharedUVSettings(_LowRankSettings):
    """T[k]^c = U^c diag(D[k]^c) (V^c)ᵀ, U and V shared by the distances."""

    kind: Literal["shared-uv"] = "shared-uv"


@dataclass(frozen=True)
class RotarySettings(Settings):
    """T_δ^c = U^c R(δ) (V^c)ᵀ with rotations R: every distance, nothing clipped."""

    kind: Literal["rotary"] = "rotary"
    rank: int = 64

    def check(self) -> None:
        check_rotary_rank(self.rank)


def check_rotary_rank(rank: int) -> None:
    require_whole("rank", rank)
    require(rank % 2 == 0, f"rank must be even for a rotary potential, got {rank}")


PotentialSettings = FullSettings | UVSettings | UVWSettings | SharedUVSettings | RotarySettings


@dataclass(frozen=True)
class RootSettings(Settings):
    labels: int
    """d_root, the number of labels of ROOT."""

    def check(self) -> None:
        require_whole("labels", self.labels)


@dataclass(frozen=True)
class GlobalSettings(Settings):
    mode: GlobalMode = "single-split"
    count: int = 64
    """m, the number of global features."""
    features: bool = False
    """All-dep only: B = P(F) T″ᵀ, feature variables with labels of their own."""

    def check(self) -> None:
        require_whole("count", self.count)
        check_features(self.mode, self.features)


def check_features(mode: str, features: bool) -> None:
    message = f"features goes with mode 'all-dep' alone, got mode {mode!r}"
    require(not features or mode == "all-dep", message)


@dataclass(frozen=True)
class EncoderSettings(Settings):
    """A probabilistic transformer."""

    kind: Literal["pt"] = "pt"
    labels: int = 384
    """d, the number of labels of a word."""
    channels: int = 16
    """h, the number of head variables of a word."""
    dropout: float = 0.0
    initial_scores: float | None = None
    """Standard deviation of the word scores S before training. If it is not given that of Xavier:
    with many words so small that a model starts all but blind to them."""
    readout: Readout = "scores"
    """What stands for a word (or, with root, for the sentence) in what comes after."""
    potential: PotentialSettings = field(default_factory=UVSettings)
    root: RootSettings | None = None
    globals: GlobalSettings | None = None
    inference: Inference = field(default_factory=Inference)

    @property
    def title(self) -> str:
        return "probabilistic transformer"

    @property
    def step_name(self) -> str:
        return "iteration"

    @property
    def max_words(self) -> int | None:
        """The longest sentence that it takes: any."""
        return None

    @property
    def extra_places(self) -> int:
        """Places in front of a sentence, beside its words."""
        return 0

    @property
    def steps(self) -> int:
        """Iterations, where a transformer has layers."""
        return self.inference.iterations

    @property
    def hidden_size(self) -> int:
        return self.labels

    @property
    def label_count(self) -> int | None:
        return self.labels

    @property
    def has_root(self) -> bool:
        return self.root is not None

    @property
    def has_fixed_steps(self) -> bool:
        """Whether all sentences take the same number of steps."""
        return self.inference.tolerance is None

    def check(self) -> None:
        require_whole("labels", self.labels)
        require_whole("channels", self.channels)
        require_between("dropout", self.dropout, 0, 1, high_open=True)
        if self.initial_scores is not None:
            require_between("initial_scores", self.initial_scores, 0, low_open=True)
        asked = self.readout == "root" and self.root is None
        require(not asked, "readout 'root' needs a root: give root.labels (d_root)")


@dataclass(frozen=True)
class TransformerSettings(Settings):
    """The transformers that a probabilistic one is compared with."""

    kind: Literal["transformer"] = "transformer"
    width: int = 384
    """d_model."""
    layers: int = 5
    heads: int = 8
    head_width: int = 64
    """d_qkv; heads × head_width need not equal width."""
    feed_forward: int = 2048
    dropout: float = 0.0
    input_dropout: float | None = None
    """On words and positions; as `dropout` if it is not given."""
    words: Literal["scaled", "xavier", "normal"] = "scaled"
    """How words come in: of unit variance, as in the original Transformer, which scales what it
    learns by √d; or as they are learned, from Xavier's or from unit variance, as published. From
    Xavier's they start all but invisible beside positions; those that training never sees stay
    so."""
    matrices: Literal["xavier", "published"] = "xavier"
    """How matrices start: by Xavier's rule; or as published, those of attention several times
    smaller, so that at first a word hears little of the others, and relative positions larger."""
    norm: Literal["post", "pre"] = "post"
    positions: Literal["learned", "sinusoidal", "none"] = "learned"
    max_length: int = 512
    """Rows of the learned position table."""
    relative: int | None = None
    """Shaw's relative positions on the keys, clipped at this distance."""
    relative_values: bool = False
    """Shaw's relative positions on the values too."""
    universal: bool = False
    """One layer, applied `layers` times."""
    readout: Literal["scores", "cls"] = "scores"
    """What comes after reads the vectors of words, or one put in front of the sentence."""
    tied: bool = False
    """W^K = W^V and W^Q = W^O, as in a probabilistic transformer."""

    @property
    def title(self) -> str:
        return "transformer"

    @property
    def step_name(self) -> str:
        return "layer"

    @property
    def label_count(self) -> int | None:
        """It has no labels."""
        return None

    @property
    def has_fixed_steps(self) -> bool:
        """Whether all sentences take the same number of steps."""
        return True

    @property
    def steps(self) -> int:
        """Layers, where a probabilistic transformer has iterations."""
        return self.layers

    @property
    def hidden_size(self) -> int:
        return self.width

    @property
    def channels(self) -> int:
        """Attention heads, which stand beside the channels of a probabilistic transformer."""
        return self.heads

    @property
    def has_root(self) -> bool:
        """CLS is to a transformer what ROOT is to a probabilistic one."""
        return self.readout == "cls"

    @property
    def extra_places(self) -> int:
        """Places in front of a sentence, beside its words: that of CLS."""
        return int(self.has_root)

    @property
    def max_words(self) -> int | None:
        """The longest sentence that fits into the table of positions, if there is one."""
        return self.max_length - self.extra_places if self.positions == "learned" else None

    @property
    def rate_of_input(self) -> float:
        return self.dropout if self.input_dropout is None else self.input_dropout

    def check(self) -> None:
        for name in ("width", "layers", "heads", "head_width", "feed_forward", "max_length"):
            require_whole(name, getattr(self, name))
        require_between("dropout", self.dropout, 0, 1, high_open=True)
        require_between("input_dropout", self.rate_of_input, 0, 1, high_open=True)
        if self.relative is not None:
            require_whole("relative", self.relative)
        message = "relative_values needs relative, the distance at which positions are clipped"
        require(self.relative is not None or not self.relative_values, message)


def pt_settings(settings: EncoderSettings | TransformerSettings, message: str) -> EncoderSettings:
    """Those of a probabilistic transformer; others are refused with the message."""
    require(isinstance(settings, EncoderSettings), message)
    assert isinstance(settings, EncoderSettings)
    return settings
