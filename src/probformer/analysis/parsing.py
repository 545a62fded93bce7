"""Unsupervised parsing: how often the heads that a model believes in are the gold ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from probformer.analysis.attachment import (
    BASELINES,
    Accuracy,
    Floats,
    Ints,
    Score,
    baseline_hits,
    hits_of,
)
from probformer.analysis.reading import Reading, read_sentences
from probformer.analysis.trees import DECODERS, argmax_heads, decode
from probformer.data.sentence import Sentence
from probformer.errors import require, require_one_of
from probformer.runs.run_folder import Run

AVERAGE, ANY, BEST = "average", "any channel", "best"


@dataclass(frozen=True)
class Question:
    """What heads to take from a model."""

    decoder: str = "tree"
    single_root: bool = True
    iteration: int = -1
    """Counted from 1, or from the end with −1."""
    channel: int | str = AVERAGE
    """Whose heads to keep: of one, counted from 0, of the average, or of the best one."""
    every_iteration: bool = False
    """Count for all the others too."""

    def __post_init__(self) -> None:
        require_one_of("decoder", self.decoder, DECODERS)
        if isinstance(self.channel, str):
            require_one_of("channel", self.channel, (AVERAGE, BEST))


@dataclass
class Parsing:
    """What a model's heads are worth on some sentences."""

    iteration: int
    """The one that was asked for, counted from 1."""
    step: str
    """What an iteration is called: of a transformer, a layer."""
    asked: int | str
    """The channel that was asked for, or the average, or the best."""
    channels: int
    iterations: dict[int, Score]
    """Those that were counted."""
    baselines: Score = field(default_factory=Score)
    found: defaultdict[str, list[Ints]] = field(default_factory=lambda: defaultdict(list))
    """The heads of each sentence in each way, in the iteration that was asked for."""

    @property
    def chosen(self) -> int | str:
        """The number of the channel that was asked for, or the average."""
        return self.best_channel() if self.asked == BEST else self.asked

    @property
    def heads(self) -> list[Ints]:
        """Of each sentence, in the channel that was asked for."""
        return self.found[_way(self.chosen)]

    def accuracy(
        self, way: str, iteration: int | None = None, group: int | None = None
    ) -> Accuracy:
        """Of a way to find heads, on all sentences or on those of a group."""
        score = self.iterations[iteration or self.iteration]
        return (self.baselines if way in BASELINES else score).accuracy(way, group)

    def best_channel(self, iteration: int | None = None) -> int:
        """The channel with the highest UUAS; of equal ones the first."""
        return max(
            range(self.channels), key=lambda c: self.accuracy(channel(c), iteration).uuas or 0
        )


def channel(number: int) -> str:
    return f"channel {number}"


def _way(chosen: int | str) -> str:
    return channel(chosen) if isinstance(chosen, int) else chosen


def parse_sentences(run: Run, sentences: Sequence[Sentence], question: Question) -> Parsing:
    """Parse with a model and compare with gold heads, which all sentences need to have."""
    require(len(sentences) > 0, "there must be sentences to parse, got none")
    for sentence in sentences:
        message = f"{sentence.place()}: has no heads, expected gold ones to compare with"
        require(sentence.heads is not None, message)
    chance = np.random.default_rng(0)
    parsing = None
    readings = read_sentences(run, [sentence.words for sentence in sentences])
    for sentence, reading in zip(sentences, readings, strict=True):
        parsing = parsing or _nothing_yet(reading, question)
        gold = np.array(sentence.heads)
        parsing.baselines.add(sentence, baseline_hits(gold, chance))
        for iteration, score in parsing.iterations.items():
            found, hits = _by_the_model(reading, iteration, question, gold)
            score.add(sentence, hits)
            if iteration == parsing.iteration:
                for way, heads in found.items():
                    parsing.found[way].append(heads)
    assert parsing is not None
    return parsing


def _nothing_yet(reading: Reading, question: Question) -> Parsing:
    iteration = reading.iteration(question.iteration) + 1
    if isinstance(question.channel, int):
        reading.channel(question.channel)
    every = range(1, len(reading.heads) + 1)
    asked = every if question.every_iteration else [iteration]
    scores = {t: Score() for t in asked}
    return Parsing(iteration, reading.step, question.channel, reading.heads.shape[1], scores)


def _by_the_model(
    reading: Reading, iteration: int, question: Question, gold: Ints
) -> tuple[dict[str, Ints], dict[str, Floats]]:
    """The heads that each way finds, and what it hits."""
    average, *channels = log_probabilities(reading, iteration)
    beliefs = {AVERAGE: average} | {channel(c): belief for c, belief in enumerate(channels)}
    found = {
        way: decode(*belief, question.decoder, question.single_root)
        for way, belief in beliefs.items()
    }
    hits = {way: hits_of(gold, heads) for way, heads in found.items()}
    best_alone = np.stack([argmax_heads(*belief) for belief in channels])
    hits[ANY] = hits_of(gold, best_alone).max(1)
    return found, hits


def log_probabilities(reading: Reading, iteration: int) -> list[tuple[Floats, Floats | None]]:
    """Of heads, (n, n), and of the root, (n,): on average over channels, then in each of them."""

    def with_average(p: Floats) -> Floats:
        return np.log(np.concatenate([p.mean(0, keepdims=True), p]))

    heads, root = reading.over_others(iteration - 1)
    with np.errstate(divide="ignore"):
        if root is None:
            return [(scores, None) for scores in with_average(heads)]
        return list(zip(with_average(heads), with_average(root), strict=True))
