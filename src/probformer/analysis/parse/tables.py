"""Attachment scores as tables on the terminal, and as one JSON object."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from probformer.analysis.input_text import size_text
from probformer.analysis.parse.attachment import BASELINES, Accuracy, group_of
from probformer.analysis.parse.scoring import ANY, AVERAGE, FoundHeads, ParserOptions, channel
from probformer.data.breakdown import LENGTHS, group_names
from probformer.data.sentence import Sentence
from probformer.errors import counted

_NOTES = """\
UAS: words with their gold head, of those that have one. UUAS: gold arcs between words that were
found, in either direction. best channel: the one with the highest UUAS on these same sentences. any
channel: a word counts if its most probable head is right in one of the channels, whether or not
these heads form a tree; if the model has no ROOT, that of a root is wrong unless it is the only
word. left chain: the head of each word is the one before it; right chain: the one after it; random:
the mean of five draws. No word heads itself: attention from a word to itself is left out."""


def figures(
    parsing: FoundHeads, sentences: Sequence[Sentence], options: ParserOptions, unknown: int
) -> dict[str, Any]:
    """All scores, as shares of 1."""
    return {
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "unknown": unknown,
        "decoder": options.decoder,
        "single_root": options.single_root,
        "channel": parsing.chosen,
        parsing.step: parsing.iteration,
        "ways": {name: asdict(parsing.accuracy(way)) for name, way in _ways(parsing)},
        "best_channel": parsing.best_channel(),
        "channels": [asdict(parsing.accuracy(channel(c))) for c in range(parsing.channels)],
        "lengths": {
            group_names(LENGTHS)[group]: {"sentences": count}
            | {name: asdict(parsing.accuracy(way, group=group)) for name, way in _ways(parsing)}
            for group, count in _groups(sentences)
        },
        f"{parsing.step}s": {
            t: {name: asdict(parsing.accuracy(way, t)) for name, way in _of_the_model(parsing, t)}
            for t in parsing.iterations
        },
    }


def print_tables(
    parsing: FoundHeads, sentences: Sequence[Sentence], options: ParserOptions, unknown: int
) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(
        f"{size_text(len(sentences), sum(map(len, sentences)), unknown)}; decoder "
        f"{options.decoder}, {parsing.step} {parsing.iteration}, "
        f"{counted(parsing.channels, 'channel')}"
    )
    console.print(_overview(parsing))
    if len(parsing.iterations) > 1:
        console.print(_by_iteration(parsing))
    console.print(_by_length(parsing, sentences))
    console.print(_NOTES, highlight=False)


def _overview(parsing: FoundHeads) -> Table:
    table = Table(title="accuracy, %", title_justify="left")
    table.add_column("heads")
    for name in ("UAS", "UUAS", "UAS without punctuation", "UUAS without punctuation"):
        table.add_column(name, justify="right")
    rows = list(_ways(parsing))
    if isinstance(parsing.channel, int):
        chosen = channel(parsing.channel)
        rows.insert(1, (chosen, chosen))
    for name, way in rows:
        title = f"{name}: {parsing.best_channel()}" if name == "best channel" else name
        shares = asdict(parsing.accuracy(way)).values()
        table.add_row(title, *map(_percent, shares), end_section=name == ANY)
    return table


def _by_iteration(parsing: FoundHeads) -> Table:
    table = _pairs_table(parsing.step, [name for name, _ in _of_the_model(parsing)])
    for t in parsing.iterations:
        accuracies = [parsing.accuracy(way, t) for _, way in _of_the_model(parsing, t)]
        table.add_row(str(t), *map(_pair, accuracies))
    return table


def _by_length(parsing: FoundHeads, sentences: Sequence[Sentence]) -> Table:
    table = _pairs_table("words", ["sentences", *(name for name, _ in _ways(parsing))])
    for group, count in _groups(sentences):
        accuracies = [parsing.accuracy(way, group=group) for _, way in _ways(parsing)]
        table.add_row(group_names(LENGTHS)[group], f"{count:,}", *map(_pair, accuracies))
    return table


def _ways(parsing: FoundHeads) -> Iterator[tuple[str, str]]:
    """Titles of rows, and the ways to find heads whose scores they show."""
    yield from _of_the_model(parsing)
    yield from ((baseline, baseline) for baseline in BASELINES)


def _of_the_model(parsing: FoundHeads, iteration: int | None = None) -> Iterator[tuple[str, str]]:
    yield AVERAGE, AVERAGE
    yield "best channel", channel(parsing.best_channel(iteration))
    yield ANY, ANY


def _pairs_table(first: str, names: Iterable[str]) -> Table:
    table = Table(title=f"UAS / UUAS by {first}, %", title_justify="left")
    table.add_column(first)
    for name in names:
        table.add_column(name, justify="right")
    return table


def _groups(sentences: Sequence[Sentence]) -> list[tuple[int, int]]:
    """Groups of similar length, and the number of sentences in each."""
    return sorted(Counter(map(group_of, sentences)).items())


def _pair(accuracy: Accuracy) -> str:
    return f"{_percent(accuracy.uas)} / {_percent(accuracy.uuas)}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
