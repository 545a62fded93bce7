"""The format "conllu", that of Universal Dependencies: reading and writing CoNLL-U."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from probformer.data.formats.format import (
    BadLine,
    Format,
    Line,
    RawLine,
    between_blank_lines,
    document_in,
)
from probformer.data.sentence import Sentence
from probformer.errors import InputError, counted, require, require_one_of, shortened
from probformer.sentinels import ROOT, UNOBSERVED

_FIELDS = 10
_FORM, _HEAD, _RELATION, _ENHANCED, _MISC = 1, 6, 7, 8, 9
_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "deprel": 7}
_WRITTEN_COLUMNS = ("lemma", "upos", "xpos")
TAG_COLUMNS = ("upos", "xpos")
"""The columns into which tags can be written."""
_NO_WORD = re.compile(r"\d+[-.]\d+", re.ASCII)  # a multiword range or an empty node
_WORD_LINE = re.compile(r" *\d+ *\t", re.ASCII)
_ONE_EACH = "there must be one annotation for each sentence with words"
_SENTENCE_ID = re.compile(r"#\s*sent_id\s*=(.*)")
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class Conllu(Format):
    """Multiword ranges and empty nodes are skipped: they are no words of the tree.

    A head "_" is not known: it becomes `UNOBSERVED`, and `heads` is None where no head is known.
    The id of a sentence is that of its comment "# sent_id = …".
    """

    name = "conllu"
    written = "as in Universal Dependencies"
    gold = "`lemma`, `upos`, `xpos`, `deprel`, heads"
    suffix = ".conllu"

    def blocks(self, lines: Iterable[RawLine]) -> Iterator[Iterable[RawLine]]:
        return between_blank_lines(lines)

    def parse(self, lines: Iterator[Line]) -> Iterator[Sentence]:
        sentence = sentence_in(lines)
        if sentence is not None:
            yield sentence


def is_conllu(line: str) -> bool:
    """Whether the first line of a text, which is not blank, makes it CoNLL-U."""
    return line.startswith("#") or line.count("\t") == _FIELDS - 1


def sentence_in(lines: Iterable[Line], with_heads: bool = True) -> Sentence | None:
    """The sentence of a block of numbered lines; None if there are no words in them.

    Args:
        lines: Comments, words, multiword ranges and empty nodes.
        with_heads: Whether heads are read and checked; if not, the sentence has none.

    Raises:
        BadLine: A line breaks the rules of CoNLL-U, or the heads form a cycle.
    """
    rows: list[list[str]] = []
    numbers: list[int] = []
    id, document = "", ""
    try:
        for number, text in lines:
            if text.startswith("#"):
                id, document = _id_in(text) or id, document_in(text) or document
            elif (fields := _word_in(text, number, len(rows) + 1)) is not None:
                rows.append(fields)
                numbers.append(number)
        heads = _heads(rows, numbers) if with_heads else None
    except BadLine as bad:
        raise BadLine(bad.line, bad.reason, id) from None
    if not rows:
        return None
    columns = {name: tuple(row[at] for row in rows) for name, at in _COLUMNS.items()}
    words = tuple(row[_FORM] for row in rows)
    others = numbers[-1] - numbers[0] >= len(numbers)  # ranges, empty nodes or comments
    place = {"line": numbers[0], "lines": tuple(numbers) if others else ()}
    return Sentence(words, columns, heads, document=document, id=id, **place)


def _id_in(comment: str) -> str:
    found = _SENTENCE_ID.match(comment)
    return found[1].strip() if found else ""


def _word_in(text: str, number: int, expected: int) -> list[str] | None:
    """The fields of a line, whose id is as expected; None for a range or an empty node."""
    fields = [field.strip(" ") for field in text.split("\t")]
    if len(fields) != _FIELDS:
        found = counted(len(fields), "tab-separated field")
        raise BadLine(number, f"{found}, expected {_FIELDS}")
    if _NO_WORD.fullmatch(fields[0]):
        return None
    if fields[0] != str(expected):
        found = f"the word's id is {shortened(fields[0])}"
        raise BadLine(number, f"{found}, expected {expected}")
    for name, at in (("word", _FORM), *_COLUMNS.items()):
        if not fields[at].strip():
            raise BadLine(number, f"the {name} is empty, expected a text")
    return fields


def _heads(rows: list[list[str]], numbers: list[int]) -> tuple[int, ...] | None:
    """From ids, where 0 is the root and "_" is not known, to positions; None if none is known."""

    def bad(word: int, reason: str) -> BadLine:
        named = f"word {word + 1}, {shortened(rows[word][_FORM])},"
        return BadLine(numbers[word], f"{named} {reason}")

    heads = [row[_HEAD] for row in rows]
    for word, head in enumerate(heads):
        if head == "_":
            continue
        if not (_NUMBER.fullmatch(head) and int(head) <= len(heads)):
            expected = f"expected a number from 0 to {len(heads)}, or '_'"
            raise bad(word, f"has the head {shortened(head)}, {expected}")
        if int(head) == word + 1:
            raise bad(word, "has itself as its head, expected another word")
    found = tuple(_position(head) for head in heads)
    if (word := _word_in_a_cycle(found)) is not None:
        raise bad(word, "is on a cycle of heads, expected a tree")
    return None if set(found) <= {UNOBSERVED} else found


def _position(head: str) -> int:
    if head == "_":
        return UNOBSERVED
    return int(head) - 1 if int(head) else ROOT


def _word_in_a_cycle(heads: Sequence[int]) -> int | None:
    rooted: set[int] = {ROOT, UNOBSERVED}
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
    if sentence.id:
        yield f"# sent_id = {sentence.id}"
    for number, word in enumerate(sentence.words, start=1):
        known = [sentence.columns.get(name, "_" * len(sentence)) for name in _WRITTEN_COLUMNS]
        yield "\t".join([str(number), word, *(column[number - 1] for column in known), *"_____"])
    yield ""


@dataclass(frozen=True)
class Annotation:
    """What `annotated` writes into a sentence of n words; what is not given stays as it is."""

    heads: Sequence[int] | None = None
    """n positions, or `ROOT`, or `UNOBSERVED`, which is written as "_"."""
    labels: Sequence[str] | None = None
    """n relations to the heads."""
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """n tags each, for the columns "upos" and "xpos"."""
    misc: Sequence[Mapping[str, str]] = ()
    """n times entries for the column MISC, such as {"HeadProb": "0.93"}, or nothing at all."""

    def __post_init__(self) -> None:
        for name in self.tags:
            require_one_of("the column of tags", name, TAG_COLUMNS)


def annotated(lines: Iterable[str], annotations: Iterable[Annotation]) -> tuple[list[str], int]:
    """The lines of a CoNLL-U file with other annotation, all else byte for byte.

    Where a head changes and no labels are given, the relation becomes "root" or "dep", and "_" if
    the new head is not known. The enhanced dependencies (DEPS) of the words of a sentence become
    "_" if any of its heads changes, as they build on the old ones. Entries of MISC are added to
    those that a word has, and take the place of those with the same name.

    Args:
        lines: The lines of the file.
        annotations: One for each sentence with words, in order.

    Returns:
        The lines, and the number of sentences that have lost their enhanced dependencies.

    Raises:
        InputError: There are more sentences than annotations, or fewer, or an annotation is for
            another number of words.
    """
    rest = iter(annotations)
    written: list[str] = []
    sentences = dropped = 0
    for _, group in groupby(lines, lambda line: bool(line.strip())):
        block = list(group)
        at = [number for number, line in enumerate(block) if _WORD_LINE.match(line)]
        if at:
            given = next(rest, None)
            if given is None:
                raise InputError(f"{_ONE_EACH}, got {sentences} for more sentences")
            sentences += 1
            words = [block[number].split("\t") for number in at]
            _check_lengths(given, len(words), sentences)
            dropped += _annotate(words, given)
            for number, fields in zip(at, words, strict=True):
                block[number] = "\t".join(fields)
        written += block
    require(next(rest, None) is None, f"{_ONE_EACH}, got more than the {sentences} in the file")
    return written, dropped


def _check_lengths(given: Annotation, words: int, sentence: int) -> None:
    lists = {"heads": given.heads, "labels": given.labels, **given.tags}
    for name, values in (lists | {"misc": given.misc or None}).items():
        count = words if values is None else len(values)
        needed = f"{name} must have a value for each of the {counted(words, 'word')}"
        require(count == words, f"sentence {sentence}: {needed}, got {count}")


def _annotate(words: list[list[str]], given: Annotation) -> bool:
    """Write into the fields of a sentence's words; whether enhanced dependencies are gone."""
    moved = dropped = False
    for fields, head in zip(words, () if given.heads is None else given.heads, strict=False):
        if not _is_head(fields[_HEAD].strip(" "), head):
            moved = True
            fields[_HEAD] = "_" if head == UNOBSERVED else str(head + 1)
            fields[_RELATION] = {ROOT: "root", UNOBSERVED: "_"}.get(head, "dep")
    columns = {_COLUMNS[name]: tags for name, tags in given.tags.items()}
    if given.labels is not None:
        columns[_RELATION] = given.labels
    for at, values in columns.items():
        for fields, value in zip(words, values, strict=True):
            if fields[at].strip(" ") != value:
                fields[at] = value
    for fields, entries in zip(words, given.misc, strict=False):
        fields[_MISC] = _with_entries(fields[_MISC], entries)
    for fields in words if moved else ():
        dropped |= fields[_ENHANCED].strip(" ") != "_"
        fields[_ENHANCED] = "_"
    return dropped


def _is_head(written: str, head: int) -> bool:
    """Whether this is what a file has for the head; anything may be written there."""
    return bool(written == "_" or _NUMBER.fullmatch(written)) and _position(written) == head


def _with_entries(misc: str, entries: Mapping[str, str]) -> str:
    found = [] if misc.strip(" ") in ("", "_") else misc.split("|")
    names = [entry.partition("=")[0].strip(" ") for entry in found]
    for name, value in entries.items():
        if name in names:
            found[names.index(name)] = f"{name}={value}"
        else:
            found.append(f"{name}={value}")
    return "|".join(found) if entries else misc
