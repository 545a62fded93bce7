"""What the labels and channels of a run mean, as the explorer tells it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from probformer.analysis.channels import Link
from probformer.analysis.describing import Channel, describe
from probformer.analysis.labels import Label
from probformer.analysis.texts import size_text
from probformer.data.corpus import load_corpus
from probformer.data.sentence import Sentence
from probformer.errors import InputError, require
from probformer.runs.run_folder import Run

_SPLIT = "dev"
_SENTENCES = 500  # enough to tell, and a matter of seconds


def first_sentences(run: Run, data: Path, most: int) -> list[Sentence]:
    """Of the run's own data, which may not be there: then there are none."""
    try:
        return list(islice(load_corpus(run.settings.data, data).splits[_SPLIT], most))
    except (InputError, OSError):
        return []


def meanings(run: Run, data: Path) -> dict[str, Any]:
    sentences = first_sentences(run, data, _SENTENCES)
    remedy = "--data says where it is, and probformer describe what is wrong with it"
    require(bool(sentences), f"the data of this run cannot be read from here: {remedy}")
    found = describe(run, sentences)
    size = size_text(found.sentences, found.words, found.unknown)
    return {
        "text": f"{_SPLIT}: {size}",
        "column": found.column,
        "labels": None if found.labels is None else [_label(label) for label in found.labels],
        "channels": [_channel(channel) for channel in found.channels],
    }


def _label(label: Label) -> dict[str, Any]:
    tags = label.tags
    return {
        "label": label.number,
        "strongest": label.strongest,
        "probability": label.probability,
        "words": list(label.words.items()),
        "tags": [(tags.most, tags.share)] if tags else [],
        "bits": tags.bits if tags else None,
    }


def _channel(channel: Channel) -> dict[str, Any]:
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
