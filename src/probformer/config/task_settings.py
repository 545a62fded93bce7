"""The settings of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probformer.config.reading import Settings
from probformer.config.settings import HeadStructure
from probformer.errors import require, require_between, require_whole


@dataclass(frozen=True)
class MaskedLMSettings(Settings):
    """Predict masked words from the others."""

    kind: Literal["mlm"] = "mlm"
    rate: float = 0.3
    """The fraction of known words that are masked."""
    tied: bool | None = None
    """Whether words are predicted by the encoder's own embeddings. By default, as published:
    transformers do, probabilistic transformers have a layer of their own."""

    def check(self) -> None:
        require_between("rate", self.rate, 0, 1, low_open=True)


@dataclass(frozen=True)
class TaggingSettings(Settings):
    """Predict one column of the data for each word."""

    kind: Literal["tagging"] = "tagging"
    column: str = "upos"
    """The column of the data that has the tags."""


@dataclass(frozen=True)
class NERSettings(Settings):
    """Predict named entities, annotated in IOB1, IOB2 or BIOES."""

    kind: Literal["ner"] = "ner"
    column: str = "entity"
    """The column of the data that has the entities' tags."""
    metric: Literal["f1", "strict f1", "voted f1"] = "f1"
    """The main metric, by which the best epoch is chosen. The metrics differ in how spans are taken
    from ill-formed sequences of tags: as conlleval does, not at all, or as in the paper."""


@dataclass(frozen=True)
class ClassificationSettings(Settings):
    """Predict the label of a sentence."""

    kind: Literal["classification"] = "classification"


@dataclass(frozen=True)
class CogsSettings(Settings):
    """Predict five tags for each word, from which the logical form of a sentence is rebuilt."""

    kind: Literal["cogs"] = "cogs"
    parent: Literal["relative", "absolute", "attention", "relative-attention"] = "relative"
    """The classes of a word's parent: distances, positions, or the words of the sentence, scored by
    attention, or by attention and distance."""
    none_as_previous: bool = False
    """Whether "no parent" and "the previous word is the parent" are one class, as in the authors'
    code."""
    by_pattern: bool = False
    """Whether the five tags of a word are chosen jointly, among the combinations of the training
    data: a word with a role has a parent, a name has no article. By default, as published, each tag
    is chosen independently."""

    def check(self) -> None:
        message = f"none_as_previous needs parent 'relative', got {self.parent!r}"
        require(self.parent == "relative" or not self.none_as_previous, message)
        message = "by_pattern does not go with none_as_previous: it needs a class for no parent"
        require(not (self.by_pattern and self.none_as_previous), message)

    @property
    def points(self) -> bool:
        """Whether the classes of parents are the words of the sentence, not a fixed set."""
        return self.parent in ("attention", "relative-attention")


@dataclass(frozen=True)
class ParsingSettings(Settings):
    """Predict a dependency tree, with labels of arcs where the data has them."""

    kind: Literal["parsing"] = "parsing"
    channel: int = 0
    """The channel whose heads are those of the tree, from 0; transformers have a layer of their
    own for heads and labels."""
    tags: tuple[str, ...] = ()
    """Columns of the data that are predicted as well, such as ["upos", "xpos"]."""
    heads: HeadStructure | None = None
    """How the heads of a sentence depend on each other in the loss and in probabilities. By default
    as in `encoder.inference.heads`; for transformers "tree"."""
    single_root: bool = True
    """Whether exactly one word has ROOT as its head, or one or more."""
    decoder: Literal["tree", "mbr"] = "tree"
    """The predicted tree: the one with the highest score, or the one with the highest expected
    number of right heads (minimum Bayes risk)."""

    def check(self) -> None:
        require_whole("channel", self.channel, low=0)
        message = f"tags must name columns with tags, once each, got {list(self.tags)}"
        right = all(isinstance(name, str) and name not in _NO_TAGS for name in self.tags)
        require(right and len({*self.tags}) == len(self.tags), message)


_NO_TAGS = ("", "deprel")

TaskSettings = (
    MaskedLMSettings
    | TaggingSettings
    | NERSettings
    | ClassificationSettings
    | CogsSettings
    | ParsingSettings
)
