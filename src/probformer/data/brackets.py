"""The tagged words of trees in brackets: the Penn Treebank's `.mrg` files and BLLIP's parsed ones.

A node is "(label node …)", a word is "(tag word)", and white space means nothing else: a tree may
span lines, and several may share one. The label may be missing, as in the Penn Treebank's outer
"( (S …) )". Words are kept as they are written, "-LRB-" and "1\\/2" too, as NLTK's reader does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Leaf = tuple[str, str]
"""A tag and its word."""

TRACE = "-NONE-"
"""The tag of what is understood but not said."""

_PENN_WORD_TAGS = (
    "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNP NNPS NNS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH "
    "VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB"
)
WORD_TAGS = frozenset((*_PENN_WORD_TAGS.split(), "AUX", "AUXG"))
"""The Penn Treebank's tags of words, and the two that BLLIP has for auxiliary verbs."""

_TOKEN = re.compile(r"[()]|[^\s()]+")
_NUMBER = re.compile("[0-9]+")


class BadTree(Exception):
    """What is wrong with a tree, and the line where it shows."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason


def leaves_of_trees(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[Leaf]]]:
    """The line where each tree begins, and its leaves, traces among them.

    A node with nothing in it has no leaves, so a tree may have none. The lines are read one by one:
    after a `BadTree`, those that an iterator over them still has are the ones behind the mistake.
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
                    raise BadTree(number, f"'(' after the word {texts[1]!r}, expected ')'")
                depth += 1
                texts = []
            elif depth == 0:
                raise BadTree(number, f"{token!r} outside of a tree, expected '('")
            elif token == ")":
                if texts and len(texts) == 2:
                    leaves.append((texts[0], texts[1]))
                depth -= 1
                texts = None
                if depth == 0:
                    yield begin, leaves
            elif texts is None or len(texts) == 2:
                raise BadTree(number, f"the word {token!r} has no tag, expected '(tag word)'")
            else:
                texts.append(token)
    if depth:
        reason = f"the file ends inside the tree that begins here, expected {depth} more of ')'"
        raise BadTree(begin, reason)


def without_traces(leaves: Iterable[Leaf]) -> list[Leaf]:
    """The leaves that stand in the text."""
    return [(tag, word) for tag, word in leaves if tag != TRACE]


def as_in_bllip(leaves: Iterable[Leaf]) -> list[Leaf]:
    """Words only, in lower case, every run of digits as "N": BLLIP as the paper prepares it."""
    return [(tag, _NUMBER.sub("N", word.lower())) for tag, word in leaves if tag in WORD_TAGS]
