"""Unsupervised parsing: trees from head marginals, and their attachment scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from probformer.analysis.marginals import SentenceMarginals, infer_sentences
from probformer.analysis.parse.attachment import (
    BASELINES,
    Accuracy,
    Floats,
    Ints,
    Score,
    baseline_hits,
    hits_of,
)
from probformer.crf.decoding import DECODERS, argmax_heads, decode
from probformer.data.sentence import Sentence
from probformer.errors import require, require_one_of
from probformer.runs.run_folder import Run

AVERAGE, ANY, BEST = "average", "any channel", "best"


@dataclass(frozen=True)
class ParserOptions:
    """How to get heads from marginals."""

    decoder: str = "tree"
    single_root: bool = True
    iteration: int = -1
    """Counted from 1; −1 is the last."""
    channel: int | str = AVERAGE
    """Whose heads to keep: a channel counted from 0, "average", or "best" by UUAS."""
    every_iteration: bool = False
    """Score all other iterations too."""

    def __post_init__(self) -> None:
        require_one_of("decoder", self.decoder, DECODERS)
        if isinstance(self.channel, str):
            require_one_of("channel", self.channel, (AVERAGE, BEST))


@dataclass
class FoundHeads:
    """Heads found in some sentences, and their attachment scores.

    A way to find heads is named by a string: a channel ("channel 0"), their average, any channel,
    or a baseline.
    """

    iteration: int
    """Of `found`, counted from 1."""
    step: str
    """"iteration" or, of a transformer, "layer"."""
    channel: int | str
    """The one of the options: a number, "average" or "best"."""
    channels: int
    iterations: dict[int, Score]
    """Those that were scored."""
    baselines: Score = field(default_factory=Score)
    found: defaultdict[str, list[Ints]] = field(default_factory=lambda: defaultdict(list))
    """The heads of each sentence, by way."""

    @property
    def chosen(self) -> int | str:
        """The channel of the options, with the number of the best one."""
        return self.best_channel() if self.channel == BEST else self.channel

    @property
    def heads(self) -> list[Ints]:
        """Of each sentence, in the chosen channel."""
        chosen = self.chosen
        return self.found[channel(chosen) if isinstance(chosen, int) else chosen]

    def accuracy(
        self, way: str, iteration: int | None = None, group: int | None = None
    ) -> Accuracy:
        """Of a way to find heads, on all sentences or on those of a group of lengths."""
        score = self.iterations[iteration or self.iteration]
        return (self.baselines if way in BASELINES else score).accuracy(way, group)

    def best_channel(self, iteration: int | None = None) -> int:
        """The channel with the highest UUAS; of equal ones the first."""
        return max(
            range(self.channels), key=lambda c: self.accuracy(channel(c), iteration).uuas or 0
        )


def channel(number: int) -> str:
    return f"channel {number}"


def parse_sentences(run: Run, sentences: Sequence[Sentence], options: ParserOptions) -> FoundHeads:
    """Parse sentences with a model, and compare with their gold heads.

    Words whose gold head is not known count in no score.

    Args:
        run: A loaded run folder.
        sentences: All with gold heads, of some words at least.
        options: Decoder, iteration and channel.

    Returns:
        Heads and scores of every channel, of their average, and of the baselines.

    Raises:
        InputError: There are no sentences, or one has no gold head.
    """
    require(len(sentences) > 0, "there must be sentences to parse, got none")
    for sentence in sentences:
        message = f"{sentence.place()}: has no heads, expected gold heads to compare with"
        require(sentence.heads is not None, message)
    chance = np.random.default_rng(0)
    parsing = None
    inferred = infer_sentences(run, [sentence.words for sentence in sentences])
    for sentence, marginals in zip(sentences, inferred, strict=True):
        parsing = parsing or _empty_parsing(marginals, options)
        gold = np.array(sentence.heads)
        parsing.baselines.add(sentence, baseline_hits(gold, chance))
        for iteration, score in parsing.iterations.items():
            found, hits = _decoded(marginals, iteration, options, gold)
            score.add(sentence, hits)
            if iteration == parsing.iteration:
                for way, heads in found.items():
                    parsing.found[way].append(heads)
    assert parsing is not None
    return parsing


def _empty_parsing(marginals: SentenceMarginals, options: ParserOptions) -> FoundHeads:
    iteration = marginals.iteration(options.iteration) + 1
    if isinstance(options.channel, int):
        marginals.channel(options.channel)
    iterations = range(1, len(marginals.heads) + 1) if options.every_iteration else [iteration]
    scores = {t: Score() for t in iterations}
    return FoundHeads(iteration, marginals.step, options.channel, marginals.heads.shape[1], scores)


def _decoded(
    marginals: SentenceMarginals, iteration: int, options: ParserOptions, gold: Ints
) -> tuple[dict[str, Ints], dict[str, Floats]]:
    """The heads that each way finds, and their hits."""
    average, *channels = log_probabilities(marginals, iteration)
    scores = {AVERAGE: average} | {channel(c): own for c, own in enumerate(channels)}
    found = {way: decode(*own, options.decoder, options.single_root) for way, own in scores.items()}
    hits = {way: hits_of(gold, heads) for way, heads in found.items()}
    best_alone = np.stack([argmax_heads(*own) for own in channels])
    hits[ANY] = hits_of(gold, best_alone).max(1)
    return found, hits


def log_probabilities(
    marginals: SentenceMarginals, iteration: int
) -> list[tuple[Floats, Floats | None]]:
    """Of heads, (n, n), and of the root, (n,): on average over channels, then in each of them."""

    def with_average(p: Floats) -> Floats:
        return np.log(np.concatenate([p.mean(0, keepdims=True), p]))

    heads, root = marginals.over_others(iteration - 1)
    with np.errstate(divide="ignore"):
        if root is None:
            return [(scores, None) for scores in with_average(heads)]
        return list(zip(with_average(heads), with_average(root), strict=True))
