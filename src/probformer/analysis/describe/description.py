"""What the labels and channels of a run mean, measured by inference on a text.

Figures are expectations under the run's marginals, except those whose names say "strongest": they
count a word's most probable label alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from probformer.analysis.describe.associations import numbered
from probformer.analysis.describe.channel_statistics import (
    Link,
    LinkCounts,
    Spread,
    SpreadCounts,
    uniform_heads,
)
from probformer.analysis.describe.label_statistics import (
    Column,
    Information,
    LabelCounts,
    LabelDescription,
)
from probformer.analysis.input_text import count_unknown
from probformer.analysis.marginals import SentenceMarginals, infer_sentences
from probformer.data.sentence import Sentence
from probformer.errors import InputError, require
from probformer.runs.run_folder import Run

_OWNERS, _LINKS = 8, 8
_MAX_WORDS, _MAX_TAGS = 20_000, 500  # distinct ones, so that tables fit into memory
_LINKED_WORDS = 500
_USUAL_COLUMNS = ("upos", "xpos", "entity")


@dataclass(frozen=True)
class ChannelDescription:
    number: int
    spread: Spread
    label_links: list[Link]
    """Between strongest labels; the lists are sorted by what they add to the mutual information."""
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
    """"iteration" or, of a transformer, "layer"."""
    iteration: int
    """Counted from 1."""
    iterations: int
    column: str | None
    """The column of tags that labels and channels are compared with."""
    tags: list[str]
    """By decreasing frequency."""
    labels: list[LabelDescription] | None
    """By decreasing use; a transformer has none."""
    information: list[Information]
    channels: list[ChannelDescription]
    uniform: Spread
    """Of uniformly distributed heads."""


def describe(
    run: Run, sentences: Iterable[Sentence], column: str | None = None, iteration: int = -1
) -> Description:
    """Measure labels and channels on sentences, after one iteration.

    Args:
        run: A loaded run folder.
        sentences: The text to measure on; columns of tags are optional.
        column: The tags to compare with; by default those of the run's task, or the first column.
        iteration: Counted from 1; −1, the default, is the last.

    Returns:
        A description of every label and every channel.

    Raises:
        InputError: There are no sentences, no such column, or no such iteration.
    """
    text = _Text(list(sentences))
    column = text.choose(column, getattr(run.settings.task, "column", None))
    inferred = infer_sentences(run, (sentence.words for sentence in text.sentences))
    first = next(inferred)
    counts, at = _Counts(text, first, column), first.iteration(iteration)
    counts.add(0, first, at)
    for number, marginals in enumerate(inferred, 1):
        counts.add(number, marginals, marginals.iteration(iteration))
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
    """Sentences, with their words and tags as numbers."""

    def __init__(self, sentences: list[Sentence]) -> None:
        require(bool(sentences), "the text must have sentences, got none")
        self.sentences = sentences
        self.words, self.numbers = numbered([s.words for s in sentences], _MAX_WORDS)
        columns = {name: _column(name, sentences) for name in _tag_columns(sentences)}
        # in some formats "_" throughout means that there are no tags
        self.columns = {name: column for name, column in columns.items() if len(column.names) > 1}

    def choose(self, given: str | None, default: str | None) -> str | None:
        if given is not None and given not in self.columns:
            known = ", ".join(self.columns) or "none"
            raise InputError(f"column must be one of the columns of tags ({known}), got {given!r}")
        wanted = given or default
        return wanted if wanted in self.columns else next(iter(self.columns), None)


def _tag_columns(sentences: Sequence[Sentence]) -> list[str]:
    """Columns of all sentences, the usual ones first; lemmas are no tags."""
    shared = [name for name in sentences[0].columns if name != "lemma"]
    shared = [name for name in shared if all(name in s.columns for s in sentences)]
    return sorted(shared, key=lambda name: (*_USUAL_COLUMNS, name).index(name))


def _column(name: str, sentences: Sequence[Sentence]) -> Column:
    names, numbers = numbered([s.columns[name] for s in sentences], _MAX_TAGS)
    shuffled = np.random.default_rng(0).permutation(np.concatenate(numbers))
    ends = np.cumsum([len(sentence) for sentence in sentences])
    return Column(names, numbers, np.split(shuffled, ends[:-1]))


class _Counts:
    """What is summed over the sentences of a text."""

    def __init__(self, text: _Text, marginals: SentenceMarginals, column: str | None) -> None:
        h, longest = marginals.heads.shape[1], max(map(len, text.sentences))
        d = 0 if marginals.labels is None else marginals.labels.shape[-1]
        self._text = text
        self._tags = text.columns[column] if column else Column([], [], [])
        self.labels = LabelCounts(d, text.words, text.columns) if d else None
        self._spreads, self.uniform = SpreadCounts(h, longest), SpreadCounts(1, longest)
        self._label_links = LinkCounts(h, [str(label) for label in range(d)])
        self._tag_links = LinkCounts(h, self._tags.names)
        self._word_links = LinkCounts(h, text.words[:_LINKED_WORDS])

    def add(self, sentence: int, marginals: SentenceMarginals, at: int) -> None:
        heads, root = marginals.heads[at], None if marginals.root is None else marginals.root[at]
        words = self._text.numbers[sentence]
        self._spreads.add(heads, root)
        self.uniform.add(*uniform_heads(len(words), self.labels is None, root is not None))
        # words are numbered by frequency: all but the most frequent ones are one class
        self._word_links.add(np.minimum(words, _LINKED_WORDS), heads, root)
        if self._tags.names:
            self._tag_links.add(self._tags.numbers[sentence], heads, root)
        if self.labels and marginals.labels is not None:
            labels = marginals.labels[at]
            self.labels.add(sentence, words, labels)
            self._label_links.add(labels.argmax(-1), heads, root)

    def channels(self) -> list[ChannelDescription]:
        links = (self._label_links, self._tag_links, self._word_links)
        return [
            ChannelDescription(number, spread, *(kind.links(number, _LINKS) for kind in links))
            for number, spread in enumerate(self._spreads.spreads())
        ]
