"""The format "conllu", that of Universal Dependencies: reading and writing CoNLL-U."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from probformer.data.formats.format import (
    BadLine,
    Format,
    Line,
    RawLine,
    between_blank_lines,
    document_in,
)
from probformer.data.sentence import Sentence
from probformer.errors import counted, shortened
from probformer.sentinels import ROOT

_FIELDS = 10
_FORM, _HEAD, _RELATION, _ENHANCED = 1, 6, 7, 8
_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "deprel": 7}
_WRITTEN_COLUMNS = ("lemma", "upos", "xpos")
_NO_WORD = re.compile(r"\d+[-.]\d+", re.ASCII)  # a multiword range or an empty node
_WORD_LINE = re.compile(r" *\d+ *\t", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class Conllu(Format):
    """Multiword ranges and empty nodes are skipped: they are no words of the tree.

    The heads of a sentence are None where any of them is "_".
    """

    name = "conllu"
    written = "as in Universal Dependencies"
    gold = "`lemma`, `upos`, `xpos`, `deprel`, heads"
    suffix = ".conllu"

    def blocks(self, lines: Iterable[RawLine]) -> Iterator[Iterable[RawLine]]:
        return between_blank_lines(lines)

    def parse(self, lines: Iterator[Line]) -> Iterator[Sentence]:
        rows: list[list[str]] = []
        numbers: list[int] = []
        document = ""
        for number, text in lines:
            if text.startswith("#"):
                document = document_in(text) or document
                continue
            fields = [field.strip(" ") for field in text.split("\t")]
            if len(fields) != _FIELDS:
                found = counted(len(fields), "tab-separated field")
                raise BadLine(number, f"{found}, expected {_FIELDS}")
            if _NO_WORD.fullmatch(fields[0]):
                continue
            if fields[0] != str(len(rows) + 1):
                found = f"the word's id is {shortened(fields[0])}"
                raise BadLine(number, f"{found}, expected {len(rows) + 1}")
            for name, at in (("word", _FORM), *_COLUMNS.items()):
                if not fields[at].strip():
                    raise BadLine(number, f"the {name} is empty, expected a text")
            rows.append(fields)
            numbers.append(number)
        if rows:
            columns = {name: tuple(row[at] for row in rows) for name, at in _COLUMNS.items()}
            words = tuple(row[_FORM] for row in rows)
            heads = _heads([row[_HEAD] for row in rows], numbers)
            yield Sentence(words, columns, heads, document=document, line=numbers[0])


def _heads(heads: list[str], numbers: list[int]) -> tuple[int, ...] | None:
    """From ids, where 0 is the root, to positions."""
    for position, (head, number) in enumerate(zip(heads, numbers, strict=True)):
        if head == "_":
            continue
        if not (_NUMBER.fullmatch(head) and int(head) <= len(heads)):
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


def as_conllu(sentence: Sentence) -> Iterator[str]:
    """The lines of a sentence without heads, and a blank line after them."""
    for number, word in enumerate(sentence.words, start=1):
        known = [sentence.columns.get(name, "_" * len(sentence)) for name in _WRITTEN_COLUMNS]
        yield "\t".join([str(number), word, *(column[number - 1] for column in known), *"_____"])
    yield ""


def with_heads(lines: Iterable[str], heads: Iterable[int]) -> Iterator[str]:
    """The lines of a CoNLL-U file with other heads, all else unchanged.

    The relation of a word to its new head is written as "root" or "dep". Enhanced dependencies,
    which build on the old heads, are left out.

    Args:
        lines: The lines of the file.
        heads: One for each word in the file: the position of its head in the sentence, or `ROOT`.
    """
    rest = iter(heads)
    for line in lines:
        if _WORD_LINE.match(line):
            fields, head = line.split("\t"), next(rest)
            fields[_HEAD], fields[_RELATION] = str(head + 1), "dep" if head >= 0 else "root"
            fields[_ENHANCED] = "_"
            line = "\t".join(fields)
        yield line
    assert next(rest, None) is None, "more heads than words in the file"
