"""How each format writes a sentence: from the lines of a sentence to the sentence.

A line that is wrong raises `BadLine`; where it is from, and what becomes of it, is the reader's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

from probformer.data.brackets import BadTree, as_in_bllip, leaves_of_trees, without_traces
from probformer.data.sentence import Sentence
from probformer.errors import counted, require, shortened
from probformer.sentinels import ROOT

Line = tuple[int, str]

WORD, TEXT = "word", "text"
LABEL, LOGICAL_FORM = "label", "logical_form"
IGNORED = "_"
"""In the names of columns: a field that nobody needs."""

_CONLLU_FIELDS = 10
_CONLLU_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "deprel": 7}
_CONLLU_FORM, _CONLLU_HEAD = 1, 6
_NO_WORD = re.compile(r"\d+[-.]\d+", re.ASCII)  # a multiword range or an empty node
_HEAD = re.compile(r"\d{1,9}", re.ASCII)
_DOCUMENT = re.compile(r"#\s*(?:newdoc|doc)\b(?:\s+id)?\s*=?\s*(.*)")


class BadLine(Exception):
    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason


def check_column_names(columns: Sequence[str], needed: str, known: Sequence[str] = ()) -> None:
    """Names are different, one is `needed`, and all are `known` if there is a list of those."""
    named = not isinstance(columns, str) and isinstance(columns, Sequence)
    named = named and all(isinstance(name, str) and name for name in columns)
    require(named, f"columns must be a sequence of names, got {columns!r}")
    used = [name for name in columns if name != IGNORED]
    require(needed in used, f"columns must have one named {needed!r}, got {columns!r}")
    require(len(set(used)) == len(used), f"columns must have different names, got {columns!r}")
    for name in used:
        allowed = f"columns must be named {', '.join(known)} or {IGNORED}"
        require(not known or name in known, f"{allowed}, got {name!r}")


def parse_text(lines: Iterator[Line]) -> Iterator[Sentence]:
    """Words separated by white space."""
    for number, text in lines:
        if words := text.split():
            yield Sentence(tuple(words), line=number)


def parse_tsv(lines: Iterator[Line], columns: Sequence[str]) -> Iterator[Sentence]:
    """A sentence a line: its text and what is known about it.

    Fields are separated by tabs; where the text comes last, as in "3 so so", also by spaces.
    """
    by_spaces = columns[-1] == TEXT
    for number, text in lines:
        if not text.strip():
            continue
        tabs = "\t" in text or not by_spaces
        fields = text.split("\t") if tabs else text.split(None, len(columns) - 1)
        values = dict(zip(columns, _checked(fields, columns, number), strict=True))
        words = values[TEXT].split()
        if not words:
            raise BadLine(number, "the field 'text' is empty, expected words")
        label, form = values.get(LABEL), values.get(LOGICAL_FORM)
        yield Sentence(tuple(words), label=label, logical_form=form, line=number)


def parse_columns(lines: Iterator[Line], columns: Sequence[str]) -> Iterator[Sentence]:
    """A word a line, as in the CoNLL shared tasks.

    Fields are separated by tabs, or by spaces in a line without tabs. Before the first word, lines
    that start with "#" are comments unless they have all the fields, with tabs if others have.
    """
    comments, lines = _leading_comments(lines, columns)
    document = next(filter(None, map(_document, comments)), "")
    rows: list[Sequence[str]] = []
    first = 0
    for number, text in lines:
        rows.append(_checked(_fields(text), columns, number))
        first = first or number
    if rows:
        values = {
            name: tuple(row[at] for row in rows)
            for at, name in enumerate(columns)
            if name != IGNORED
        }
        yield Sentence(values.pop(WORD), values, document=document, line=first)


def parse_trees(lines: Iterator[Line], prepare: Literal["bllip"] | None) -> Iterator[Sentence]:
    """Trees in brackets: tagged words without traces, or as the paper prepares BLLIP."""
    kept = as_in_bllip if prepare == "bllip" else without_traces
    try:
        for number, leaves in leaves_of_trees(lines):
            if pairs := kept(leaves):
                tags, words = zip(*pairs, strict=True)
                yield Sentence(words, {"xpos": tags}, line=number)
    except BadTree as bad:
        raise BadLine(bad.line, bad.reason) from None


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
        whole = len(_fields(text)) == len(columns) and ("\t" in text or not tabs)
        return text.startswith("#") and not whole

    comments = [text for _, text in leading if is_comment(text)]
    words = [line for line in leading if not is_comment(line[1])]
    return comments, chain(words, lines)


def _fields(text: str) -> list[str]:
    return text.split("\t") if "\t" in text else [part for part in text.split(" ") if part]


def _checked(fields: Sequence[str], columns: Sequence[str], number: int) -> list[str]:
    if len(fields) != len(columns):
        found, listed = counted(len(fields), "field"), ", ".join(columns)
        raise BadLine(number, f"{found}, expected {len(columns)}: {listed}")
    fields = [field.strip(" ") for field in fields]
    for name, value in zip(columns, fields, strict=True):
        if not value.strip() and name != IGNORED:
            raise BadLine(number, f"the field {name!r} is empty, expected a text")
    return fields


def _document(comment: str) -> str:
    found = _DOCUMENT.match(comment)
    return found[1].strip() if found else ""


def parse_conllu(lines: Iterator[Line]) -> Iterator[Sentence]:
    """Universal Dependencies: multiword ranges and empty nodes are no words of the tree."""
    rows: list[list[str]] = []
    numbers: list[int] = []
    document = ""
    for number, text in lines:
        if text.startswith("#"):
            document = _document(text) or document
            continue
        fields = [field.strip(" ") for field in text.split("\t")]
        if len(fields) != _CONLLU_FIELDS:
            found = counted(len(fields), "tab-separated field")
            raise BadLine(number, f"{found}, expected {_CONLLU_FIELDS}")
        if _NO_WORD.fullmatch(fields[0]):
            continue
        if fields[0] != str(len(rows) + 1):
            found = f"the word's id is {shortened(fields[0])}"
            raise BadLine(number, f"{found}, expected {len(rows) + 1}")
        for name, at in (("word", _CONLLU_FORM), *_CONLLU_COLUMNS.items()):
            if not fields[at].strip():
                raise BadLine(number, f"the {name} is empty, expected a text")
        rows.append(fields)
        numbers.append(number)
    if rows:
        columns = {name: tuple(row[at] for row in rows) for name, at in _CONLLU_COLUMNS.items()}
        words = tuple(row[_CONLLU_FORM] for row in rows)
        heads = _conllu_heads([row[_CONLLU_HEAD] for row in rows], numbers)
        yield Sentence(words, columns, heads, document=document, line=numbers[0])


def _conllu_heads(heads: list[str], numbers: list[int]) -> tuple[int, ...] | None:
    """From ids, where 0 is the root, to positions."""
    for position, (head, number) in enumerate(zip(heads, numbers, strict=True)):
        if head == "_":
            continue
        if not (_HEAD.fullmatch(head) and int(head) <= len(heads)):
            expected = f"expected a number from 0 to {len(heads)}, or '_'"
            raise BadLine(number, f"the head is {shortened(head)}, {expected}")
        if int(head) == position + 1:
            raise BadLine(number, f"the head is {head}, the word itself, expected another word")
    if "_" in heads:
        return None
    found = tuple(int(head) - 1 if int(head) else ROOT for head in heads)
    if (word := _word_in_a_cycle(found)) is not None:
        raise BadLine(numbers[word], "the heads from this word on lead back to it, expected a tree")
    return found


def _word_in_a_cycle(heads: Sequence[int]) -> int | None:
    rooted: set[int] = {ROOT}
    for start in range(len(heads)):
        path, word = set[int](), start
        while word not in rooted:
            if word in path:
                return word
            path.add(word)
            word = heads[word]
        rooted |= path
    return None
