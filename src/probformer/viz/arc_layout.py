"""Arc layout: positions of words and arcs, in the unit of word widths, pixels or character cells.

Every end of an arc has its own position (port) at its word, ordered so that no arc crosses those
beneath it. A sentence that is too long is broken into rows; an arc between rows runs to the edge of
both. `frontend/src/arcLayout.ts` is the same for the explorer; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from probformer.viz.words import cut, escaped, run_right_to_left

_LONGEST_LABEL = 16


class Arc(NamedTuple):
    dependent: int
    head: int | None
    """None: ROOT."""
    probability: float
    label: str = ""
    label_probability: float | None = None
    """P(label | arc), if known."""

    def hint(self, words: Sequence[str]) -> str:
        """Dependent, head and probability in words; with a label, the label and its own."""
        head = "ROOT" if self.head is None else words[self.head]
        parts = [f"{words[self.dependent]} ← {head}  {self.probability:.2f}"]
        if self.label:
            parts.append(self.label)
        if self.label and self.label_probability is not None:
            parts[-1] += f" {self.label_probability:.2f}"
        return "  ".join(parts)

    def mark(self, probabilities: bool) -> str:
        """The text at the top of the arc: its label, and with `probabilities` its probability."""
        parts = [cut(escaped(self.label), _LONGEST_LABEL)] if self.label else []
        return " ".join([*parts, f"{self.probability:.2f}"] if probabilities else parts)


def _no_mark(arc: Arc) -> float:
    return 0.0


@dataclass(frozen=True)
class Measure:
    width: Callable[[str], float]
    gap: float
    """Space between words."""
    port: float
    """Distance between the ends of arcs at a word."""
    root: float
    """Width of the text "ROOT" above the word that it heads."""
    margin: float
    """At both edges of a row, if there are several rows."""
    limit: float
    """Maximum width of a row; a single word may be wider."""
    mark: Callable[[Arc], float] = _no_mark
    """Width of the text at the top of an arc, which is at least as long."""


class Bow(NamedTuple):
    """An arc, or the part of it that is in one row."""

    arc: Arc
    level: int
    """1 is nearest to the words."""
    head: float
    dependent: float
    """x of both ends; if the word is in another row, the edge."""
    elsewhere: int | None = None
    """The word in another row, if there is one."""


@dataclass(frozen=True)
class WordRow:
    places: dict[int, float]
    """x of the middle of each word."""
    bows: tuple[Bow, ...]
    roots: tuple[tuple[Arc, float], ...]
    """The arcs from ROOT, straight down at x."""
    slots: dict[int, float]
    """Width of each word with its gap."""
    width: float

    @property
    def levels(self) -> int:
        return max((bow.level for bow in self.bows), default=0)


def lay_out(words: Sequence[str], arcs: Sequence[Arc], measure: Measure) -> list[WordRow]:
    """Break the sentence into rows of equal width, and place words and arcs."""
    arcs = sorted(arcs, key=_by_length)
    ports = [_ports_of(word, arcs) for word in range(len(words))]
    slots = [_slot(word, ports[at], measure) for at, word in enumerate(words)]
    _make_room_for_marks(slots, arcs, ports, measure)
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
    """The arcs that end at a word, from left to right: the longest in the middle, around ROOT."""
    others = [
        (arc.head if arc.dependent == word else arc.dependent, arc)
        for arc in arcs
        if word in (arc.dependent, arc.head)
    ]
    left = [arc for other, arc in others if other is not None and other < word]
    right = [arc for other, arc in others if other is not None and other > word]
    return left + [arc for other, arc in others if other is None] + right[::-1]


def _slot(word: str, ports: Sequence[Arc], measure: Measure) -> float:
    """Width of a word with its ports and the gap."""
    last = len(ports) - 1
    needed = [measure.width(word), measure.port * last]
    for at, arc in enumerate(ports):
        if arc.head is None:  # ROOT is not always in the middle
            text = max(measure.root, measure.mark(arc))
            needed.append(text + measure.port * abs(2 * at - last))
    return max(needed) + measure.gap


def _make_room_for_marks(
    slots: list[float], arcs: Sequence[Arc], ports: Sequence[list[Arc]], measure: Measure
) -> None:
    """Widen the words below an arc that is shorter than its mark; short arcs come first."""
    for arc in arcs:
        if arc.head is None:
            continue
        first, last = sorted((arc.head, arc.dependent))
        length = sum(slots[first + 1 : last]) + (slots[first] + slots[last]) / 2
        length += _port(arc, ports[last], measure.port) - _port(arc, ports[first], measure.port)
        missing = measure.mark(arc) - length
        if missing > 0:  # half of the outer words is outside the arc
            for word in range(first, last + 1):
                slots[word] += missing / (last - first)


def _port(arc: Arc, ports: Sequence[Arc], distance: float) -> float:
    """x of the end of an arc, from the middle of its word."""
    return distance * (ports.index(arc) - (len(ports) - 1) / 2)


def _break_evenly(slots: Sequence[float], limit: float) -> list[range]:
    """As few rows as possible, of about equal width, so that the last one is not almost empty."""
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
) -> WordRow:
    places, x = {}, margin
    for word in part:
        places[word] = x + slots[word] / 2
        x += slots[word]

    def end(arc: Arc, word: int) -> float:
        if word not in part:
            return margin if word < part.start else width - margin
        return places[word] + _port(arc, ports[word], port)

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
    return WordRow(places, tuple(bows), tuple(roots), {word: slots[word] for word in part}, width)


def _span(one: int, other: int, part: range) -> tuple[int, int]:
    """The first and the last word below an arc; the edges of the row count as words."""
    return max(min(one, other), part.start - 1), min(max(one, other), part.stop)


def _levels(spans: Sequence[tuple[int, int]]) -> list[int]:
    """For each span the lowest level above all spans within it, apart from all that overlap it."""
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


def _mirrored(row: WordRow) -> WordRow:
    return replace(
        row,
        places={word: row.width - x for word, x in row.places.items()},
        bows=tuple(
            bow._replace(head=row.width - bow.head, dependent=row.width - bow.dependent)
            for bow in row.bows
        ),
        roots=tuple((arc, row.width - x) for arc, x in row.roots),
    )
