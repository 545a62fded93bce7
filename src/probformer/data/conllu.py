"""Sentences written as CoNLL-U, the way Universal Dependencies has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from probformer.data.sentence import Sentence

_WORD = re.compile(r" *\d+ *\t", re.ASCII)  # not a multiword range, nor an empty node
_COLUMNS = ("lemma", "upos", "xpos")
_HEAD, _RELATION, _ENHANCED = 6, 7, 8


def as_conllu(sentence: Sentence) -> Iterator[str]:
    """The lines of a sentence without heads, a blank line at the end."""
    for number, word in enumerate(sentence.words, start=1):
        known = [sentence.columns.get(name, "_" * len(sentence)) for name in _COLUMNS]
        yield "\t".join([str(number), word, *(column[number - 1] for column in known), *"_____"])
    yield ""


def with_heads(lines: Iterable[str], heads: Iterable[int]) -> Iterator[str]:
    """The lines of a file with other heads, one for each word of it; all else stays as it is.

    What relation a word has to its new head nobody knows: it is "root", or "dep". Enhanced
    dependencies, which build on the old heads, are left out.
    """
    rest = iter(heads)
    for line in lines:
        if _WORD.match(line):
            fields, head = line.split("\t"), next(rest)
            fields[_HEAD], fields[_RELATION] = str(head + 1), "dep" if head >= 0 else "root"
            fields[_ENHANCED] = "_"
            line = "\t".join(fields)
        yield line
    assert next(rest, None) is None, "heads are left over: reader and writer see other words"
