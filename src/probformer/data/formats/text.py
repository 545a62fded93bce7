"""The format "text": one sentence per line, its words separated by white space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from probformer.data.formats.format import Format, Line
from probformer.data.sentence import Sentence


@dataclass(frozen=True)
class Text(Format):
    name = "text"
    written = "a line"
    suffix = ".txt"

    def parse(self, lines: Iterator[Line]) -> Iterator[Sentence]:
        for number, text in lines:
            if words := text.split():
                yield Sentence(tuple(words), line=number)
