"""A predicted parse of a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from probformer.data.formats.conllu import TAG_COLUMNS, Annotation


@dataclass(frozen=True)
class Parse:
    """The tree of n words, with the probabilities of what was predicted."""

    heads: Sequence[int]
    """n positions, or `sentinels.ROOT`."""
    head_probabilities: Sequence[float]
    """n times P(this head)."""
    labels: Sequence[str] | None = None
    """n labels of the arcs to the words; None where arcs have none."""
    label_probabilities: Sequence[float] | None = None
    """n times P(this label | this head)."""
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """n tags each, by column."""
    tag_probabilities: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """n times P(this tag), by column."""

    def as_dict(self) -> dict[str, Any]:
        """Heads, labels, tags and their probabilities, of types that JSON has."""
        found: dict[str, Any] = {"heads": self.heads, "labels": self.labels}
        found |= {"tags": dict(self.tags), "head_probabilities": self.head_probabilities}
        found |= {"label_probabilities": self.label_probabilities}
        found |= {"tag_probabilities": dict(self.tag_probabilities)}
        return {name: value for name, value in found.items() if value is not None}

    def annotation(self, probabilities: bool = False) -> Annotation:
        """What is to be written into a CoNLL-U file, which has columns for some kinds of tags only.

        Args:
            probabilities: Whether they become entries of MISC, such as "HeadProb=0.9312".
        """
        tags = {name: tags for name, tags in self.tags.items() if name in TAG_COLUMNS}
        entries = dict(self._entries()) if probabilities else {}
        misc = [
            {name: f"{p:.4f}" for name, p in zip(entries, of_word, strict=True)}
            for of_word in zip(*entries.values(), strict=True)
        ]
        return Annotation(self.heads, self.labels, tags, misc)

    def _entries(self) -> Iterator[tuple[str, Sequence[float]]]:
        yield "HeadProb", self.head_probabilities
        if self.label_probabilities is not None:
            yield "LabelProb", self.label_probabilities
        for column, p in self.tag_probabilities.items():
            if column in TAG_COLUMNS:
                yield f"{column.capitalize()}Prob", p
