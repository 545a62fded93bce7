"""Unsupervised parsing: how often the heads that a model believes in are the gold ones."""

from __future__ import annotations

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
from probformer.data.sentence import Sentence
from probformer.errors import require, require_one_of
from probformer.training.run_folder import Run
from probformer.trees import DECODERS, argmax_heads, decode

AVERAGE, ANY = "average", "any channel"


@dataclass(frozen=True)
class Question:
    """What heads to take from a model."""

    decoder: str = "tree"
    single_root: bool = True
    iteration: int = -1
    """Counted from 1, or from the end with −1."""
    channel: int | None = None
    """Counted from 0; none: the average of all."""
    every_iteration: bool = False
    """Count for all the others too."""

    def __post_init__(self) -> None:
        require_one_of("decoder", self.decoder, DECODERS)


@dataclass
class Parsing:
    """What a model's heads are worth on some sentences."""

    iteration: int
    """The one that was asked for, counted from 1."""
    channels: int
    iterations: dict[int, Score]
    """Those that were counted."""
    baselines: Score = field(default_factory=Score)
    heads: list[Ints] = field(default_factory=list)
    """Of each sentence, by the average or the channel that was asked for."""

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


def parse_sentences(run: Run, sentences: Sequence[Sentence], question: Question) -> Parsing:
    """Parse with a model and compare with gold heads, which all sentences need to have."""
    require(len(sentences) > 0, "there must be sentences to parse, got none")
    for sentence in sentences:
        require(sentence.heads is not None, f"{sentence.place()}: has no heads")
    chance = np.random.default_rng(0)
    parsing = None
    readings = read_sentences(run, [sentence.words for sentence in sentences])
    for sentence, reading in zip(sentences, readings, strict=True):
        parsing = parsing or _nothing_yet(reading, question)
        gold = np.array(sentence.heads)
        parsing.baselines.add(sentence, baseline_hits(gold, chance))
        for iteration, score in parsing.iterations.items():
            heads, hits = _by_the_model(reading, iteration, question, gold)
            score.add(sentence, hits)
            if iteration == parsing.iteration:
                parsing.heads.append(heads)
    assert parsing is not None
    return parsing


def _nothing_yet(reading: Reading, question: Question) -> Parsing:
    iteration = reading.iteration(question.iteration) + 1
    if question.channel is not None:
        reading.channel(question.channel)
    every = range(1, len(reading.heads) + 1)
    asked = every if question.every_iteration else [iteration]
    return Parsing(iteration, reading.heads.shape[1], {t: Score() for t in asked})


def _by_the_model(
    reading: Reading, iteration: int, question: Question, gold: Ints
) -> tuple[Ints, dict[str, Floats]]:
    """The heads that were asked for, and what each way hits."""
    average, *channels = log_probabilities(reading, iteration)
    beliefs = {AVERAGE: average} | {channel(c): belief for c, belief in enumerate(channels)}
    found = {
        way: decode(*belief, question.decoder, question.single_root)
        for way, belief in beliefs.items()
    }
    hits = {way: hits_of(gold, heads) for way, heads in found.items()}
    best_alone = np.stack([argmax_heads(*belief) for belief in channels])
    hits[ANY] = hits_of(gold, best_alone).max(1)
    asked = AVERAGE if question.channel is None else channel(question.channel)
    return found[asked], hits


def log_probabilities(reading: Reading, iteration: int) -> list[tuple[Floats, Floats | None]]:
    """Of heads, (n, n), and of the root, (n,): on average over channels, then in each of them."""

    def with_average(p: Floats) -> Floats:
        return np.log(np.concatenate([p.mean(0, keepdims=True), p]))

    with np.errstate(divide="ignore"):
        heads = with_average(reading.heads[iteration - 1])
        if reading.root is None:
            return [(scores, None) for scores in heads]
        return list(zip(heads, with_average(reading.root[iteration - 1]), strict=True))
