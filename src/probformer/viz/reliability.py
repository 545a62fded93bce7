"""Reliability diagrams: how often predictions of similar confidence are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from probformer.errors import require
from probformer.viz.numbers import as_array, check_probabilities
from probformer.viz.picture import Picture
from probformer.viz.svg import Block, document, markup, tag, text

_SIDE, _COUNTS = 450.0, 90.0
"""The width and height of the diagram, and the height of the bars of counts below it."""
_LEFT, _TOP, _GAP = 46.0, 30.0, 18.0
_TICKS = 5


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram(Picture):
    kind = "reliability diagram"

    counts: tuple[int, ...]
    """The number of predictions in each bin, an equal part of [0, 1]."""
    confidences: tuple[float, ...]
    right: tuple[float, ...]
    error: float
    title: str

    def svg(self) -> str:
        floor = _TOP + _SIDE
        bottom = floor + _GAP + _COUNTS
        body = text(self.title, 0, 13, 14, text_anchor="start")
        body += "".join(self._grid(floor, bottom))
        body += tag("line", class_="line", stroke_dasharray="5 4", **_line(0, 0, 1, 1))
        body += "".join(map(self._bin, range(len(self.counts))))
        for content, middle in (
            ("share of right predictions", _TOP + _SIDE / 2),
            ("predictions", bottom - _COUNTS / 2),
        ):
            turn = f"rotate(-90 10 {middle})"
            body += text(content, 10, middle, 12, class_="dim", transform=turn)
        body += text("confidence", _LEFT + _SIDE / 2, bottom + 34, 12, class_="dim")
        predictions = f"{sum(self.counts):,} predictions in {len(self.counts)} equal bins"
        caption = f"expected calibration error (ECE) {self.error:.4f}; {predictions}"
        body += text(caption, 0, bottom + 60, 12, text_anchor="start")
        key = "points: mean confidence and share of right ones; on the dashed line they are equal"
        body += text(key, 0, bottom + 78, 12, class_="dim", text_anchor="start")
        return document(Block(_LEFT + _SIDE + 10, bottom + 84, body), self.title)

    def _grid(self, floor: float, bottom: float) -> Iterator[str]:
        for step in range(_TICKS + 1):
            share = step / _TICKS
            name = f"{share:g}"
            for line in (_line(0, share, 1, share), _line(share, 0, share, 1)):
                yield tag("line", class_="line", stroke_opacity=0.35, **line)
            yield text(name, _LEFT - 6, _up(share) + 4, 11, class_="dim", text_anchor="end")
            yield text(name, _across(share), bottom + 15, 11, class_="dim")
        for height in (floor, bottom):
            yield tag("line", class_="line", x1=_LEFT, y1=height, x2=_across(1), y2=height)

    def _bin(self, number: int) -> str:
        count, p, right = self.counts[number], self.confidences[number], self.right[number]
        if not count:
            return ""
        x, width = _across(number / len(self.counts)), _SIDE / len(self.counts)
        bottom = _TOP + _SIDE + _GAP + _COUNTS
        height = (_COUNTS - 14) * count / max(self.counts)
        drawn = tag(
            "rect",
            class_="tip",
            fill_opacity=0.35,
            x=x + 1,
            y=bottom - height,
            width=width - 2,
            height=height,
        )
        drawn += text(_short(count), x + width / 2, bottom - height - 4, 9.5, class_="dim")
        drawn += tag("line", class_="root", stroke_width=2, **_line(p, p, p, right))
        drawn += tag("circle", class_="tip", cx=_across(p), cy=_up(right), r=4)
        known = f"{count:,} predictions, mean confidence {p:.3f}, right {right:.3f}"
        return tag("g", tag("title", markup(known)), drawn)


def reliability_diagram(
    counts: Sequence[int],
    confidences: Sequence[float | None],
    right: Sequence[float | None],
    error: float,
    title: str = "",
) -> ReliabilityDiagram:
    """The reliability diagram of some predictions, in bins of equal width from 0 to 1.

    Args:
        counts: The number of predictions in each bin.
        confidences: Their mean confidence; None in a bin without predictions.
        right: The share of right ones, or None.
        error: The expected calibration error, for the caption.
        title: The title of the picture.

    Returns:
        A picture with a point for each bin that has predictions.

    Raises:
        InputError: The numbers of values differ or are zero, or shares are not from 0 to 1.
    """
    sizes = f"{len(counts)}, {len(confidences)} and {len(right)}"
    fits = len(counts) == len(confidences) == len(right) > 0
    message = f"counts, confidences and right must have a value for each bin, got {sizes} values"
    require(fits, message)
    points = _checked("confidences", confidences), _checked("right", right)
    return ReliabilityDiagram(tuple(counts), *points, error, title)


def _checked(name: str, shares: Sequence[float | None]) -> tuple[float, ...]:
    given = as_array(name, [0.0 if share is None else share for share in shares])
    check_probabilities(name, given)
    return tuple(given.tolist())


def _across(share: float) -> float:
    return _LEFT + share * _SIDE


def _up(share: float) -> float:
    return _TOP + (1 - share) * _SIDE


def _line(x1: float, y1: float, x2: float, y2: float) -> dict[str, float]:
    return {"x1": _across(x1), "y1": _up(y1), "x2": _across(x2), "y2": _up(y2)}


def _short(count: int) -> str:
    """In at most four or five characters: 1,234 as it is, 12,345 as 12k."""
    return f"{count:,}" if count < 10_000 else f"{count / 1000:.0f}k"
