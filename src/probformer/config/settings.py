"""The settings of encoders and of inference: frozen dataclasses that check their own values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from probformer.config.factor_settings import (
    ROOT_OF_PARSERS,
    ArcLabelSettings,
    GlobalSettings,
    PotentialSettings,
    RootSettings,
    UVSettings,
)
from probformer.config.reading import Settings
from probformer.errors import require, require_between, require_whole

Readout = Literal["scores", "marginals", "root"]
NormaliserName = Literal["softmax", "relu", "squares"]
HeadStructure = Literal["independent", "tree", "projective"]


@dataclass(frozen=True)
class Inference(Settings):
    """How mean field runs. Suffixes as in the paper: z for labels (ROOT's too), h for heads."""

    iterations: int = 5
    """T, the number of updates of H and Z; with a tolerance, the largest number."""
    tolerance: float | None = None
    """Stop a sentence when an iteration changes none of its marginals by more than this. By default
    all T iterations are computed."""
    asynchronous: bool = True
    """Whether Z is updated with the new H of the same iteration (section 2.3.2), or both H and Z
    with the distributions of the iteration before (section 2.2)."""
    lambda_z: float = 1.0
    """λ_Z, the message weight of labels: the messages to them are divided by it (eqs. 11, 12)."""
    lambda_h: float | None = None
    """λ_H, the message weight of heads; by default 1/d."""
    step_z: float = 1.0
    """α_Z in (0, 1], the step size of labels: Q becomes α·new + (1−α)·old (appendix B.1)."""
    step_h: float = 1.0
    """α_H in (0, 1], the step size of heads. Asynchronously, the first is always 1."""
    step_decay: bool = False
    """Multiply the step sizes by 2/(t+2), t = 0, 1, …: the Frank-Wolfe schedule."""
    damping_z: float = 0.0
    """β_Z in [0, 1), the damping of messages to labels: (1−β)·new + β·old (appendix B.2)."""
    damping_h: float = 0.0
    """β_H in [0, 1), the damping of messages to heads."""
    normaliser_z: NormaliserName | Callable[..., Any] = "softmax"
    """How scores of labels become distributions: a name in `probformer.crf.normalisers`, or a
    function with the same arguments; also a `probformer.crf.structures.Structure`."""
    normaliser_h: NormaliserName | Callable[..., Any] = "softmax"
    """How scores of heads become distributions, likewise; "softmax" if `heads` is a Structure."""
    heads: HeadStructure | tuple[HeadStructure, ...] | Callable[..., Any] = "independent"
    """How the heads of a channel depend on each other: "independent"; "tree", so that they form a
    tree under ROOT; or "projective", a tree without crossing arcs. A list has a name for each
    channel. Also a `probformer.crf.structures.Structure` of your own."""
    single_root: bool = True
    """Whether exactly one word of a tree has ROOT as its head, or one or more."""

    @property
    def has_trees(self) -> bool:
        """Whether the heads of a channel form a tree."""
        given = self.heads if isinstance(self.heads, tuple) else (self.heads,)
        return any(name in ("tree", "projective") for name in given)

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
        require(self.heads != (), "heads must have a name for each channel, got none")
        message = "normaliser_h must be 'softmax' where heads form trees"
        require(not self.has_trees or self.normaliser_h == "softmax", message)

    def steps(self, t: int) -> tuple[float, float]:
        """α_Z and α_H in iteration t = 0, 1, …

        In asynchronous inference α_H is 1 at t = 0: no message was computed from the initial Q_H.
        """
        factor = 2 / (t + 2) if self.step_decay else 1.0
        first = self.asynchronous and t == 0
        return self.step_z * factor, 1.0 if first else self.step_h * factor

    def lambda_h_for(self, labels: int) -> float:
        """λ_H for d labels."""
        return 1 / labels if self.lambda_h is None else self.lambda_h


@dataclass(frozen=True)
class EncoderSettings(Settings):
    """A probabilistic transformer."""

    kind: Literal["pt"] = "pt"
    labels: int = 384
    """d, the number of labels of a word."""
    channels: int = 16
    """h, the number of head variables of a word."""
    dropout: float = 0.0
    """The rate of dropout on the scores of labels and on the probabilities of heads."""
    initial_scores: float | None = None
    """Standard deviation of the word scores S before training. By default that of Xavier's rule: it
    is 0.014 with 10,000 words and 384 labels, so that words start nearly alike."""
    readout: Readout = "scores"
    """The input of the task's layer: each word's un-normalised scores or marginals, or, for a
    sentence, the un-normalised scores of ROOT."""
    potential: PotentialSettings = field(default_factory=UVSettings)
    """The factor between a word and its head."""
    root: RootSettings | None = None
    """The factor with ROOT; by default none, or, where heads form trees or arcs have labels, one
    with one label."""
    globals: GlobalSettings | None = None
    """The factor with global features; by default none."""
    arc_labels: ArcLabelSettings | None = None
    """The factor that gives labels to the arcs of one channel; by default none, or, for a parser,
    one for the channel of its trees."""
    inference: Inference = field(default_factory=Inference)
    """Mean-field inference."""

    @property
    def title(self) -> str:
        return "probabilistic transformer"

    @property
    def step_name(self) -> str:
        return "iteration"

    @property
    def max_words(self) -> int | None:
        """The largest number of words of a sentence; None for no limit."""
        return None

    @property
    def extra_places(self) -> int:
        """The number of positions in front of the words."""
        return 0

    @property
    def steps(self) -> int:
        """The number of iterations, as that of layers for a transformer."""
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
    def has_trees(self) -> bool:
        """Whether the heads of a channel form a tree."""
        return self.inference.has_trees

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
        heads = self.inference.heads
        if isinstance(heads, tuple):
            message = f"inference.heads must have {self.channels} names, one for each channel"
            require(len(heads) == self.channels, f"{message}, got {len(heads)}")
        if self.inference.has_trees or self.arc_labels is not None:
            self._check_arcs()
        without_root = self.readout == "root" and self.root is None
        require(not without_root, "readout 'root' needs a root: give root.labels (d_root)")

    def heads_of(self, channel: int) -> HeadStructure | Callable[..., Any] | None:
        """The structure of the heads in a channel; None for a transformer, which has none."""
        heads = self.inference.heads
        return heads[channel] if isinstance(heads, tuple) else heads

    def for_parser(self, channel: int, labels: int) -> EncoderSettings:
        """With ROOT, and with as many labels of arcs as the data has; without labels for 0."""
        arcs = self.arc_labels
        if labels:
            arcs = ArcLabelSettings(channel) if arcs is None else arcs
            message = f"encoder.arc_labels.count must be {labels}, as in the data, got {arcs.count}"
            require(arcs.count in (None, labels), message)
            arcs = replace(arcs, count=labels)
        message = "encoder.arc_labels needs data with labels of arcs (deprel)"
        require(bool(labels) or arcs is None, message)
        return replace(self, arc_labels=arcs, root=self.root or ROOT_OF_PARSERS)

    def _check_arcs(self) -> None:
        """Trees and arcs with labels have a ROOT, and no heads but words and ROOT."""
        if self.root is None:
            object.__setattr__(self, "root", ROOT_OF_PARSERS)
        mode = None if self.globals is None else self.globals.mode
        which = "heads form trees" if self.inference.has_trees else "arcs have labels"
        message = f"globals.mode must not be 'all-dep' where {which}: a global is no word"
        require(mode != "all-dep", message)
        if self.arc_labels is not None:
            channel = self.arc_labels.channel
            message = f"arc_labels.channel must be below {self.channels}, got {channel}"
            require(channel < self.channels, message)
            message = "inference.normaliser_h must be 'softmax' where arcs have labels"
            require(self.inference.normaliser_h == "softmax", message)


@dataclass(frozen=True)
class TransformerSettings(Settings):
    """A transformer, to compare probabilistic transformers with."""

    kind: Literal["transformer"] = "transformer"
    width: int = 384
    """d_model."""
    layers: int = 5
    """The number of layers."""
    heads: int = 8
    """The number of attention heads."""
    head_width: int = 64
    """d_qkv; heads × head_width need not equal width."""
    feed_forward: int = 2048
    """d_ff, the inner width of the feed-forward networks."""
    dropout: float = 0.0
    """The rate of dropout on attention weights, and after attention and feed-forward networks."""
    input_dropout: float | None = None
    """The rate of dropout on the sum of word and position vectors; by default that of `dropout`."""
    words: Literal["scaled", "xavier", "normal"] = "scaled"
    """How word vectors start, before positions of unit variance are added. "scaled": variance 1/d,
    and always multiplied by √d, as in the original Transformer. As published, without a factor:
    "normal", of unit variance, or "xavier", by Xavier's rule. With 10,000 words and width 384 the
    latter has a standard deviation of 0.014, and words that are not in training data stay at it."""
    matrices: Literal["xavier", "published"] = "xavier"
    """How matrices start: by Xavier's rule; or as published, with those of attention several times
    smaller, so that at first attention adds little, and with larger relative positions."""
    norm: Literal["post", "pre"] = "post"
    """Whether layer norms come after residual connections or before attention and feed-forward."""
    positions: Literal["learned", "sinusoidal", "none"] = "learned"
    """Absolute positions, added to word vectors."""
    max_length: int = 512
    """The number of rows of the learned position table."""
    relative: int | None = None
    """The distance at which Shaw's relative positions on the keys are clipped; None for none."""
    relative_values: bool = False
    """Whether the values have Shaw's relative positions, too."""
    universal: bool = False
    """Whether there is one layer, applied `layers` times."""
    readout: Literal["scores", "cls"] = "scores"
    """The input of the task's layer: the vector of each word, or that of CLS in front of the
    sentence."""
    tied: bool = False
    """Whether W^K = W^V and W^Q = W^O, as in a probabilistic transformer."""

    @property
    def title(self) -> str:
        return "transformer"

    @property
    def step_name(self) -> str:
        return "layer"

    @property
    def label_count(self) -> int | None:
        """None: it has no labels."""
        return None

    @property
    def has_trees(self) -> bool:
        """Whether the heads of a channel form a tree: attention does not."""
        return False

    @property
    def has_fixed_steps(self) -> bool:
        """Whether all sentences take the same number of steps."""
        return True

    @property
    def steps(self) -> int:
        """The number of layers, as that of iterations for a probabilistic transformer."""
        return self.layers

    @property
    def hidden_size(self) -> int:
        return self.width

    @property
    def channels(self) -> int:
        """The number of attention heads, as that of channels for a probabilistic transformer."""
        return self.heads

    @property
    def has_root(self) -> bool:
        """Whether it has CLS, which takes the place of ROOT."""
        return self.readout == "cls"

    @property
    def extra_places(self) -> int:
        """The number of positions in front of the words: 1 with CLS."""
        return int(self.has_root)

    @property
    def max_words(self) -> int | None:
        """The largest number of words that fits into the position table; None without a table."""
        return self.max_length - self.extra_places if self.positions == "learned" else None

    def heads_of(self, channel: int) -> None:
        """None: attention has no structure of heads."""
        return None

    def for_parser(self, channel: int, labels: int) -> TransformerSettings:
        """As it is: a parser has a layer of its own for heads and labels."""
        return self

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
    """`settings`, if they are of a probabilistic transformer; otherwise an error with `message`."""
    require(isinstance(settings, EncoderSettings), message)
    assert isinstance(settings, EncoderSettings)
    return settings
