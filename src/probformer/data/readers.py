"""Sentences from files, one at a time: a corpus may be larger than memory.

`read_text`, `read_conllu` and `read_columns` return a `SentenceFile`, which reads its file anew
each time it is iterated over. A file whose name ends in `.gz` is decompressed on the way.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from probformer.data.sentence import NO_HEAD, Sentence
from probformer.errors import InputError, require, require_kind, require_one_of

Format = Literal["text", "conllu", "columns"]
FilePath = str | os.PathLike[str]

WORD = "word"
IGNORED = "_"
"""In the names of columns: a field that nobody needs."""

_CONLLU_FIELDS = 10
_CONLLU_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "deprel": 7}
_CONLLU_FORM, _CONLLU_HEAD = 1, 6
_NO_WORD = re.compile(r"\d+[-.]\d+", re.ASCII)  # a multiword range or an empty node
_HEAD = re.compile(r"\d{1,9}", re.ASCII)
_REMEMBERED_PROBLEMS = 10

_RawLine = tuple[int, bytes]
_Line = tuple[int, str]


@dataclass
class ReadReport:
    """What one pass over a file left out."""

    skipped: int = 0
    """Sentences that a bad line spoiled."""
    problems: list[tuple[int, str]] = field(default_factory=list)
    """The line and the reason of the first ten of them."""

    def add(self, line: int, reason: str) -> None:
        self.skipped += 1
        if len(self.problems) < _REMEMBERED_PROBLEMS:
            self.problems.append((line, reason))


@dataclass
class SentenceFile:
    """The sentences of a file, read anew in each loop over it."""

    path: FilePath
    format: Format = "text"
    columns: Sequence[str] = ()
    """Only for the format "columns": the names of the fields, one of them "word"."""
    skip_bad_lines: bool = False
    """Leave out a sentence with a bad line and count it in `report`, instead of stopping."""
    drop_docstart: bool = False
    """Only for the format "columns": treat lines with the field -DOCSTART- as blank."""
    report: ReadReport = field(default_factory=ReadReport, init=False, compare=False)
    """What the latest pass over the file left out so far."""

    def __post_init__(self) -> None:
        require_kind("path", self.path, str, os.PathLike)
        require_one_of("format", self.format, ("text", "conllu", "columns"))
        if self.format == "columns":
            _check_column_names(self.columns)
            self.columns = tuple(self.columns)
        else:
            alone = "is only for the format 'columns'"
            require(not self.columns, f"columns {alone}, got {self.format!r}")
            require(not self.drop_docstart, f"drop_docstart {alone}, got {self.format!r}")

    def __iter__(self) -> Iterator[Sentence]:
        report = self.report = ReadReport()
        found = False
        for block in self._blocks():
            try:
                sentence = self._parse(_decoded(block))
            except _BadLine as bad:
                if not self.skip_bad_lines:
                    message = f"{os.fspath(self.path)}:{bad.line}: {bad.reason}"
                    raise InputError(message) from None
                report.add(bad.line, bad.reason)
                continue
            if sentence is not None:
                found = True
                yield sentence
        require(found, f"{os.fspath(self.path)}: {_why_nothing_was_found(report)}")

    def _blocks(self) -> Iterator[Iterator[_RawLine]]:
        """The lines of each sentence; what a parser leaves unread of them is skipped."""
        lines = _numbered_lines(self.path)
        if self.format == "text":
            for line in lines:
                yield iter([line])
        else:
            for blank, block in groupby(lines, self._is_blank):
                if not blank:
                    yield block

    def _is_blank(self, line: _RawLine) -> bool:
        fields = line[1].split()
        return not fields or (self.drop_docstart and b"-DOCSTART-" in fields)

    def _parse(self, lines: Iterator[_Line]) -> Sentence | None:
        if self.format == "text":
            return _parse_text(lines)
        if self.format == "conllu":
            return _parse_conllu(lines)
        return _parse_columns(lines, self.columns)


def read_text(path: FilePath, *, skip_bad_lines: bool = False) -> SentenceFile:
    """One sentence a line, words separated by white space; blank lines are skipped."""
    return SentenceFile(path, "text", skip_bad_lines=skip_bad_lines)


def read_conllu(path: FilePath, *, skip_bad_lines: bool = False) -> SentenceFile:
    """Universal Dependencies: words, heads and the columns "lemma", "upos", "xpos", "deprel".

    Only words of the tree count: multiword ranges and empty nodes are skipped. The heads of a
    sentence are None where any of them is "_".
    """
    return SentenceFile(path, "conllu", skip_bad_lines=skip_bad_lines)


def read_columns(
    path: FilePath,
    columns: Sequence[str],
    *,
    skip_bad_lines: bool = False,
    drop_docstart: bool = False,
) -> SentenceFile:
    """One word a line, sentences separated by blank lines, as in the CoNLL shared tasks.

    `columns` names the fields in order: one is "word", and those named "_" are ignored. Fields are
    separated by tabs, or by spaces in a line without tabs. Before the first word of a sentence, a
    line that starts with "# " and has fewer fields than there are columns is a comment.
    """
    return SentenceFile(path, "columns", columns, skip_bad_lines, drop_docstart)


class _BadLine(Exception):
    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason


def _check_column_names(columns: Sequence[str]) -> None:
    named = not isinstance(columns, str) and isinstance(columns, Sequence)
    named = named and all(isinstance(name, str) and name for name in columns)
    require(named, f"columns must be a sequence of names, got {columns!r}")
    used = [name for name in columns if name != IGNORED]
    require(WORD in used, f"columns must have one named {WORD!r}, got {columns!r}")
    require(len(set(used)) == len(used), f"columns must have different names, got {columns!r}")


def _why_nothing_was_found(report: ReadReport) -> str:
    if not report.skipped:
        return "the file has no sentence, expected at least one"
    line, reason = report.problems[0]
    return f"all {report.skipped} sentences have bad lines, the first is line {line}: {reason}"


def _numbered_lines(path: FilePath) -> Iterator[_RawLine]:
    """The lines of a file from 1 on, as bytes: decoding may fail, and is a matter of one line."""
    name = os.fspath(path)
    number = 0
    try:
        with ExitStack() as files:
            file = files.enter_context(open(name, "rb"))
            lines: Iterable[bytes] = file
            if name.endswith(".gz"):
                lines = files.enter_context(gzip.GzipFile(fileobj=file))
            for number, line in enumerate(lines, start=1):
                yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        what = "is truncated" if isinstance(error, EOFError) else "is damaged or not gzip"
        raise InputError(
            f"{name}:{number + 1}: the compressed file {what}, expected a complete gzip file"
        ) from None
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{name}: this is a folder, expected a file") from None
    except (OSError, ValueError) as error:  # a ValueError: the name holds a null character
        raise InputError(f"{name}: the file cannot be read: {error}") from None


def _decoded(lines: Iterable[_RawLine]) -> Iterator[_Line]:
    for number, line in lines:
        try:
            yield number, line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            reason = f"byte {error.start + 1} of the line is not UTF-8, expected UTF-8 text"
            raise _BadLine(number, reason) from None


def _parse_text(lines: Iterator[_Line]) -> Sentence | None:
    words = [word for _, text in lines for word in text.split()]
    return Sentence(tuple(words)) if words else None


def _parse_conllu(lines: Iterator[_Line]) -> Sentence | None:
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, text in lines:
        if text.startswith("#"):
            continue
        fields = text.split("\t")
        if len(fields) != _CONLLU_FIELDS:
            reason = f"{len(fields)} tab-separated fields, expected {_CONLLU_FIELDS}"
            raise _BadLine(number, reason)
        if _NO_WORD.fullmatch(fields[0]):
            continue
        if fields[0] != str(len(rows) + 1):
            raise _BadLine(number, f"the word's id is {fields[0]!r}, expected {len(rows) + 1}")
        if not fields[_CONLLU_FORM]:
            raise _BadLine(number, "the word is empty, expected a text")
        rows.append(fields)
        numbers.append(number)
    if not rows:
        return None
    columns = {name: tuple(row[at] for row in rows) for name, at in _CONLLU_COLUMNS.items()}
    heads = _conllu_heads([row[_CONLLU_HEAD] for row in rows], numbers)
    return Sentence(tuple(row[_CONLLU_FORM] for row in rows), columns, heads)


def _conllu_heads(heads: list[str], numbers: list[int]) -> tuple[int, ...] | None:
    """From ids, where 0 is the root, to positions."""
    for position, (head, number) in enumerate(zip(heads, numbers, strict=True)):
        if head == "_":
            continue
        if not (_HEAD.fullmatch(head) and int(head) <= len(heads)):
            expected = f"expected a number from 0 to {len(heads)}, or '_'"
            raise _BadLine(number, f"the head is {head!r}, {expected}")
        if int(head) == position + 1:
            raise _BadLine(number, f"the head is {head}, the word itself, expected another word")
    if "_" in heads:
        return None
    return tuple(int(head) - 1 if int(head) else NO_HEAD for head in heads)


def _parse_columns(lines: Iterator[_Line], columns: Sequence[str]) -> Sentence | None:
    rows: list[list[str]] = []
    for number, text in lines:
        fields = text.split("\t") if "\t" in text else [part for part in text.split(" ") if part]
        if not rows and text.startswith("# ") and len(fields) < len(columns):
            continue
        if len(fields) != len(columns):
            listed = ", ".join(columns)
            reason = f"{len(fields)} fields, expected {len(columns)}: {listed}"
            raise _BadLine(number, reason)
        for name, value in zip(columns, fields, strict=True):
            if not value and name != IGNORED:
                raise _BadLine(number, f"the field {name!r} is empty, expected a text")
        rows.append(fields)
    if not rows:
        return None
    values = {
        name: tuple(row[at] for row in rows) for at, name in enumerate(columns) if name != IGNORED
    }
    return Sentence(values.pop(WORD), values)
