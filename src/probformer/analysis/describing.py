"""What the labels and channels of a run mean, judged by what it does with a text.

Expectations are over the run's probabilities; where only a word's strongest label counts, the name
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from probformer.analysis.associations import numbered
from probformer.analysis.channels import Link, LinkCounts, Spread, SpreadCounts, uniform_heads
from probformer.analysis.labels import Column, Information, Label, LabelCounts
from probformer.analysis.reading import Reading, read_sentences
from probformer.analysis.texts import count_unknown
from probformer.data.sentence import Sentence
from probformer.errors import InputError, require
from probformer.runs.run_folder import Run

_OWNERS, _LINKS = 8, 8
_MOST_WORDS, _MOST_TAGS = 20_000, 500  # of a text, so that tables fit into memory
_LINKED_WORDS = 500
_USUAL_COLUMNS = ("upos", "xpos", "entity")


@dataclass(frozen=True)
class Channel:
    number: int
    spread: Spread
    label_links: list[Link]
    """Between strongest labels."""
    tag_links: list[Link]
    word_links: list[Link]
    """Among the most frequent words."""


@dataclass(frozen=True)
class Description:
    sentences: int
    words: int
    unknown: int
    """Words that are not in the run's vocabulary."""
    step: str
    """What is counted: iterations, or the layers of a transformer."""
    iteration: int
    """Counted from 1."""
    iterations: int
    column: str | None
    """Where the tags of labels and links are from."""
    tags: list[str]
    """By falling frequency."""
    labels: list[Label] | None
    """By falling use; a transformer has none."""
    information: list[Information]
    channels: list[Channel]
    uniform: Spread
    """Of heads that are chosen by chance."""


def describe(
    run: Run, sentences: Iterable[Sentence], column: str | None = None, iteration: int = -1
) -> Description:
    """Labels and channels as they are on these sentences after an iteration, the last by default.

    Tags are from `column`; by default that of the run's task, or the first there is.
    """
    text = _Text(list(sentences))
    column = text.choose(column, getattr(run.settings.task, "column", None))
    readings = enumerate(read_sentences(run, (sentence.words for sentence in text.sentences)))
    _, first = next(readings)
    counts, at = _Counts(text, first, column), first.iteration(iteration)
    counts.add(0, first, at)
    for number, reading in readings:
        counts.add(number, reading, reading.iteration(iteration))
    return Description(
        sentences=len(text.sentences),
        words=sum(map(len, text.sentences)),
        unknown=count_unknown(run, text.sentences),
        step=first.step,
        iteration=at + 1,
        iterations=len(first.heads),
        column=column,
        tags=list(text.columns[column].names) if column else [],
        labels=counts.labels and counts.labels.labels(column, _OWNERS),
        information=counts.labels.information() if counts.labels else [],
        channels=counts.channels(),
        uniform=counts.uniform.spreads()[0],
    )


class _Text:
    """Sentences with their words and tags as numbers."""

    def __init__(self, sentences: list[Sentence]) -> None:
        require(bool(sentences), "the text must have sentences, got none")
        self.sentences = sentences
        self.words, self.numbers = numbered([s.words for s in sentences], _MOST_WORDS)
        columns = {name: _column(name, sentences) for name in _tag_columns(sentences)}
        # "_" throughout is how some formats say that there are no tags
        self.columns = {name: column for name, column in columns.items() if len(column.names) > 1}

    def choose(self, asked: str | None, preferred: str | None) -> str | None:
        if asked is not None and asked not in self.columns:
            known = ", ".join(self.columns) or "none"
            raise InputError(f"column must be one of the text with tags ({known}), got {asked!r}")
        wanted = asked or preferred
        return wanted if wanted in self.columns else next(iter(self.columns), None)


def _tag_columns(sentences: Sequence[Sentence]) -> list[str]:
    """Those that all sentences have, the usual ones first; a lemma is no tag."""
    shared = [name for name in sentences[0].columns if name != "lemma"]
    shared = [name for name in shared if all(name in s.columns for s in sentences)]
    return sorted(shared, key=lambda name: (*_USUAL_COLUMNS, name).index(name))


def _column(name: str, sentences: Sequence[Sentence]) -> Column:
    names, numbers = numbered([s.columns[name] for s in sentences], _MOST_TAGS)
    shuffled = np.random.default_rng(0).permutation(np.concatenate(numbers))
    ends = np.cumsum([len(sentence) for sentence in sentences])
    return Column(names, numbers, np.split(shuffled, ends[:-1]))


class _Counts:
    """All that is added up over the sentences of a text."""

    def __init__(self, text: _Text, reading: Reading, column: str | None) -> None:
        h, longest = reading.heads.shape[1], max(map(len, text.sentences))
        d = 0 if reading.labels is None else reading.labels.shape[-1]
        self._text = text
        self._tags = text.columns[column] if column else Column([], [], [])
        self.labels = LabelCounts(d, text.words, text.columns) if d else None
        self._spreads, self.uniform = SpreadCounts(h, longest), SpreadCounts(1, longest)
        self._label_links = LinkCounts(h, [str(label) for label in range(d)])
        self._tag_links = LinkCounts(h, self._tags.names)
        self._word_links = LinkCounts(h, text.words[:_LINKED_WORDS])

    def add(self, sentence: int, reading: Reading, at: int) -> None:
        heads, root = reading.heads[at], None if reading.root is None else reading.root[at]
        words = self._text.numbers[sentence]
        self._spreads.add(heads, root)
        self.uniform.add(*uniform_heads(len(words), self.labels is None, root is not None))
        # Numbers go by frequency: all words beyond the first few are one class.
        self._word_links.add(np.minimum(words, _LINKED_WORDS), heads, root)
        if self._tags.names:
            self._tag_links.add(self._tags.numbers[sentence], heads, root)
        if self.labels and reading.labels is not None:
            labels = reading.labels[at]
            self.labels.add(sentence, words, labels)
            self._label_links.add(labels.argmax(-1), heads, root)

    def channels(self) -> list[Channel]:
        links = (self._label_links, self._tag_links, self._word_links)
        return [
            Channel(number, spread, *(kind.links(number, _LINKS) for kind in links))
            for number, spread in enumerate(self._spreads.spreads())
        ]
