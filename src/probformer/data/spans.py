"""Entities, as tags and as spans.

A tag is "O" outside of entities, and otherwise a prefix, a hyphen and the entity's type, as in
"B-PER". Three schemes give the prefixes to the words of an entity:

- IOB1: all "I", but "B" for the first word right after an entity of the same type;
- IOB2: "B" for the first word, "I" for the others;
- BIOES: "B" for the first word, "E" for the last, "I" between them, "S" for an only word.

So the tags of a sentence with an entity are right in one scheme at most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from probformer.errors import InputError

OUTSIDE = "O"

_TAG = re.compile(r"O|[BIES]-.+")
_EXPECTED = "expected 'O', or 'B-', 'I-', 'E-' or 'S-' and a type"


class Span(NamedTuple):
    """The words of an entity: from `start` to the one before `end`."""

    start: int
    end: int
    kind: str


class _Evidence(NamedTuple):
    scheme: str
    tag: str
    place: str


class SchemeReader:
    """From IOB1, IOB2 or BIOES tags, found out from the data, to BIOES.

    One reader reads one corpus, all files of it: it remembers the scheme that the first entity
    shows, and where, and refuses another one later. Only a "B" for "I" passes in IOB1, since some
    copies of CoNLL-2003 have it, and an entity starts there either way.
    """

    def __init__(self) -> None:
        self._known: _Evidence | None = None

    def to_bioes(self, tags: Sequence[str], place: Callable[[int], str]) -> tuple[str, ...]:
        """The tags of a sentence in BIOES; `place` tells the file and line of a word."""
        for at, tag in enumerate(tags):
            if not _TAG.fullmatch(tag):
                raise InputError(f"{place(at)}: the tag is {tag!r}, {_EXPECTED}")
        spans = _tolerant_spans(tags)
        bioes = [OUTSIDE] * len(tags)
        for span in spans:
            bioes[span.start : span.end] = _bioes(span)
        known = self._known
        for at, scheme in _evidence(tags, spans):
            known = known or _Evidence(scheme, tags[at], place(at))
            if known.scheme == "BIOES":
                _check_bioes(tags, bioes, scheme, known, place)
            elif scheme != known.scheme and (known.scheme, scheme) != ("IOB1", "IOB2"):
                does = "ends" if scheme == "BIOES" else "starts"
                raise InputError(
                    f"{place(at)}: the tag {tags[at]!r} {does} an entity as in {scheme}, but "
                    f"{known.tag!r} at {known.place} starts one as in {known.scheme}, "
                    "expected one tag scheme"
                )
        self._known = known
        return tuple(bioes)


def spans_by_conlleval(tags: Sequence[str]) -> set[Span]:
    """The entities of BIOES tags as the CoNLL script `conlleval` reads them, ill-formed or not."""
    return set(_tolerant_spans(tags))


def spans_strict(tags: Sequence[str]) -> set[Span]:
    """The well-formed entities of BIOES tags; those of other shapes are none."""
    return {
        span for span in _tolerant_spans(tags) if _bioes(span) == list(tags[span.start : span.end])
    }


def spans_by_vote(tags: Sequence[str]) -> set[Span]:
    """As the library reads them with which the paper's figures were made.

    An entity ends where "O", "B" or "S" comes, or another type after an "S": "B-PER E-ORG" is one
    entity. Its words vote on its type; the first counts a little more if it may start an entity.
    """
    spans: set[Span] = set()
    votes: Counter[str] = Counter()
    start, before = 0, (OUTSIDE, "")
    for at, tag in enumerate([*tags, OUTSIDE]):
        prefix, _, kind = tag.partition("-")
        starts = prefix in ("B", "S") or (before[0] == "S" and before[1] != kind)
        if votes and (starts or prefix == OUTSIDE):
            spans.add(Span(start, at, votes.most_common(1)[0][0]))
            votes.clear()
        if prefix != OUTSIDE:
            start = start if votes else at
            votes[kind] += 11 if starts else 10
        before = (prefix, kind)
    return spans


def f1(right: float, predicted: float, gold: float) -> float:
    """The harmonic mean of precision and recall, from counts; 0 where nothing is right."""
    return 2 * right / (predicted + gold) if right else 0.0


def _tolerant_spans(tags: Sequence[str]) -> list[Span]:
    """Every word with a type is in an entity; it goes on with the one before if it can.

    This reads all three schemes: a "B" starts an entity in each of them, and an "I" that cannot go
    on with the entity before it starts one in IOB1 and is wrong elsewhere.
    """
    spans: list[Span] = []
    before = (OUTSIDE, "")
    for at, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if prefix != OUTSIDE:
            goes_on = prefix in ("I", "E") and before in (("B", kind), ("I", kind))
            start = spans.pop().start if goes_on else at
            spans.append(Span(start, at + 1, kind))
        before = (prefix, kind)
    return spans


def _bioes(span: Span) -> list[str]:
    if span.end - span.start == 1:
        return [f"S-{span.kind}"]
    inside = [f"I-{span.kind}"] * (span.end - span.start - 2)
    return [f"B-{span.kind}", *inside, f"E-{span.kind}"]


def _evidence(tags: Sequence[str], spans: Sequence[Span]) -> Iterator[tuple[int, str]]:
    """Words whose tags show a scheme; a sentence with any "E" or "S" is BIOES, right or wrong."""
    for at, tag in enumerate(tags):
        if tag[0] in ("E", "S"):
            yield at, "BIOES"
            return
    for before, span in zip([None, *spans], spans, strict=False):
        if tags[span.start].startswith("I"):
            yield span.start, "IOB1"
        elif before is None or (before.end, before.kind) != (span.start, span.kind):
            yield span.start, "IOB2"


def _check_bioes(
    tags: Sequence[str],
    bioes: Sequence[str],
    scheme: str,
    known: _Evidence,
    place: Callable[[int], str],
) -> None:
    """Well-formed tags are those that conversion leaves as they are."""
    used = "" if scheme == "BIOES" else f" as in {scheme}"
    for at, (tag, right) in enumerate(zip(tags, bioes, strict=True)):
        if tag != right:
            raise InputError(
                f"{place(at)}: the tag is {tag!r}{used}, expected {right!r} as in BIOES, "
                f"the tag scheme of {known.tag!r} at {known.place}"
            )
