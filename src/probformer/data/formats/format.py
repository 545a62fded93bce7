"""What a format is, the registry of formats, and what several formats share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, ClassVar, TypeVar

from probformer.data.sentence import Sentence
from probformer.errors import counted, require, require_one_of

Line = tuple[int, str]
"""A line and its number in the file, from 1."""
RawLine = tuple[int, bytes]
"""The same before decoding."""

IGNORED = "_"
"""The name of a column that is not read."""

_DOCUMENT = re.compile(r"#\s*(?:newdoc|doc)\b(?:\s+id)?\s*=?\s*(.*)")


class BadLine(Exception):
    """A line that breaks the rules of its format, and which rule.

    Args:
        line: The number of the line in the file, from 1.
        reason: What is wrong and what was expected, without the file and the line.
        sentence: The id of the sentence, if the file gives it one.
    """

    def __init__(self, line: int, reason: str, sentence: str = "") -> None:
        super().__init__(line, reason, sentence)
        self.line = line
        self.reason = reason
        self.sentence = sentence


@dataclass(frozen=True)
class Format(ABC):
    """How sentences are written in a file. Subclasses are frozen dataclasses.

    The fields of the dataclass are the settings that the format takes: `columns` and `prepare`, as
    in `FileData`. A setting that the format does not take is refused.
    """

    name: ClassVar[str]
    """The value of `data.format`."""
    written: ClassVar[str]
    """How a sentence is written, for the table of formats in the documentation."""
    gold: ClassVar[str] = ""
    """The gold annotation that sentences have, for the same table."""
    suffix: ClassVar[str] = ""
    """Files whose names end in this are in this format, unless a format is named: ".conllu"."""

    def blocks(self, lines: Iterable[RawLine]) -> Iterator[Iterable[RawLine]]:
        """Groups of lines that are parsed, or skipped, together: by default, each line alone."""
        for line in lines:
            yield [line]

    @abstractmethod
    def parse(self, lines: Iterator[Line]) -> Iterator[Sentence]:
        """The sentences in a block, none if it has none.

        Args:
            lines: The numbered lines of one block, decoded.

        Returns:
            Sentences whose `line` is the number of their first line; `path` is filled in later.

        Raises:
            BadLine: A line breaks the rules of the format. The reader skips the block, or reports
                the error with the path of the file.
        """


_FORMATS: dict[str, type[Format]] = {}
AnyFormat = TypeVar("AnyFormat", bound=type[Format])


def register_format(format: AnyFormat) -> AnyFormat:
    """Make a format available by its name, in `FileData(format=…)` and in `data.format`.

    Args:
        format: A subclass of `Format`.

    Returns:
        The same class, so that this may be used as a decorator.
    """
    name = getattr(format, "name", None)
    require(isinstance(name, str) and bool(name), f"a format must have a name, got {name!r}")
    known = _FORMATS.setdefault(format.name, format)
    require(known is format, f"there is a format named {name!r} already: {known.__qualname__}")
    return format


def find_format(name: str, setting: str = "format") -> type[Format]:
    """The class of a registered format; error messages name the `setting` that chose it."""
    require_one_of(setting, name, _FORMATS)
    return _FORMATS[name]


def format_names() -> list[str]:
    """The names of all registered formats."""
    return list(_FORMATS)


def formats_by_suffix() -> dict[str, str]:
    """The names of formats by the suffix of file names, such as ".conllu"."""
    return {format.suffix: name for name, format in _FORMATS.items() if format.suffix}


def settings_of(format: type[Format]) -> list[str]:
    """The names of the settings that a format takes."""
    return [field.name for field in fields(format)]


def build_format(name: str, **settings: Any) -> Format:
    """A format with its settings; an empty value counts as not given."""
    format = find_format(name)
    given = {setting: value for setting, value in settings.items() if value}
    for setting in given:
        takers = [repr(other) for other, cls in _FORMATS.items() if setting in settings_of(cls)]
        formats = f"{'format' if len(takers) == 1 else 'formats'} {' and '.join(takers)}"
        taken = setting in settings_of(format)
        require(taken, f"{setting} is only for the {formats}, got {name!r}")
    return format(**given)


def between_blank_lines(lines: Iterable[RawLine], separator: bytes = b"") -> Iterator[Any]:
    """Groups of lines; a line with `separator` as one of its fields counts as blank."""

    def is_blank(line: RawLine) -> bool:
        fields = line[1].split()
        return not fields or (separator != b"" and separator in fields)

    for blank, block in groupby(lines, is_blank):
        if not blank:
            yield block


def check_column_names(columns: Sequence[str], needed: str, known: Sequence[str] = ()) -> None:
    """Refuse names unless they differ, one is `needed`, and `known`, if not empty, has them all."""
    named = not isinstance(columns, str) and isinstance(columns, Sequence)
    named = named and all(isinstance(name, str) and name for name in columns)
    require(named, f"columns must be a sequence of names, got {columns!r}")
    used = [name for name in columns if name != IGNORED]
    require(needed in used, f"columns must have one named {needed!r}, got {columns!r}")
    require(len(set(used)) == len(used), f"columns must have different names, got {columns!r}")
    for name in used:
        allowed = f"columns must be named {', '.join(known)} or {IGNORED}"
        require(not known or name in known, f"{allowed}, got {name!r}")


def checked_fields(fields: Sequence[str], columns: Sequence[str], number: int) -> list[str]:
    """The fields of a line without spaces around them: one for each column, none empty."""
    if len(fields) != len(columns):
        found, listed = counted(len(fields), "field"), ", ".join(columns)
        raise BadLine(number, f"{found}, expected {len(columns)}: {listed}")
    fields = [field.strip(" ") for field in fields]
    for name, value in zip(columns, fields, strict=True):
        if not value.strip() and name != IGNORED:
            raise BadLine(number, f"the field {name!r} is empty, expected a text")
    return fields


def document_in(comment: str) -> str:
    """The document that a comment like "# newdoc id = x" names, or nothing."""
    found = _DOCUMENT.match(comment)
    return found[1].strip() if found else ""
