"""A sentence with whatever is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NO_HEAD = -1
"""In `Sentence.heads`: the word hangs from the root of the sentence."""


@dataclass(frozen=True)
class Sentence:
    words: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Gold annotation by name, one value a word: "upos", "xpos", "entity", …"""
    heads: tuple[int, ...] | None = None
    """The position of each word's head, counted from 0, or `NO_HEAD`."""
    label: str | None = None
    """The class of the sentence."""
    logical_form: str | None = None

    def __len__(self) -> int:
        return len(self.words)
