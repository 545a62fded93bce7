"""Arcs over words as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probformer.viz.arc_layout import Arc, Bow, Measure, WordRow, lay_out
from probformer.viz.svg import Block, markup, moved, number, tag, text
from probformer.viz.words import cut, escaped, is_right_to_left, pixels

Titled = tuple[str, Sequence[Arc]]

_PAGE_WIDTH = 1200.0
_GRID_WIDTH = 1800.0
_COLUMNS = 4
_TITLE = 26.0
_BETWEEN = 28.0
_WORD_LINE = 26.0
_FOOT = 12.0
"""Between a word and the ends of arcs."""
_TALLEST = 480.0
_CURVE = 9.0
_MARK = 10.0
"""Size of the text at the top of an arc."""
_SECONDS_PER_FRAME = 1.2

_MEASURE = Measure(
    width=lambda word: pixels(escaped(word)),
    gap=16,
    port=9,
    root=34,
    margin=84,
    limit=_PAGE_WIDTH,
)


def _measure(probabilities: bool) -> Measure:
    """Arcs have room for their labels; a probability alone may be wider than a short arc."""

    def mark(arc: Arc) -> float:
        return pixels(arc.mark(probabilities), _MARK) if arc.label else 0.0

    return replace(_MEASURE, mark=mark)


def grid(words: Sequence[str], panels: Sequence[Titled], probabilities: bool) -> Block:
    """Panels from left to right and from top to bottom, up to four side by side."""
    measure = _measure(probabilities)
    blocks = [
        _stacked(words, lay_out(words, arcs, measure), arcs, probabilities) for _, arcs in panels
    ]
    titles = [title for title, _ in panels]
    width = max(*(block.width for block in blocks), *(pixels(title, 13) for title in titles))
    columns = max(1, min(_COLUMNS, len(blocks), int(_GRID_WIDTH // (width + _BETWEEN))))
    body, y = "", 0.0
    for start in range(0, len(blocks), columns):
        beside = range(start, min(start + columns, len(blocks)))
        height = max(blocks[at].height for at in beside)
        titled = [_titled(titles[at], blocks[at], height) for at in beside]
        body += "".join(moved(block, at * (width + _BETWEEN), y) for at, block in enumerate(titled))
        y += titled[0].height + _BETWEEN
    return Block(columns * (width + _BETWEEN) - _BETWEEN, y - _BETWEEN, body)


def _titled(title: str, block: Block, height: float) -> Block:
    """The title on top and the words at the bottom, aligned with the panels beside it."""
    if not title:
        return block._replace(height=height, body=moved(block, 0, height - block.height))
    body = text(title, 0, 13, 13, class_="dim", text_anchor="start")
    body += moved(block, 0, _TITLE + height - block.height)
    return Block(max(block.width, pixels(title, 13)), _TITLE + height, body)


def frames(
    words: Sequence[str], panels: Sequence[Titled], probabilities: bool, moving: bool
) -> Block:
    """Panels on top of each other, the last one visible; all share one layout."""
    placed: dict[tuple[int, int | None], Arc] = {}
    for _, arcs in panels:
        for arc in arcs:
            known = placed.setdefault(arc[:2], arc)
            placed[arc[:2]] = known._replace(
                probability=max(known.probability, arc.probability),
                label=max(known.label, arc.label, key=pixels),
            )
    rows = lay_out(words, list(placed.values()), _measure(probabilities))
    blocks = [_stacked(words, rows, arcs, probabilities) for _, arcs in panels]
    titled = [
        _titled(title, block, block.height)
        for (title, _), block in zip(panels, blocks, strict=True)
    ]
    body = "".join(_frame(block.body, at, len(panels), moving) for at, block in enumerate(titled))
    return Block(max(block.width for block in titled), titled[0].height, body)


def _frame(body: str, at: int, count: int, moving: bool) -> str:
    last = at == count - 1
    if moving and count > 1:
        times = [0.0, at / count, 1.0 if last else (at + 1) / count]
        body += tag(
            "animate",
            attributeName="visibility",
            values="hidden;visible;" + ("visible" if last else "hidden"),
            keyTimes=";".join(f"{time:.4f}" for time in times),
            calcMode="discrete",
            dur=f"{number(_SECONDS_PER_FRAME * count)}s",
            repeatCount="indefinite",
        )
    return tag("g", body, class_="frame", visibility="visible" if last else "hidden")


def _stacked(
    words: Sequence[str], rows: Sequence[WordRow], arcs: Sequence[Arc], probabilities: bool
) -> Block:
    """The rows of a layout, with the arcs of `arcs` alone."""
    present = {arc[:2]: arc for arc in arcs}
    body, y = "", 0.0
    for row in rows:
        block = _row(words, row, present, probabilities)
        body += moved(block, 0, y)
        y += block.height + _BETWEEN / 2
    return Block(rows[0].width, y - _BETWEEN / 2, body)


def _row(
    words: Sequence[str],
    row: WordRow,
    arcs: dict[tuple[int, int | None], Arc],
    probabilities: bool,
) -> Block:
    step = min(24.0, _TALLEST / max(row.levels, 1))
    marked = any(arc.mark(probabilities) for arc, _ in row.roots)
    top = 8.0 + (12.0 + 11.0 * marked if row.roots else 0.0)
    ground = top + row.levels * step + _FOOT
    body, marks = "", ""
    for bow in sorted(row.bows, key=lambda bow: bow.arc.probability):  # the strong ones on top
        if arc := arcs.get(bow.arc[:2]):
            height = ground - _FOOT - bow.level * step + step / 2
            body += _bow(words, bow._replace(arc=arc), height, ground, step)
            if bow.elsewhere is not None:
                marks += _elsewhere(words, bow, height)
            x = _middle(bow, arc.mark(probabilities))
            marks += _mark(arc, probabilities, x, height - (4 if arc.label else 2))
    for placed, x in row.roots:
        if arc := arcs.get(placed[:2]):
            body += _root(words, arc, x, top, ground)
            marks += text("ROOT", x, 11, 10, class_="root-tip")
            marks += _mark(arc, probabilities, x, 22)
    for word, x in row.places.items():
        direction = "rtl" if is_right_to_left(words[word]) else "ltr"
        body += text(words[word], x, ground + 17, direction=direction)
    return Block(row.width, ground + _WORD_LINE, body + marks)


def _bow(words: Sequence[str], bow: Bow, y: float, ground: float, step: float) -> str:
    arc = bow.arc
    assert arc.head is not None
    curve = min(_CURVE, abs(bow.head - bow.dependent) / 2, step * 0.8)
    side = 1 if bow.dependent > bow.head else -1
    at_head, at_dependent = bow.elsewhere != arc.head, bow.elsewhere != arc.dependent
    path = (
        f"M{number(bow.head)} {number(ground)} V{number(y + curve)} "
        f"q0 {number(-curve)} {number(side * curve)} {number(-curve)}"
        if at_head
        else f"M{number(bow.head)} {number(y)}"
    )
    if at_dependent:
        path += f" H{number(bow.dependent - side * curve)} "
        path += f"q{number(side * curve)} 0 {number(side * curve)} {number(curve)}"
        path += f" V{number(ground - 5)}"
    else:
        path += f" H{number(bow.dependent)}"
    body = _title(words, arc)
    body += tag("path", d=path, class_="arc", stroke_width=_thickness(arc))
    if at_dependent:
        body += _tip(bow.dependent, ground, "tip")
    return tag("g", body, opacity=_opacity(arc))


def _middle(bow: Bow, mark: str) -> float:
    """x of the mark: beside the name at the edge of a row."""
    middle = (bow.head + bow.dependent) / 2
    if bow.elsewhere is None:
        return middle
    edge, inner = _edge_and_inner_end(bow)
    half = pixels(mark, _MARK) / 2
    return max(middle, edge + half) if edge < inner else min(middle, edge - half)


def _edge_and_inner_end(bow: Bow) -> tuple[float, float]:
    if bow.elsewhere == bow.arc.head:
        return bow.head, bow.dependent
    return bow.dependent, bow.head


def _elsewhere(words: Sequence[str], bow: Bow, y: float) -> str:
    """The name of the word in another row where an arc begins or ends."""
    assert bow.elsewhere is not None
    edge, inner = _edge_and_inner_end(bow)
    outwards = 1 if edge > inner else -1
    anchor = "start" if edge > inner else "end"
    name = cut(escaped(words[bow.elsewhere]), 10)
    return text(name, edge + 4 * outwards, y + 4, 11, class_="dim", text_anchor=anchor)


def _root(words: Sequence[str], arc: Arc, x: float, top: float, ground: float) -> str:
    line = f"M{number(x)} {number(top - 6)} V{number(ground - 5)}"
    body = _title(words, arc) + tag("path", d=line, class_="root", stroke_width=_thickness(arc))
    return tag("g", body, _tip(x, ground, "root-tip"), opacity=_opacity(arc))


def _tip(x: float, ground: float, kind: str) -> str:
    corners = f"M{number(x)} {number(ground)} l-3.6 -8 h7.2 z"
    return tag("path", d=corners, class_=kind)


def _title(words: Sequence[str], arc: Arc) -> str:
    return tag("title", markup(arc.hint(words)))


def _mark(arc: Arc, probabilities: bool, x: float, y: float) -> str:
    mark, kind = arc.mark(probabilities), "ink halo" if arc.label else "dim halo"
    return text(mark, x, y, _MARK, class_=kind) if mark else ""


def _opacity(arc: Arc) -> float:
    return 0.25 + 0.75 * arc.probability


def _thickness(arc: Arc) -> float:
    return 0.8 + 1.7 * arc.probability
