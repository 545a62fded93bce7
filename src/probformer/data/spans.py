"""Entities as tags and as spans.

A tag is "O" outside of entities, and otherwise a prefix, a hyphen and the entity's type, as in
"B-PER". There are three schemes for the prefixes of the words of an entity:

- IOB1: all "I", but "B" for the first word right after an entity of the same type;
- IOB2: "B" for the first word, "I" for the others;
- BIOES: "B" for the first word, "E" for the last, "I" between them, "S" for a single word.

So the tags of a sentence with an entity are correct in one scheme at most.
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
    """Converts IOB1, IOB2 or BIOES tags to BIOES; the scheme is inferred from the tags.

    One reader is used for all files of a corpus: it remembers the scheme of the first entity, and
    where that was, and refuses another scheme later, with one exception: in IOB1, an entity that
    starts with "B" instead of "I" is accepted, as in some copies of CoNLL-2003.
    """

    def __init__(self) -> None:
        self._known: _Evidence | None = None

    def to_bioes(self, tags: Sequence[str], place: Callable[[int], str]) -> tuple[str, ...]:
        """The tags of a sentence in BIOES.

        Args:
            tags: n tags in the scheme of the corpus.
            place: The file and line of the word at a position, for messages.

        Raises:
            InputError: A tag is malformed, or of another scheme than those before.
        """
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
    """The entities in BIOES tags, also ill-formed ones, as the script `conlleval` finds them."""
    return set(_tolerant_spans(tags))


def spans_strict(tags: Sequence[str]) -> set[Span]:
    """The entities in BIOES tags, without ill-formed ones."""
    return {
        span for span in _tolerant_spans(tags) if _bioes(span) == list(tags[span.start : span.end])
    }


def spans_by_vote(tags: Sequence[str]) -> set[Span]:
    """The entities in BIOES tags, as found by the library behind the paper's figures.

    An entity ends before "O", "B" or "S", or before another type after an "S": "B-PER E-ORG" is one
    entity. Its words vote on its type; the first has 1.1 votes if its tag can start an entity.
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
    """The harmonic mean of precision and recall, from counts; 0 if nothing is right."""
    return 2 * right / (predicted + gold) if right else 0.0


def _tolerant_spans(tags: Sequence[str]) -> list[Span]:
    """Every word with a type is in an entity: the one before if its tag can continue that.

    This works for all three schemes: a "B" starts an entity in each of them, and an "I" that cannot
    continue the entity before it starts one in IOB1 and is ill-formed in the others.
    """
    spans: list[Span] = []
    before = (OUTSIDE, "")
    for at, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if prefix != OUTSIDE:
            continues = prefix in ("I", "E") and before in (("B", kind), ("I", kind))
            start = spans.pop().start if continues else at
            spans.append(Span(start, at + 1, kind))
        before = (prefix, kind)
    return spans


def _bioes(span: Span) -> list[str]:
    if span.end - span.start == 1:
        return [f"S-{span.kind}"]
    inside = [f"I-{span.kind}"] * (span.end - span.start - 2)
    return [f"B-{span.kind}", *inside, f"E-{span.kind}"]


def _evidence(tags: Sequence[str], spans: Sequence[Span]) -> Iterator[tuple[int, str]]:
    """Words whose tags reveal the scheme; an "E" or "S", even if ill-formed, reveals BIOES."""
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
    """Tags are well-formed if the conversion to BIOES does not change them."""
    used = "" if scheme == "BIOES" else f" as in {scheme}"
    for at, (tag, right) in enumerate(zip(tags, bioes, strict=True)):
        if tag != right:
            raise InputError(
                f"{place(at)}: the tag is {tag!r}{used}, expected {right!r} as in BIOES, "
                f"the tag scheme of {known.tag!r} at {known.place}"
            )
