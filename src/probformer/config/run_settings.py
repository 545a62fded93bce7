"""The settings of a run: task, data, vocabulary, encoder and training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from probformer.config.reading import Settings
from probformer.config.settings import EncoderSettings, TransformerSettings
from probformer.errors import require, require_between, require_whole

Precision = Literal["fp32", "tf32", "bf16"]


@dataclass(frozen=True)
class MaskedLMSettings(Settings):
    """Predict masked words from the others."""

    kind: Literal["mlm"] = "mlm"
    rate: float = 0.3
    """How many of the known words are masked."""
    tied: bool | None = None
    """Words are guessed by their own embeddings; if not given, as published: transformers do."""

    def check(self) -> None:
        require_between("rate", self.rate, 0, 1, low_open=True)


@dataclass(frozen=True)
class TaggingSettings(Settings):
    """Predict one column of the data for each word."""

    kind: Literal["tagging"] = "tagging"
    column: str = "upos"


@dataclass(frozen=True)
class NERSettings(Settings):
    """Predict the entities that one column marks, in IOB1, IOB2 or BIOES."""

    kind: Literal["ner"] = "ner"
    column: str = "entity"
    metric: Literal["f1", "strict f1", "voted f1"] = "f1"
    """What a run is judged by: they differ in how tags that do not fit together are read."""


@dataclass(frozen=True)
class ClassificationSettings(Settings):
    """Predict the label of a sentence."""

    kind: Literal["classification"] = "classification"


@dataclass(frozen=True)
class CogsSettings(Settings):
    """Predict five tags a word, from which the logical form of a sentence is rebuilt."""

    kind: Literal["cogs"] = "cogs"
    parent: Literal["relative", "absolute", "attention", "relative-attention"] = "relative"
    """How a word's parent is chosen: by its distance, by its place, by pointing at it, or by
    pointing at it with an eye to its distance."""
    none_as_previous: bool = False
    """One class for "no parent" and "the word before is the parent", as in the authors' code."""
    by_pattern: bool = False
    """A word gets the five tags that are likeliest together, among the patterns that training has:
    a word with a role has a parent, a name has no article. If not, as published, each is chosen for
    itself."""

    def check(self) -> None:
        message = f"none_as_previous goes with parent 'relative' alone, got {self.parent!r}"
        require(self.parent == "relative" or not self.none_as_previous, message)
        message = "by_pattern does not go with none_as_previous, where a parent may be none"
        require(not (self.by_pattern and self.none_as_previous), message)

    @property
    def points(self) -> bool:
        """Whether any word of the sentence may be the parent, not only what training had."""
        return self.parent in ("attention", "relative-attention")


TaskSettings = (
    MaskedLMSettings | TaggingSettings | NERSettings | ClassificationSettings | CogsSettings
)


@dataclass(frozen=True)
class BuiltinData(Settings):
    """Sentences of the built-in grammar."""

    kind: Literal["builtin"] = "builtin"
    corpus: Literal["sentences", "cogs"] = "sentences"
    """ "sentences" have tags, heads, entities and labels; "cogs" has logical forms and a split
    "gen"."""
    size: int = 4000
    """Sentences in the training split; dev and test have an eighth of it each."""
    seed: int = 0
    """The seed of the random grammar: another seed gives other sentences."""

    def check(self) -> None:
        require_whole("size", self.size)


@dataclass(frozen=True)
class FileData(Settings):
    """Files of your own, or of a known corpus.

    A split is a file, or patterns of files separated by spaces: "0[0-9]/*.mrg 10/*.mrg".
    """

    train: str
    """The files to learn from."""
    dev: str
    """The files on which epochs are compared."""
    test: str
    """The files of the final figures."""
    kind: Literal["files"] = "files"
    gen: str | None = None
    """A further test split, of generalisation to what training does not have."""
    vocabulary: str | None = None
    """The files in which words are counted; the training split by default."""
    folder: str = "."
    """The folder of the files, relative to the folder given with --data."""
    format: str = "text"
    """A registered format: "text", "tsv", "columns", "conllu", "mrg", or your own. It is
    checked when data is read: a trained model can be used where its format is not registered."""
    columns: str = "word tag"
    """For "columns" and "tsv": the names of the fields, in order; "_" for a field to ignore."""
    prepare: str | None = None
    """For "mrg": "bllip" keeps words only, in lower case, with N for digits."""
    first: int | None = None
    """The maximum number of sentences in the training split."""
    by_document: bool = False
    """All splits are in one file: of every ten documents, the first eight are train, the ninth dev
    and the tenth test."""
    skip_bad_lines: bool = False
    """Leave out sentences with bad lines, and count and name them, instead of stopping."""

    def check(self) -> None:
        if self.first is not None:
            require_whole("first", self.first)
        same = self.train == self.dev == self.test
        require(same or not self.by_document, "by_document needs one file as train, dev and test")
        require(self.gen is None or not self.by_document, "by_document does not go with gen")
        for name in ("train", "dev", "test"):
            require(bool(getattr(self, name).strip()), f"{name} must name a file, got nothing")


DataSettings = BuiltinData | FileData


