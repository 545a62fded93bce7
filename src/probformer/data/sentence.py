"""A sentence with whatever is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sentence:
    words: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Gold annotation by name, one value a word: "upos", "xpos", "entity", …"""
    heads: tuple[int, ...] | None = None
    """The position of each word's head, counted from 0, or `sentinels.ROOT`."""
    label: str | None = None
    """The class of the sentence."""
    logical_form: str | None = None
    document: str = ""
    """The document that the sentence is from, where the file says so."""
    path: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    """The file, and the line in it where the words begin."""

    def __len__(self) -> int:
        return len(self.words)

    def place(self, word: int = 0) -> str:
        """Where to look for a word, for messages; files of one word a line are exact."""
        if not self.path:
            return f"the sentence {' '.join(self.words)!r}"
        return f"{self.path}:{self.line + (word if self.columns else 0)}"
