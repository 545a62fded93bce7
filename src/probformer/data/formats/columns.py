"""The format "columns", as in CoNLL-2003: one word per line, a blank line after each sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from probformer.data.formats.format import (
    IGNORED,
    Format,
    Line,
    RawLine,
    between_blank_lines,
    check_column_names,
    checked_fields,
    document_in,
)
from probformer.data.sentence import Sentence

WORD = "word"


@dataclass(frozen=True)
class Columns(Format):
    """Fields are separated by tabs, or by spaces in a line without tabs.

    Before the first word, lines that start with "#" are comments unless they have as many
    fields as `columns`, separated by tabs if those of the first word are. Lines with -DOCSTART-
    count as blank.
    """

    name = "columns"
    written = "a word a line, blank line after it; `data.columns` names the fields"
    gold = "any column"

    columns: Sequence[str] = ()
    """The names of the fields, in order."""

    def __post_init__(self) -> None:
        check_column_names(self.columns, WORD)

    def blocks(self, lines: Iterable[RawLine]) -> Iterator[Iterable[RawLine]]:
        return between_blank_lines(lines, separator=b"-DOCSTART-")

    def parse(self, lines: Iterator[Line]) -> Iterator[Sentence]:
        comments, lines = _leading_comments(lines, self.columns)
        document = next(filter(None, map(document_in, comments)), "")
        rows: list[Sequence[str]] = []
        first = 0
        for number, text in lines:
            rows.append(checked_fields(_fields(text), self.columns, number))
            first = first or number
        if rows:
            values = {
                name: tuple(row[at] for row in rows)
                for at, name in enumerate(self.columns)
                if name != IGNORED
            }
            yield Sentence(values.pop(WORD), values, document=document, line=first)


def _leading_comments(
    lines: Iterator[Line], columns: Sequence[str]
) -> tuple[list[str], Iterator[Line]]:
    """The comments before the first word, and the lines of words."""
    leading: list[Line] = []
    for line in lines:
        leading.append(line)
        if not line[1].startswith("#"):
            break
    tabs = "\t" in leading[-1][1]

    def is_comment(text: str) -> bool:
        complete = len(_fields(text)) == len(columns) and ("\t" in text or not tabs)
        return text.startswith("#") and not complete

    comments = [text for _, text in leading if is_comment(text)]
    words = [line for line in leading if not is_comment(line[1])]
    return comments, chain(words, lines)


def _fields(text: str) -> list[str]:
    return text.split("\t") if "\t" in text else [part for part in text.split(" ") if part]
