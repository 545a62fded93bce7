"""Sentences from files, one at a time: a corpus may be larger than memory.

Files compressed by gzip are decompressed while they are read.
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from probformer.data.formats import BadLine, Line, RawLine
from probformer.data.formats.format import build_format
from probformer.data.sentence import Sentence, place_in_file
from probformer.errors import InputError, require, require_kind

FilePath = str | os.PathLike[str]

_GZIP = b"\x1f\x8b"
_REMEMBERED_PROBLEMS = 10


@dataclass
class ReadReport:
    """What one pass over a file left out."""

    skipped: int = 0
    """Blocks of lines, such as sentences, that were left out because of a bad line."""
    problems: list[tuple[int, str]] = field(default_factory=list)
    """The line and the reason of the first ten of them."""

    def add(self, line: int, reason: str) -> None:
        self.skipped += 1
        if len(self.problems) < _REMEMBERED_PROBLEMS:
            self.problems.append((line, reason))


@dataclass
class SentenceFile:
    """The sentences of a file; each loop over it reads the file again.

    Args:
        path: The file, compressed by gzip or not.
        format: The name of a registered format; `probformer.data.formats` has them.
        columns: For the formats "tsv" and "columns": the names of the fields in order, "_" for a
            field that is not read.
        skip_bad_lines: Leave out a sentence with a bad line and count it in `report`, instead of
            raising an error.
        prepare: For the format "mrg": "bllip" keeps words only, in lower case, with N for digits.

    Raises:
        InputError: When the file is read: `path:line: reason` for a bad line, with the id of its
            sentence after the line if the file has one; or the path and why the file cannot be
            read, or that it has no sentence.
    """

    path: FilePath
    format: str = "text"
    columns: Sequence[str] = ()
    skip_bad_lines: bool = False
    prepare: str | None = None
    report: ReadReport = field(default_factory=ReadReport, init=False, compare=False)
    """What the latest pass over the file left out so far."""

    def __post_init__(self) -> None:
        require_kind("path", self.path, str, os.PathLike)
        self._format = build_format(self.format, columns=self.columns, prepare=self.prepare)
        self.columns = tuple(self.columns)

    def __iter__(self) -> Iterator[Sentence]:
        path, report = os.fspath(self.path), ReadReport()
        self.report = report
        found, document = False, ""
        for block in self._format.blocks(_numbered_lines(self.path)):
            try:
                sentences = list(self._format.parse(_decoded(block)))
            except BadLine as bad:
                if not self.skip_bad_lines:
                    place = place_in_file(path, bad.line, bad.sentence)
                    raise InputError(f"{place}: {bad.reason}") from None
                report.add(bad.line, bad.reason)
                continue
            for sentence in sentences:
                found, document = True, sentence.document or document
                yield replace(sentence, path=path, document=document)
        require(found, f"{path}: {_why_nothing_was_found(report)}")


def lines_of(source: FilePath | BinaryIO) -> Iterator[str]:
    """The lines of a text file, or of a stream of bytes."""
    named = isinstance(source, (str, os.PathLike))
    name = os.fspath(source) if named else "standard input"
    numbered = _numbered_lines(source) if named else _numbered(source)
    try:
        for _, text in _decoded(numbered):
            yield text
    except BadLine as bad:
        raise InputError(f"{name}:{bad.line}: {bad.reason}") from None


def _why_nothing_was_found(report: ReadReport) -> str:
    if not report.skipped:
        return "the file has no sentence, expected at least one"
    line, reason = report.problems[0]
    return f"all {report.skipped} sentences have bad lines, the first is line {line}: {reason}"


def _numbered_lines(path: FilePath) -> Iterator[RawLine]:
    """The lines of a file from 1 on, as bytes: where decoding fails, one line is to blame."""
    name = os.fspath(path)
    number = 0
    try:
        with ExitStack() as files:
            file = files.enter_context(open(name, "rb"))
            lines: Iterable[bytes] = file
            if file.peek(2).startswith(_GZIP):
                lines = files.enter_context(gzip.GzipFile(fileobj=file))
            for number, line in _numbered(lines):
                yield number, line
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


def _numbered(lines: Iterable[bytes]) -> Iterator[RawLine]:
    """From 1 on, without the byte order mark that some programs write first."""
    for number, line in enumerate(lines, start=1):
        yield number, line.removeprefix(codecs.BOM_UTF8)


def _decoded(lines: Iterable[RawLine]) -> Iterator[Line]:
    for number, line in lines:
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            reason = f"byte {error.start + 1} of the line is not UTF-8, expected UTF-8 text"
            raise BadLine(number, reason) from None
        for sign, name in (("\0", "a null character"), ("\r", "a carriage return")):
            if sign in text:
                raise BadLine(number, f"{name} inside the line, expected lines of text")
        yield number, text
