"""A description as tables of text, for the terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from probformer.analysis.describe.channel_statistics import Link, Spread
from probformer.analysis.describe.description import Description
from probformer.analysis.describe.label_statistics import LabelDescription
from probformer.analysis.input_text import size_text
from probformer.errors import counted
from probformer.viz.words import escaped

_WORDS, _LINKS = 6, 3
_VISIBLE = 0.0005
"""Smaller shares print as 0.0 %."""
_NOTHING = "–"
NO_LABELS = (
    "A transformer has no latent labels: only its channels, the attention heads, are described."
)


@dataclass(frozen=True)
class TextTable:
    name: str
    note: str
    """What the columns mean."""
    header: list[str]
    rows: list[list[str]]
    """A cell may have several lines. Without rows, the note says why."""


def escaped_lines(cell: str) -> str:
    """A cell with control characters escaped, as they could steer a terminal."""
    return "\n".join(map(escaped, cell.split("\n")))


def summary(description: Description) -> str:
    """Size of the text, and the iteration."""
    size = size_text(description.sentences, description.words, description.unknown)
    return f"{size}, {description.step} {description.iteration} of {description.iterations}"


def tables(description: Description, most_labels: int | None = None) -> Iterator[TextTable]:
    """All tables of a description; that of labels has at most `most_labels` rows."""
    if description.labels is not None:
        yield _labels(description, description.labels, most_labels)
    if description.information:
        yield _information(description)
    yield _spreads(description)
    yield _links(description)


def _labels(
    description: Description, labels: list[LabelDescription], most: int | None
) -> TextTable:
    used = [label for label in labels if label.strongest]
    listed = used[:most]
    header = ["label", "strongest", "probability", "words"]
    column = description.column
    if column:
        header += [f"{column} when strongest", "bits"]
    rows = []
    for label in listed:
        words = [f"{word} {share:.2f}" for word, share in [*label.words.items()][:_WORDS]]
        row = [str(label.number), _per_cent(label.strongest), _per_cent(label.probability)]
        row.append(" · ".join(words) or _NOTHING)
        if label.tags:
            row += [f"{label.tags.most} {_per_cent(label.tags.share)}", f"{label.tags.bits:.3f}"]
        rows.append(row)
    note = (
        "Strongest: the share of words whose most probable label it is. Probability: its mean over "
        "all words. Words: those that own it, by excess over chance, with P(label | word)."
    )
    if column:
        note += f" Bits: mutual information of {column} and whether the label is the strongest."
    if len(listed) < len(used):
        note += f" {counted(len(used) - len(listed), 'label')} more with --out or --json."
    if len(used) < len(labels):
        note += f" {len(labels) - len(used)} of {len(labels)} are never the strongest."
    return TextTable("Labels", note, header, rows)


def _information(description: Description) -> TextTable:
    header = ["column", "label", "bits", "by chance", "of the tags' entropy", "of the labels'"]
    rows = [
        [
            found.column,
            "the strongest" if found.strongest else "by probability",
            f"{found.bits:.3f}",
            f"{found.by_chance:.3f}",
            _per_cent(found.of_tags),
            _per_cent(found.of_labels),
        ]
        for found in description.information
    ]
    note = (
        "Mutual information of a word's label, the strongest or one drawn with its probability, "
        "and its tag. By chance: the same with the tags shuffled."
    )
    return TextTable("Labels and tags", note, header, rows)


def _spreads(description: Description) -> TextTable:
    named = {str(channel.number): channel.spread for channel in description.channels}
    named["uniform"] = description.uniform
    sides = ["left", "right"]
    for side in ("itself", "root", "elsewhere"):
        if any(getattr(spread, side) >= _VISIBLE for spread in named.values()):
            sides.append(side)
    header = ["channel", *sides, "mean distance", "median", "distances 1, 2, 3, 4+", "entropy"]
    rows = [
        [
            name,
            *(_per_cent(getattr(spread, side)) for side in sides),
            *_distances(spread),
            f"{spread.entropy:.2f}",
        ]
        for name, spread in named.items()
    ]
    note = (
        "The share of heads to the left, to the right and so on. Of heads that are words: mean and "
        "median distance in words, and the share of each distance in per cent. Entropy of a word's "
        "head in bits. Uniform: all heads equally likely."
    )
    return TextTable("Channels", note, header, rows)


def _distances(spread: Spread) -> list[str]:
    """Mean, median and distribution; dashes if hardly any head is a word."""
    if spread.left + spread.itself + spread.right < _VISIBLE:
        return [_NOTHING] * 3
    near = [spread.offsets.get(k, 0.0) + spread.offsets.get(-k, 0.0) for k in (1, 2, 3)]
    far = sum(share for k, share in spread.offsets.items() if abs(k) > 3)
    shares = " ".join(f"{100 * share:.0f}" for share in (*near, far))
    return [f"{spread.distance:.1f}", str(spread.median_distance), shares]


def _links(description: Description) -> TextTable:
    channels = description.channels
    kinds = {
        "strongest labels": [channel.label_links for channel in channels],
        description.column or "tags": [channel.tag_links for channel in channels],
        "words": [channel.word_links for channel in channels],
    }
    kinds = {name: links for name, links in kinds.items() if any(links)}
    name = "What channels link"
    if not kinds:
        return TextTable(name, "No channel links anything more often than chance would.", [], [])
    rows = [
        [str(channel.number), *(_cell(links[at]) for links in kinds.values())]
        for at, channel in enumerate(channels)
    ]
    note = (
        "Dependent → head, by excess over chance, with the share of words that have this link and, "
        "after ×, how many times as often it occurs as by chance."
    )
    return TextTable(name, note, ["channel", *kinds], rows)


def _cell(links: list[Link]) -> str:
    texts = [
        f"{link.dependent} → {link.head} {_per_cent(link.share)} ×{link.lift:.1f}"
        for link in links[:_LINKS]
    ]
    return "\n".join(texts) or _NOTHING


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
