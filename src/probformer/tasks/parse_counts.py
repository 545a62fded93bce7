"""Counts of predicted parses beside gold ones, and scores from these counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probformer.data.attachment import attachment_scores, count_attachments
from probformer.data.breakdown import count_breakdown, count_confusions
from probformer.data.calibration import calibration_error, count_calibration
from probformer.data.parsed import Parse
from probformer.sentinels import UNOBSERVED
from probformer.tasks.labels import IGNORE, Labels

UNKNOWN = "_"
"""The label or tag of a word for which none is given."""


@dataclass(frozen=True)
class GoldParse:
    """The gold annotation of n words."""

    heads: NDArray[np.int64]
    """(n,) positions, `sentinels.ROOT`, or `sentinels.UNOBSERVED` where the head is not known."""
    labels: Sequence[str]
    punctuation: NDArray[np.bool_]
    """(n,), whether a word is punctuation."""
    tags: Mapping[str, Sequence[str]]
    """By column."""


def gold_parse(
    targets: Mapping[str, NDArray[np.int64]], labels: Labels, tags: Mapping[str, Labels]
) -> GoldParse:
    """From the targets of n words: (n,) each, "gold_head", "label", "punctuation" and tags."""
    of_labels = _names(labels, targets["label"])
    of_tags = {column: _names(names, targets[column]) for column, names in tags.items()}
    return GoldParse(targets["gold_head"], of_labels, targets["punctuation"] == 1, of_tags)


def _names(labels: Labels, numbers: Iterable[int]) -> list[str]:
    return [UNKNOWN if number == IGNORE else labels.name(number) for number in numbers]


def count_scores(gold: GoldParse, parse: Parse) -> dict[str, float]:
    """The counts of a sentence that `parsing_scores` needs; those of several sentences add up."""
    labels = None if parse.labels is None else gold.labels
    counts = count_attachments(gold.heads, labels, parse.heads, parse.labels, gold.punctuation)
    known = gold.heads != UNOBSERVED
    confidences = np.array(parse.head_probabilities)[known]
    counts |= count_calibration(confidences, (gold.heads == parse.heads)[known])
    for column, tags in parse.tags.items():
        given = np.array(gold.tags[column]) != UNKNOWN
        right = given & (np.array(gold.tags[column]) == np.array(tags))
        counts |= {f"{column}_words": float(given.sum()), f"{column}_right": float(right.sum())}
    return counts


def parsing_scores(counts: Mapping[str, float], columns: Iterable[str]) -> dict[str, float]:
    """Attachment scores, the accuracy of each column of tags, and the calibration error."""
    of_tags = {x: counts[f"{x}_right"] / max(counts[f"{x}_words"], 1) for x in columns}
    return {**attachment_scores(counts), **of_tags, "ece": calibration_error(counts)}


def count_details(gold: GoldParse, parse: Parse) -> dict[str, float]:
    """What `count_scores` counts, and what `data.breakdown.breakdown` needs."""
    counts = count_scores(gold, parse)
    counts |= count_breakdown(gold.heads, gold.labels, parse.heads, parse.labels)
    for column, tags in parse.tags.items():
        counts |= count_confusions(column, gold.tags[column], tags)
    return counts
