"""Sentences from files, one at a time: a corpus may be larger than memory.

A file compressed by gzip is decompressed on the way.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import BinaryIO, Literal, get_args

from probformer.data.formats import (
    LABEL,
    LOGICAL_FORM,
    TEXT,
    WORD,
    BadLine,
    Line,
    check_column_names,
    parse_columns,
    parse_conllu,
    parse_text,
    parse_trees,
    parse_tsv,
)
from probformer.data.sentence import Sentence
from probformer.errors import InputError, require, require_kind, require_one_of

Format = Literal["text", "tsv", "columns", "conllu", "mrg"]
FilePath = str | os.PathLike[str]

_GZIP = b"\x1f\x8b"
_TREE_BEGINS = re.compile(rb"\s*\(\s*\(")
_REMEMBERED_PROBLEMS = 10

_RawLine = tuple[int, bytes]


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
    """The sentences of a file, read anew in each loop over it.

    - "text": a sentence a line, words separated by white space.
    - "tsv": a sentence a line, and what is known about it: `columns` names the fields, which are
      "text" and perhaps "label" or "logical_form".
    - "columns": a word a line and a blank line after each sentence, as in the CoNLL shared tasks:
      `columns` names the fields, one of them "word". Lines with -DOCSTART- count as blank.
    - "conllu": Universal Dependencies, with heads and the columns "lemma", "upos", "xpos" and
      "deprel". The heads of a sentence are None where any of them is "_".
    - "mrg": trees of the Penn Treebank, with the column "xpos"; traces are left out.
    """

    path: FilePath
    format: Format = "text"
    columns: Sequence[str] = ()
    """For "tsv" and "columns": the names of the fields in order, "_" for one to ignore."""
    skip_bad_lines: bool = False
    """Leave out a sentence with a bad line, and count it in `report`, instead of stopping."""
    prepare: Literal["bllip"] | None = None
    """For "mrg": words only, in lower case, with N for digits, as the paper prepares BLLIP."""
    report: ReadReport = field(default_factory=ReadReport, init=False, compare=False)
    """What the latest pass over the file left out so far."""

    def __post_init__(self) -> None:
        require_kind("path", self.path, str, os.PathLike)
        require_one_of("format", self.format, get_args(Format))
        if self.format == "columns":
            check_column_names(self.columns, WORD)
        elif self.format == "tsv":
            check_column_names(self.columns, TEXT, (TEXT, LABEL, LOGICAL_FORM))
        else:
            message = "columns is only for the formats 'tsv' and 'columns'"
            require(not self.columns, f"{message}, got {self.format!r}")
        self.columns = tuple(self.columns)
        message = f"prepare is only for the format 'mrg', got {self.format!r}"
        require(self.prepare is None or self.format == "mrg", message)

    def __iter__(self) -> Iterator[Sentence]:
        path, report = os.fspath(self.path), ReadReport()
        self.report = report
        found, document = False, ""
        for block in self._blocks():
            try:
                sentences = list(self._parse(_decoded(block)))
            except BadLine as bad:
                if not self.skip_bad_lines:
                    raise InputError(f"{path}:{bad.line}: {bad.reason}") from None
                report.add(bad.line, bad.reason)
                continue
            for sentence in sentences:
                found, document = True, sentence.document or document
                yield replace(sentence, path=path, document=document)
        require(found, f"{path}: {_why_nothing_was_found(report)}")

    def _blocks(self) -> Iterator[Iterator[_RawLine]]:
        """Lines that belong together; what a parser leaves unread of them is skipped."""
        lines = _numbered_lines(self.path)
        if self.format in ("text", "tsv"):
            for line in lines:
                yield iter([line])
        elif self.format == "mrg":
            yield from _tree_blocks(lines)
        else:
            for blank, block in groupby(lines, self._is_blank):
                if not blank:
                    yield block

    def _is_blank(self, line: _RawLine) -> bool:
        fields = line[1].split()
        return not fields or (self.format == "columns" and b"-DOCSTART-" in fields)

    def _parse(self, lines: Iterator[Line]) -> Iterator[Sentence]:
        match self.format:
            case "text":
                return parse_text(lines)
            case "tsv":
                return parse_tsv(lines, self.columns)
            case "columns":
                return parse_columns(lines, self.columns)
            case "conllu":
                return parse_conllu(lines)
            case "mrg":
                return parse_trees(lines, self.prepare)


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


def _tree_blocks(lines: Iterable[_RawLine]) -> Iterator[Iterator[_RawLine]]:
    """Lines up to the end of a tree: words have no brackets in them.

    A bracket without a name begins a tree, even if the one before it has no end.
    """
    block: list[_RawLine] = []
    depth = 0
    for number, line in lines:
        if depth > 0 and _TREE_BEGINS.match(line):
            yield iter(block)
            block, depth = [], 0
        block.append((number, line))
        depth += line.count(b"(") - line.count(b")")
        if depth <= 0:
            yield iter(block)
            block, depth = [], 0
    yield iter(block)


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


def _numbered(lines: Iterable[bytes]) -> Iterator[_RawLine]:
    """From 1 on, without the mark that some programs put before the first letter."""
    for number, line in enumerate(lines, start=1):
        yield number, line.removeprefix(codecs.BOM_UTF8)


def _decoded(lines: Iterable[_RawLine]) -> Iterator[Line]:
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
