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
    """Gold annotation by name, n values each: "upos", "xpos", "entity", …"""
    heads: tuple[int, ...] | None = None
    """n positions: that of each word's head, from 0, or `sentinels.ROOT`."""
    label: str | None = None
    """The class of the sentence."""
    logical_form: str | None = None
    """Its meaning, in the notation of COGS."""
    document: str = ""
    """The document that the sentence is from, if the file names documents."""
    path: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    """The file, and the number of the line with the first word."""

    def __len__(self) -> int:
        return len(self.words)

    def place(self, word: int = 0) -> str:
        """The file and line of a word, for messages.

        Exact where each word has a line and no other line is among them, as in CoNLL-2003.
        """
        if not self.path:
            return f"the sentence {' '.join(self.words)!r}"
        return f"{self.path}:{self.line + (word if self.columns else 0)}"
