"""Text to be parsed: its sentences, and the lines of CoNLL-U that a parse is written into."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path
from typing import BinaryIO

from probformer.data.formats.conllu import as_conllu, is_conllu, sentence_in
from probformer.data.formats.format import BadLine, Line
from probformer.data.readers import FilePath, lines_of
from probformer.data.sentence import Sentence, place_in_file
from probformer.errors import InputError, require

STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class Unparsed:
    """Lines of CoNLL-U, and the sentence that they have, if any."""

    lines: Sequence[str]
    """Those of a sentence end with a blank one."""
    sentence: Sentence | None = None

    @classmethod
    def of(cls, sentence: Sentence) -> Unparsed:
        """A sentence that has no lines yet."""
        return cls(tuple(as_conllu(sentence)), sentence)


def read_unparsed(source: FilePath | BinaryIO, with_heads: bool = False) -> Iterator[Unparsed]:
    """The sentences of CoNLL-U, or of a text with one sentence a line, in order.

    A file is CoNLL-U if its name ends in .conllu, and text if it ends in .txt. Anything else is
    CoNLL-U if its first line that is not blank is a comment or has ten fields.

    Args:
        source: A file, or a stream of bytes that is called standard input in messages.
        with_heads: Whether the heads of CoNLL-U are read and checked.

    Returns:
        Sentences, and between them lines without words. Together their lines are those of CoNLL-U
        as they are, but for a blank line that the last sentence may lack.

    Raises:
        InputError: A line breaks the rules of CoNLL-U, the file cannot be read, or it has no
            sentence.
    """
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else STANDARD_INPUT
    lines = enumerate(lines_of(source), start=1)
    first: list[Line] = []
    for line in lines:
        first.append(line)
        if line[1].strip():
            break
    known = {".conllu": True, ".txt": False}.get(suffix_of(name))
    columns = is_conllu(first[-1][1]) if first and known is None else known
    found = False
    for part in (_conllu if columns else _text)(chain(first, lines), name, with_heads):
        found = found or part.sentence is not None
        yield part
    require(found, f"{name}: there is no sentence, expected at least one")


def suffix_of(name: str) -> str:
    """The suffix of a file's name, in lower case and without ".gz"."""
    return Path(name.lower().removesuffix(".gz")).suffix


def _conllu(lines: Iterator[Line], name: str, with_heads: bool) -> Iterator[Unparsed]:
    ended = True  # whether the last sentence has its blank line
    for blank, group in groupby(lines, lambda line: not line[1].strip()):
        block = list(group)
        texts = [text for _, text in block]
        if blank:
            yield Unparsed(texts if ended else texts[1:])
            ended = True
            continue
        try:
            sentence = sentence_in(block, with_heads)
        except BadLine as bad:
            place = place_in_file(name, bad.line, bad.sentence)
            raise InputError(f"{place}: {bad.reason}") from None
        if sentence is not None:
            sentence = replace(sentence, path=name)
        yield Unparsed([*texts, ""], sentence)
        ended = False


def _text(lines: Iterator[Line], name: str, with_heads: bool) -> Iterator[Unparsed]:
    for number, text in lines:
        if words := text.split():
            yield Unparsed.of(Sentence(tuple(words), path=name, line=number))
