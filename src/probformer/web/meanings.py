"""What the labels and channels of a run mean: measured on its data, and by its vocabulary."""

from __future__ import annotations

from typing import Any

from probformer.analysis.describe.channel_statistics import Link
from probformer.analysis.describe.description import ChannelDescription, describe
from probformer.analysis.describe.label_statistics import LabelDescription
from probformer.analysis.draw import owners
from probformer.analysis.input_text import size_text
from probformer.analysis.marginals import check_number
from probformer.errors import InputError, require
from probformer.web.open_runs import SPLIT, NotFound, OpenRuns

_SENTENCES = 500  # enough for stable figures, and a matter of seconds


def label_owners(runs: OpenRuns, name: str, label: int) -> dict[str, Any]:
    """`GET /api/v1/runs/NAME/labels/LABEL`: the words likeliest to have it without context."""
    run = runs[name]
    count = run.model.encoder.settings.label_count
    if count is None:
        raise NotFound("only a probabilistic transformer has labels, this is a transformer")
    try:
        check_number("label", label, count)
    except InputError as error:
        raise NotFound(str(error)) from None
    return {"label": label, "words": owners(run, [label])[label]}


class Meanings:
    """`GET /api/v1/runs/NAME/meanings`: computed at a run's first request, then kept."""

    def __init__(self, runs: OpenRuns) -> None:
        self._runs = runs
        self._found: dict[str, dict[str, Any]] = {}

    def of(self, name: str) -> dict[str, Any]:
        if name not in self._found:
            try:
                self._found[name] = _measured(self._runs, name)
            except InputError as error:
                raise NotFound(str(error)) from None
        return self._found[name]


def _measured(runs: OpenRuns, name: str) -> dict[str, Any]:
    run = runs[name]
    sentences = runs.first_sentences(run, _SENTENCES)
    remedy = "--data names its folder, and `probformer describe` says what is wrong with it"
    require(bool(sentences), f"the data of this run cannot be read from here: {remedy}")
    found = describe(run, sentences)
    size = size_text(found.sentences, found.words, found.unknown)
    return {
        "text": f"{SPLIT}: {size}",
        "column": found.column,
        "labels": None if found.labels is None else [_label(label) for label in found.labels],
        "channels": [_channel(channel) for channel in found.channels],
    }


def _label(label: LabelDescription) -> dict[str, Any]:
    tags = label.tags
    return {
        "label": label.number,
        "strongest": label.strongest,
        "probability": label.probability,
        "words": list(label.words.items()),
        "tags": [(tags.most, tags.share)] if tags else [],
        "bits": tags.bits if tags else None,
    }


def _channel(channel: ChannelDescription) -> dict[str, Any]:
    spread = channel.spread
    return {
        "number": channel.number,
        "distance": spread.distance,
        "before": spread.left,
        "after": spread.right,
        "entropy": spread.entropy,
        "links": [_link(link) for link in channel.tag_links or channel.word_links],
    }


def _link(link: Link) -> tuple[str, str, float]:
    return link.dependent, link.head, link.lift
