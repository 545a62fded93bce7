"""The format "mrg": trees in brackets, as in the Penn Treebank's `.mrg` files and in BLLIP.

A node is "(label node …)", a word is "(tag word)", and white space only separates: a tree may span
lines, and several may share one. The label may be missing, as in the Penn Treebank's outer
"( (S …) )". Words are kept as they are written, "-LRB-" and "1\\/2" too, as in NLTK's reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from probformer.data.formats.format import BadLine, Format, Line, RawLine
from probformer.data.sentence import Sentence
from probformer.errors import require_one_of

Leaf = tuple[str, str]
"""A tag and its word."""

TRACE = "-NONE-"
"""The tag of a trace: an element of the syntax that is not in the text."""

_PENN_WORD_TAGS = (
    "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNP NNPS NNS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH "
    "VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB"
)
WORD_TAGS = frozenset((*_PENN_WORD_TAGS.split(), "AUX", "AUXG"))
"""The Penn Treebank's tags of words, and the two that BLLIP has for auxiliary verbs."""

_TOKEN = re.compile(r"[()]|[^\s()]+")
_NUMBER = re.compile("[0-9]+")
_TREE_BEGINS = re.compile(rb"\s*\(\s*\(")


@dataclass(frozen=True)
class Mrg(Format):
    """Tagged words without traces."""

    name = "mrg"
    written = "a tree of the Penn Treebank"
    gold = "`xpos`"
    suffix = ".mrg"

    prepare: str | None = None
    """ "bllip": words only, in lower case, with N for digits, as the paper prepares BLLIP."""

    def __post_init__(self) -> None:
        if self.prepare is not None:
            require_one_of("prepare", self.prepare, ["bllip"])

    def blocks(self, lines: Iterable[RawLine]) -> Iterator[Iterable[RawLine]]:
        """Lines up to the end of a tree, found by counting brackets, as words have none in them.

        A line that starts with "( (" begins a tree, even if the one before it is not closed.
        """
        block: list[RawLine] = []
        depth = 0
        for number, line in lines:
            if depth > 0 and _TREE_BEGINS.match(line):
                yield block
                block, depth = [], 0
            block.append((number, line))
            depth += line.count(b"(") - line.count(b")")
            if depth <= 0:
                yield block
                block, depth = [], 0
        yield block

    def parse(self, lines: Iterator[Line]) -> Iterator[Sentence]:
        kept = as_in_bllip if self.prepare == "bllip" else without_traces
        for number, leaves in leaves_of_trees(lines):
            if pairs := kept(leaves):
                tags, words = zip(*pairs, strict=True)
                yield Sentence(words, {"xpos": tags}, line=number)


def leaves_of_trees(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[Leaf]]]:
    """The line where each tree begins, and its leaves, traces among them.

    A node with nothing in it has no leaves, so a tree may have none. Lines are taken from the
    iterator one by one: after a `BadLine`, it goes on with the line after the bad one.
    """
    depth = begin = 0
    leaves: list[Leaf] = []
    texts: list[str] | None = None  # of the innermost node; None once it has nodes in it
    for number, line in lines:
        for token in _TOKEN.findall(line):
            if token == "(":
                if depth == 0:
                    begin, leaves = number, []
                elif texts and len(texts) == 2:
                    raise BadLine(number, f"'(' after the word {texts[1]!r}, expected ')'")
                depth += 1
                texts = []
            elif depth == 0:
                raise BadLine(number, f"{token!r} outside of a tree, expected '('")
            elif token == ")":
                if texts and len(texts) == 2:
                    leaves.append((texts[0], texts[1]))
                depth -= 1
                texts = None
                if depth == 0:
                    yield begin, leaves
            elif texts is None or len(texts) == 2:
                raise BadLine(number, f"the word {token!r} has no tag, expected '(tag word)'")
            else:
                texts.append(token)
    if depth:
        reason = f"the file ends inside the tree that begins here, expected {depth} more of ')'"
        raise BadLine(begin, reason)


def without_traces(leaves: Iterable[Leaf]) -> list[Leaf]:
    """The leaves that are words of the text."""
    return [(tag, word) for tag, word in leaves if tag != TRACE]


def as_in_bllip(leaves: Iterable[Leaf]) -> list[Leaf]:
    """Words only, in lower case, every run of digits as "N": BLLIP as the paper prepares it."""
    return [(tag, _NUMBER.sub("N", word.lower())) for tag, word in leaves if tag in WORD_TAGS]
