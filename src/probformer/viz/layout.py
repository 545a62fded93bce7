"""Where words and arcs go, in whatever unit words are measured: pixels, or cells of a terminal.

A word has a place of its own for every arc that ends there, in such an order that an arc never
crosses those beneath it. Sentences that are too long go on in further rows; an arc between rows
runs off the edge of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from probformer.viz.words import run_right_to_left


class Arc(NamedTuple):
    dependent: int
    head: int | None
    """None: ROOT."""
    probability: float


@dataclass(frozen=True)
class Measure:
    width: Callable[[str], float]
    gap: float
    """Between words."""
    port: float
    """Between the ends of arcs at a word."""
    root: float
    """The room for the sign of ROOT, above the word that it heads."""
    margin: float
    """At both edges of a row, where there are several."""
    limit: float
    """The width of a row; a single word may be wider."""


class Bow(NamedTuple):
    """An arc's part in a row."""

    arc: Arc
    level: int
    """1 is nearest to the words."""
    head: float
    dependent: float
    """x of both ends; an end in another row is at the edge."""
    elsewhere: int | None = None
    """The word at that end."""


@dataclass(frozen=True)
class Row:
    places: dict[int, float]
    """x of the middle of each word."""
    bows: tuple[Bow, ...]
    roots: tuple[tuple[Arc, float], ...]
    """The arcs from ROOT, straight down at x."""
    width: float

    @property
    def levels(self) -> int:
        return max((bow.level for bow in self.bows), default=0)


def lay_out(words: Sequence[str], arcs: Sequence[Arc], measure: Measure) -> list[Row]:
    """All rows have the same width."""
    arcs = sorted(arcs, key=_by_length)
    ports = [_ports_of(word, arcs) for word in range(len(words))]
    slots = [_slot(word, ports[at], measure) for at, word in enumerate(words)]
    broken = sum(slots) > measure.limit
    margin = measure.margin if broken else 0
    parts = _break_evenly(slots, measure.limit - 2 * margin)
    width = max(sum(slots[part.start : part.stop]) for part in parts) + 2 * margin
    rows = [_row(part, arcs, ports, slots, measure.port, margin, width) for part in parts]
    return [_mirrored(row) for row in rows] if run_right_to_left(words) else rows


def _by_length(arc: Arc) -> tuple[int, int, int]:
    head = arc.dependent if arc.head is None else arc.head
    return abs(head - arc.dependent), min(head, arc.dependent), arc.dependent


def _ports_of(word: int, arcs: Sequence[Arc]) -> list[Arc]:
    """The arcs that end at a word, from left to right: the longest in the middle, around ROOT's."""
    others = [
        (arc.head if arc.dependent == word else arc.dependent, arc)
        for arc in arcs
        if word in (arc.dependent, arc.head)
    ]
    left = [arc for other, arc in others if other is not None and other < word]
    right = [arc for other, arc in others if other is not None and other > word]
    return left + [arc for other, arc in others if other is None] + right[::-1]


def _slot(word: str, ports: Sequence[Arc], measure: Measure) -> float:
    """The width of a word with its arcs, and of the gap beside it."""
    last = len(ports) - 1
    needed = [measure.width(word), measure.port * last]
    for at, arc in enumerate(ports):
        if arc.head is None:  # its sign need not be in the middle
            needed.append(measure.root + measure.port * abs(2 * at - last))
    return max(needed) + measure.gap


def _break_evenly(slots: Sequence[float], limit: float) -> list[range]:
    """As few rows as possible, all about as wide: a last one of a single word looks lost."""
    fewest = len(_break(slots, limit))
    even = min(sum(slots) / fewest, limit)
    while len(_break(slots, even)) > fewest:
        even = min(1.02 * even, limit)
    return _break(slots, even)


def _break(slots: Sequence[float], limit: float) -> list[range]:
    starts, used = [0], 0.0
    for at, slot in enumerate(slots):
        if used and used + slot > limit:
            starts.append(at)
            used = 0.0
        used += slot
    return [
        range(start, stop) for start, stop in zip(starts, [*starts[1:], len(slots)], strict=True)
    ]


def _row(
    part: range,
    arcs: Sequence[Arc],
    ports: Sequence[list[Arc]],
    slots: Sequence[float],
    port: float,
    margin: float,
    width: float,
) -> Row:
    places, x = {}, margin
    for word in part:
        places[word] = x + slots[word] / 2
        x += slots[word]

    def end(arc: Arc, word: int) -> float:
        if word not in part:
            return margin if word < part.start else width - margin
        at = ports[word]
        return places[word] + port * (at.index(arc) - (len(at) - 1) / 2)

    here = [
        (arc, arc.head)
        for arc in arcs
        if arc.head is not None and (arc.head in part or arc.dependent in part)
    ]
    spans = [_span(arc.dependent, head, part) for arc, head in here]
    bows = [
        Bow(
            arc,
            level,
            end(arc, head),
            end(arc, arc.dependent),
            next((word for word in (head, arc.dependent) if word not in part), None),
        )
        for (arc, head), level in zip(here, _levels(spans), strict=True)
    ]
    roots = [
        (arc, end(arc, arc.dependent)) for arc in arcs if arc.head is None and arc.dependent in part
    ]
    return Row(places, tuple(bows), tuple(roots), width)


def _span(one: int, other: int, part: range) -> tuple[int, int]:
    """The first and the last word that an arc is above; the edges count as words."""
    return max(min(one, other), part.start - 1), min(max(one, other), part.stop)


def _levels(spans: Sequence[tuple[int, int]]) -> list[int]:
    """The lowest level for each at which it is above all within it and beside all others."""
    levels: dict[int, int] = {}
    for at in sorted(range(len(spans)), key=lambda at: (spans[at][1] - spans[at][0], at)):
        left, right = spans[at]
        over = {
            other: level
            for other, level in levels.items()
            if spans[other][0] < right and left < spans[other][1]
        }
        inside = [o for o in over if left <= spans[o][0] and spans[o][1] <= right]
        level = 1 + max((over[other] for other in inside), default=0)
        taken = set(over.values())
        while level in taken:
            level += 1
        levels[at] = level
    return [levels[at] for at in range(len(spans))]


def _mirrored(row: Row) -> Row:
    return replace(
        row,
        places={word: row.width - x for word, x in row.places.items()},
        bows=tuple(
            bow._replace(head=row.width - bow.head, dependent=row.width - bow.dependent)
            for bow in row.bows
        ),
        roots=tuple((arc, row.width - x) for arc, x in row.roots),
    )
