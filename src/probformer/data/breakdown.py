"""Scores of parses by label, by distance and by length, and what is taken for what.

As in `attachment`: words without a gold head are not counted, and labels have no subtypes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probformer.data.attachment import without_subtypes
from probformer.data.spans import f1
from probformer.sentinels import ROOT, UNOBSERVED

LENGTHS = (10, 20, 30, 40)
"""The largest length of each group of sentences but the last, which has no limit."""
DISTANCES = (1, 2, 6)
"""The same for the distance of a word and its head."""

_BY_LABEL, _BY_DISTANCE, _BY_LENGTH = "by_label", "by_distance", "by_length"
_CONFUSIONS_OF = "confusions_of_"
_LABEL_TITLE = "by label, without subtypes: right heads with the right label"
_ROOT, _UNKNOWN = "ROOT", "_"
_MOST_FREQUENT = 10
_SEPARATOR = "\t"  # in names of counts; it separates columns in files, so no label has one

_Name = tuple[str, ...]
Row = dict[str, str | int | float | None]


@dataclass(frozen=True)
class ScoreTable:
    """A table of scores."""

    name: str
    """What JSON calls it."""
    title: str
    rows: list[Row]
    """Values by column, the same columns in each row: names, counts, and shares from 0 to 1, None
    where there is nothing to count."""


def group_names(limits: Sequence[int]) -> list[str]:
    """Names of groups of numbers from 1: (1, 2, 6) -> "1", "2", "3–6", "7–"."""
    lows = [1, *(limit + 1 for limit in limits)]
    bounded = zip(lows, limits, strict=False)
    names = [f"{low}" if low == limit else f"{low}–{limit}" for low, limit in bounded]
    return [*names, f"{lows[-1]}–"]


_LENGTH_NAMES, _DISTANCE_NAMES = group_names(LENGTHS), group_names(DISTANCES)


def count_breakdown(
    gold_heads: Sequence[int] | NDArray[np.int64],
    gold_labels: Sequence[str] | None,
    heads: Sequence[int],
    labels: Sequence[str] | None,
) -> dict[str, float]:
    """The counts of a sentence; those of several sentences add up.

    Args:
        gold_heads: n values: the position of each word's head, `sentinels.ROOT`, or
            `sentinels.UNOBSERVED` for a word that is not to be counted.
        gold_labels: The label of each word's arc, "_" if not known.
        heads: The predicted heads.
        labels: The predicted labels. Labels are counted if both are given.

    Returns:
        Counts from which `breakdown` computes tables.
    """
    known = [word for word, head in enumerate(gold_heads) if head != UNOBSERVED]
    length = _LENGTH_NAMES[bisect_left(LENGTHS, len(gold_heads))]
    right = [bool(gold_heads[word] == heads[word]) for word in known]
    gold, found = ([_distance(word, of[word]) for word in known] for of in (gold_heads, heads))
    names = [*_classes(_BY_DISTANCE, gold, found, right)]
    names += [(_BY_LENGTH, length, "sentences")] * bool(known)
    names += [(_BY_LENGTH, length, "words")] * len(known)
    names += [(_BY_LENGTH, length, "uas")] * sum(right)
    if gold_labels is not None and labels is not None:
        types = without_subtypes(gold_labels), without_subtypes(labels)
        gold, found = ([of[word] for word in known] for of in types)
        right = [hit and a == b for hit, a, b in zip(right, gold, found, strict=True)]
        names += [*_classes(_BY_LABEL, gold, found, right), *_confusions("labels", gold, found)]
        names += [(_BY_LENGTH, length, "las")] * sum(right)
    return _counts(names)


def count_confusions(column: str, gold: Sequence[str], found: Sequence[str]) -> dict[str, float]:
    """The same for tags.

    Args:
        column: The name of the column.
        gold: The tags of n words, "_" if not known.
        found: The predicted tags.
    """
    return _counts(_confusions(column, gold, found))


def _counts(names: Iterable[_Name]) -> dict[str, float]:
    found = Counter(_SEPARATOR.join(name) for name in names)
    return {name: float(count) for name, count in found.items()}


def _classes(
    table: str, gold: Sequence[str], found: Sequence[str], right: Sequence[bool]
) -> Iterator[_Name]:
    for a, b, hit in zip(gold, found, right, strict=True):
        yield table, a, "gold"
        yield table, b, "predicted"
        if hit:
            yield table, a, "right"


def _confusions(column: str, gold: Sequence[str], found: Sequence[str]) -> Iterator[_Name]:
    for a, b in zip(gold, found, strict=True):
        if a not in (b, _UNKNOWN):
            yield f"{_CONFUSIONS_OF}{column}", a, b


def _distance(word: int, head: int) -> str:
    return _ROOT if head == ROOT else _DISTANCE_NAMES[bisect_left(DISTANCES, abs(word - head))]


def breakdown(counts: Mapping[str, float]) -> list[ScoreTable]:
    """Tables from counts.

    Args:
        counts: Sums over sentences of what `count_breakdown` and `count_confusions` return. Names
            of other counts are allowed.

    Returns:
        The tables "by_label" if labels were counted, "by_distance", "by_length", and for each
        column that has them the ten most frequent confusions, such as "confusions_of_labels".
    """
    found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for name, count in counts.items():
        if _SEPARATOR in name:
            table, key, what = name.split(_SEPARATOR)
            found[table][key][what] += int(count)
    labels, distances, lengths = (found[name] for name in (_BY_LABEL, _BY_DISTANCE, _BY_LENGTH))
    by_frequency = sorted(labels, key=lambda label: (-labels[label]["gold"], label))
    of_labels = [_shares("label", label, labels[label]) for label in by_frequency]
    names = (_ROOT, *_DISTANCE_NAMES)
    of_distances = [_shares("distance", name, distances[name]) for name in names]
    scores = ("uas", "las") if labels else ("uas",)
    of_lengths = [_of_length(x, lengths[x], scores) for x in _LENGTH_NAMES if x in lengths]
    return [
        *([ScoreTable(_BY_LABEL, _LABEL_TITLE, of_labels)] if labels else ()),
        ScoreTable(_BY_DISTANCE, "by distance of word and head: right heads", of_distances),
        ScoreTable(_BY_LENGTH, "by length of the sentence", of_lengths),
        *(_most_frequent(x, found[x]) for x in sorted(found) if x.startswith(_CONFUSIONS_OF)),
    ]


def _shares(column: str, name: str, counts: Counter[str]) -> Row:
    right, predicted, gold = (counts[what] for what in ("right", "predicted", "gold"))
    return {
        column: name,
        "gold": gold,
        "predicted": predicted,
        "precision": right / predicted if predicted else None,
        "recall": right / gold if gold else None,
        "f1": f1(right, predicted, gold) if gold + predicted else None,
    }


def _of_length(group: str, counts: Counter[str], scores: Sequence[str]) -> Row:
    row: Row = {"length": group, "sentences": counts["sentences"], "words": counts["words"]}
    return row | {name: counts[name] / counts["words"] for name in scores}


def _most_frequent(table: str, confusions: Mapping[str, Counter[str]]) -> ScoreTable:
    pairs = [(gold, found, n) for gold, of in confusions.items() for found, n in of.items()]
    pairs.sort(key=lambda pair: (-pair[2], *pair))
    columns = ("gold", "predicted", "count")
    rows: list[Row] = [dict(zip(columns, pair, strict=True)) for pair in pairs[:_MOST_FREQUENT]]
    return ScoreTable(table, f"most frequent {table.replace('_', ' ')}", rows)
