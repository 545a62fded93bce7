"""What a label means: the words that own it, and its mutual information with their tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from probformer.analysis.describe.associations import (
    MIN_LIFT,
    Floats,
    Integers,
    entropy,
    excess,
    lift,
    mutual_information,
)


@dataclass(frozen=True)
class LabelTags:
    """How a label goes with the tags of a column."""

    most: str
    """The most frequent tag of words whose strongest label it is."""
    share: float
    """The share of that tag among these words."""
    bits: float
    """Mutual information of the tag and the event that this label is the strongest."""
    shares: dict[str, float]
    """P(tag | label)."""


@dataclass(frozen=True)
class LabelDescription:
    number: int
    strongest: float
    """The share of words whose strongest label this is."""
    probability: float
    """Its mean over all words."""
    words: dict[str, float]
    """P(label | word) of the words that own it: those that add most to the mutual information of
    words and labels."""
    tags: LabelTags | None
    """None without tags, or if the label is never the strongest."""


@dataclass(frozen=True)
class Information:
    """Mutual information of a word's label and its tag, in bits."""

    column: str
    strongest: bool
    """Whether the label is the strongest one, or drawn from the marginals of the word."""
    bits: float
    by_chance: float
    """The same with the tags shuffled: in a finite text it is above 0."""
    of_tags: float
    """Bits as a share of the entropy of tags."""
    of_labels: float
    """Bits as a share of the entropy of labels."""


@dataclass(frozen=True)
class Column:
    """The tags of a text."""

    names: Sequence[str]
    """The most frequent tags, by decreasing frequency."""
    numbers: Sequence[Integers]
    """For each sentence, (n,): the index of each word's tag in `names`, or their number."""
    shuffled: Sequence[Integers]
    """The same tags, shuffled over all words of the text."""


class _Tables:
    """How often labels and tags occur together, and how often if tags are shuffled."""

    def __init__(self, tags: int, labels: int) -> None:
        self.joint, self._by_chance = np.zeros((2, tags, labels))

    def add(self, tags: Integers, shuffled: Integers, labels: Floats) -> None:
        np.add.at(self.joint, tags, labels)
        np.add.at(self._by_chance, shuffled, labels)

    def information(self, column: str, strongest: bool) -> Information:
        bits = mutual_information(self.joint)
        of_tags, of_labels = (entropy(self.joint.sum(axis)) for axis in (1, 0))
        return Information(
            column,
            strongest,
            bits,
            mutual_information(self._by_chance),
            bits / of_tags if of_tags else 0.0,
            bits / of_labels if of_labels else 0.0,
        )


class LabelCounts:
    """Sums up the labels of a text."""

    def __init__(self, labels: int, words: Sequence[str], columns: Mapping[str, Column]) -> None:
        self._words, self._columns = words, columns
        self._by_word = np.zeros((len(words) + 1, labels))
        self._strongest = np.zeros(labels)
        self._tables = {
            (name, strongest): _Tables(len(column.names) + 1, labels)
            for name, column in columns.items()
            for strongest in (False, True)
        }

    def add(self, sentence: int, words: Integers, labels: Floats) -> None:
        """Add a sentence: its words (n,) and the distributions over their labels (n, d)."""
        strongest = np.eye(labels.shape[-1])[labels.argmax(-1)]
        np.add.at(self._by_word, words, labels)
        self._strongest += strongest.sum(0)
        for (name, is_strongest), tables in self._tables.items():
            column = self._columns[name]
            weights = strongest if is_strongest else labels
            tables.add(column.numbers[sentence], column.shuffled[sentence], weights)

    def information(self) -> list[Information]:
        return [tables.information(*which) for which, tables in self._tables.items()]

    def labels(self, column: str | None, most_words: int) -> list[LabelDescription]:
        """By decreasing use."""
        total = self._strongest.sum()
        gains = np.where(lift(self._by_word) < MIN_LIFT, 0, excess(self._by_word))[:-1]
        frequency = self._by_word.sum(1)
        found = []
        for label in np.argsort(-self._strongest, kind="stable"):
            owners = np.argsort(-gains[:, label], kind="stable")[:most_words]
            words = {
                self._words[word]: float(self._by_word[word, label] / frequency[word])
                for word in map(int, owners)
                if gains[word, label] > 0
            }
            found.append(
                LabelDescription(
                    int(label),
                    float(self._strongest[label] / total),
                    float(self._by_word[:, label].sum() / total),
                    words,
                    self._tags(label, column) if column and self._strongest[label] else None,
                )
            )
        return found

    def _tags(self, label: int, column: str) -> LabelTags:
        names = [*self._columns[column].names, "others"]
        joint = self._tables[column, True].joint
        where = joint[:, label]
        most = int(where.argmax())
        probable = self._tables[column, False].joint[:, label]
        return LabelTags(
            names[most],
            float(where[most] / where.sum()),
            mutual_information(np.stack([where, joint.sum(1) - where])),
            {
                name: float(share)
                for name, share in zip(names, probable / probable.sum(), strict=True)
                if share > 0
            },
        )
