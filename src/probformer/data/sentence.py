"""A sentence with its gold annotation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sentence:
    """The n words of a sentence, with its gold annotation and where it is from."""

    words: tuple[str, ...]
    """n words."""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Gold annotation by name, n values each: "upos", "xpos", "deprel", "entity", …"""
    heads: tuple[int, ...] | None = None
    """n positions: that of each word's head, from 0, or `sentinels.ROOT`, or `sentinels.UNOBSERVED`
    where the head of a word is not known. None if no head is known."""
    label: str | None = None
    """The class of the sentence."""
    logical_form: str | None = None
    """Its meaning, in the notation of COGS."""
    document: str = ""
    """The document that the sentence is from, if the file names documents."""
    id: str = field(default="", compare=False, repr=False)  # so that digests do not depend on it
    """The name of the sentence in its file: `sent_id` in CoNLL-U."""
    path: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    """The file, and the number of the line with the first word."""
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """The number of each word's line, where other lines are among them."""

    def __len__(self) -> int:
        return len(self.words)

    def place(self, word: int = 0) -> str:
        """The file and line of a word, and the id of the sentence if it has one, for messages.

        The line is exact where each word has one of its own, as in CoNLL-2003 and CoNLL-U. A
        sentence without columns is on one line.
        """
        if not self.path:
            return f"the sentence {' '.join(self.words)!r}"
        line = self.lines[word] if self.lines else self.line + (word if self.columns else 0)
        return place_in_file(self.path, line, self.id)


def place_in_file(path: str, line: int, sentence: str = "") -> str:
    """A line of a file, with the id of its sentence if there is one: "a.conllu:12 (sentence b)"."""
    named = f" (sentence {sentence})" if sentence else ""
    return f"{path}:{line}{named}"
