"""The format "tsv": one sentence per line, its text in one of several fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from probformer.data.formats.format import (
    BadLine,
    Format,
    Line,
    check_column_names,
    checked_fields,
)
from probformer.data.sentence import Sentence

TEXT, LABEL, LOGICAL_FORM = "text", "label", "logical_form"


@dataclass(frozen=True)
class Tsv(Format):
    """Fields are separated by tabs.

    If the text is the last field, a line without tabs is split at spaces, as in "3 so so".
    """

    name = "tsv"
    written = (
        "a line with the fields that `data.columns` names: `text`, `label`, `logical_form`, `_`"
    )
    gold = "label, logical form"

    columns: Sequence[str] = ()
    """The names of the fields, in order."""

    def __post_init__(self) -> None:
        check_column_names(self.columns, TEXT, (TEXT, LABEL, LOGICAL_FORM))

    def parse(self, lines: Iterator[Line]) -> Iterator[Sentence]:
        columns = self.columns
        by_spaces = columns[-1] == TEXT
        for number, text in lines:
            if not text.strip():
                continue
            tabs = "\t" in text or not by_spaces
            fields = text.split("\t") if tabs else text.split(None, len(columns) - 1)
            values = dict(zip(columns, checked_fields(fields, columns, number), strict=True))
            words = values[TEXT].split()
            if not words:
                raise BadLine(number, "the field 'text' is empty, expected words")
            label, form = values.get(LABEL), values.get(LOGICAL_FORM)
            yield Sentence(tuple(words), label=label, logical_form=form, line=number)