@dataclass(frozen=True)
class VocabularySettings(Settings):
    """The words, or pieces of words, that a model knows."""

    kind: Literal["words", "subwords"] = "words"
    """One entry a word, or the pieces of a byte-level BPE."""
    min_frequency: int = 1
    """Words that are rarer than this in the training split are unknown; for "words"."""
    size: int | None = None
    """The maximum number of entries, <unk> and <mask> included; needed for "subwords"."""
    lower: bool = False
    """Turn all words into lower case."""
    word_dropout: float = 0.0
    """α: each time a word with f occurrences comes up in training, it is replaced by <unk> with
    probability α / (α + f), so that the model learns to handle unknown words."""

    @classmethod
    def current_name(cls, key: str) -> str:
        return "word_dropout" if key == "forget" else key

    def check(self) -> None:
        require_whole("min_frequency", self.min_frequency)
        require_between("word_dropout", self.word_dropout, 0)
        if self.size is not None:
            require_whole("size", self.size, low=3)
        if self.kind == "subwords":
            require(self.size is not None, "size is needed for a vocabulary of kind 'subwords'")
            require_whole("size", self.size, low=258)  # 256 bytes, <unk> and <mask>
            require(self.min_frequency == 1, "min_frequency is for a vocabulary of kind 'words'")


@dataclass(frozen=True)
class PlateauSchedule(Settings):
    """Multiply the learning rate by `factor` after more than `patience` epochs in a row that do
    not improve the dev score (of two equal scores, the one with the lower loss is better); stop
    when it falls below `minimum`."""

    kind: Literal["plateau"] = "plateau"
    factor: float = 0.5
    patience: int = 5
    minimum: float = 1e-7

    def check(self) -> None:
        require_between("factor", self.factor, 0, 1, low_open=True, high_open=True)
        require_whole("patience", self.patience, low=0)
        require_between("minimum", self.minimum, 0)


@dataclass(frozen=True)
class CosineSchedule(Settings):
    """Up from zero over the first `warm_up` part of all steps, then down to zero in a cosine."""

    kind: Literal["cosine"] = "cosine"
    warm_up: float = 0.05

    def check(self) -> None:
        require_between("warm_up", self.warm_up, 0, 1, high_open=True)


@dataclass(frozen=True)
class GoldHeads(Settings):
    """Learn from gold heads too: −log of their probability in one channel."""

    channel: int = 0
    weight: float = 1.0

    def check(self) -> None:
        require_whole("channel", self.channel, low=0)
        require_between("weight", self.weight, 0, low_open=True)


_LARGEST = 1e30
"""What single precision can still multiply with."""


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """How a model is trained: the published protocol by default."""

    epochs: int = 100
    batch: int = 64
    """Sentences in an update."""
    chunk: int | None = None
    """Sentences whose loss is averaged; the gradients of a batch's chunks add up."""
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    """Coupled with Adam, as in the paper."""
    clip: float = 5.0
    """The largest norm of a gradient."""
    average: float = 0.0
    """Judge and keep an exponential average of the weights, of which each update leaves this part,
    such as 0.999; the weights themselves with 0."""
    penalty: float = 0.0
    """Times ‖T‖_F, not squared, in each chunk."""
    schedule: PlateauSchedule | CosineSchedule = field(default_factory=PlateauSchedule)
    precision: Precision = "fp32"
    """Of matrix products in training, and where epochs are judged; final figures are always those
    of float32. tf32 is float32 on the tensor cores of a GPU."""
    by_length: bool = False
    """Batches of sentences of similar length: faster, but not the published protocol."""
    gold_heads: GoldHeads | None = None
    checkpoint_minutes: float = 5.0
    """A checkpoint at the end of each epoch, and within one after so many minutes. Epochs that are
    not much longer than a checkpoint takes have one every few epochs."""
    tensorboard: bool = False
    """Write curves for TensorBoard into the run folder too; needs the package tensorboard."""

    def check(self) -> None:
        require_whole("epochs", self.epochs)
        require_whole("batch", self.batch)
        if self.chunk is not None:
            require_whole("chunk", self.chunk)
        require_between("learning_rate", self.learning_rate, 0, _LARGEST, low_open=True)
        require_between("weight_decay", self.weight_decay, 0, _LARGEST)
        require_between("clip", self.clip, 0, low_open=True)
        require_between("average", self.average, 0, 1, high_open=True)
        require_between("penalty", self.penalty, 0)
        require_between("checkpoint_minutes", self.checkpoint_minutes, 0)


@dataclass(frozen=True)
class RunSettings(Settings):
    """All that makes a run."""

    task: TaskSettings
    data: DataSettings
    encoder: EncoderSettings | TransformerSettings
    name: str = ""
    """What the config is called."""
    vocabulary: VocabularySettings = field(default_factory=VocabularySettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    seed: int = 0

    def check(self) -> None:
        require_whole("seed", self.seed, low=0)
        encoder = self.encoder
        is_pt = isinstance(encoder, EncoderSettings)
        reads_sentence = encoder.readout in ("root", "cls")
        if isinstance(self.task, ClassificationSettings):
            message = "encoder.readout must be 'root' (pt) or 'cls' (transformer) to classify"
            require(reads_sentence, f"{message}, got {encoder.readout!r}")
        else:
            message = f"encoder.readout must be of words for {self.task.kind!r}"
            require(not reads_sentence, f"{message}, got {encoder.readout!r}")
        schedule = self.training.schedule
        if isinstance(schedule, PlateauSchedule):
            message = "training.learning_rate must be above training.schedule.minimum"
            require(self.training.learning_rate > schedule.minimum, message)
        message = "training.penalty is for probabilistic transformers, which have a T"
        require(is_pt or not self.training.penalty, message)
        if (heads := self.training.gold_heads) is not None:
            count = encoder.channels if isinstance(encoder, EncoderSettings) else encoder.heads
            message = f"training.gold_heads.channel must be below {count}, got {heads.channel}"
            require(heads.channel < count, message)
