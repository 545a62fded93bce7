"""Arcs over words in a terminal: box drawing, or a plain list where it is too narrow."""

from __future__ import annotations

from collections.abc import Sequence

from probformer.viz.layout import Arc, Measure, Row, lay_out
from probformer.viz.words import LEFT_TO_RIGHT_MARK, cells, cut, is_right_to_left, shown

_NARROW = 40
_MARGIN = 9
_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_LIGHT = " ───│┘└┴│┐┌┬│┤├┼"
_HEAVY = " ━━━┃┛┗┻┃┓┏┳┃┫┣╋"
_CROSSINGS = {(False, False): "┼", (True, False): "┿", (False, True): "╂", (True, True): "╋"}
_STRONG = 0.5


def panel(words: Sequence[str], arcs: Sequence[Arc], probabilities: bool, width: int) -> str:
    """Heavy lines are arcs of at least one half."""
    words = [shown(word) for word in words]
    widest = max(map(cells, words))
    if width < _NARROW or widest + 2 * _MARGIN > width:
        return _listed(words, arcs)
    measure = Measure(cells, gap=2, port=2, root=4, margin=_MARGIN, limit=width)
    rows = lay_out(words, arcs, measure)
    return "\n".join(_row(words, row, probabilities) for row in rows)


def _listed(words: Sequence[str], arcs: Sequence[Arc]) -> str:
    lines = []
    for at, word in enumerate(words):
        mine = sorted((arc for arc in arcs if arc.dependent == at), key=lambda a: -a.probability)
        names = ["ROOT" if arc.head is None else words[arc.head] for arc in mine]
        heads = [f"{name} {arc.probability:.2f}" for name, arc in zip(names, mine, strict=True)]
        lines.append(f"{word} <- {', '.join(heads) or '-'}\n")
    return "".join(lines)


class _Canvas:
    """Cells of lines and letters; a wide letter fills the one after it too."""

    def __init__(self, height: int, width: int) -> None:
        self._lines = [[0] * width for _ in range(height)]
        self._heavy = [[0] * width for _ in range(height)]
        self._letters: list[dict[int, str]] = [{} for _ in range(height)]

    def line(self, y: int, x: int, directions: int, heavy: bool) -> None:
        self._lines[y][x] |= directions
        if heavy:
            self._heavy[y][x] |= directions

    def write(self, y: int, x: int, text: str) -> None:
        if any(map(is_right_to_left, text)):  # or a terminal that turns words turns the line
            text = LEFT_TO_RIGHT_MARK + text + LEFT_TO_RIGHT_MARK
        waiting, last = "", x
        for letter in text:
            size = cells(letter)
            if size == 0 and not waiting and last < x:
                self._letters[y][last] += letter
                continue
            waiting += letter
            if size:
                self._letters[y][x], last, waiting = waiting, x, ""
                if size == 2:
                    self._letters[y][x + 1] = ""
                x += size

    def __str__(self) -> str:
        lines = []
        for y, line in enumerate(self._lines):
            drawn = [_box(mask, self._heavy[y][x]) for x, mask in enumerate(line)]
            for x, letter in self._letters[y].items():
                drawn[x] = letter
            lines.append("".join(drawn).rstrip() + "\n")
        return "".join(lines)


def _box(directions: int, heavy: int) -> str:
    if directions == _LEFT | _RIGHT | _UP | _DOWN:
        return _CROSSINGS[bool(heavy & (_LEFT | _RIGHT)), bool(heavy & (_UP | _DOWN))]
    return (_HEAVY if heavy else _LIGHT)[directions]


def _row(words: Sequence[str], row: Row, probabilities: bool) -> str:
    ground = row.levels + bool(row.roots) + 1 if row.bows or row.roots else 0
    canvas = _Canvas(ground + 1, int(row.width) + 2)
    for arc, x in row.roots:
        for y in range(ground):
            canvas.line(y, int(x), _UP | _DOWN, arc.probability >= _STRONG)
    for bow in row.bows:
        y, heavy = ground - 1 - bow.level, bow.arc.probability >= _STRONG
        left, right = sorted((int(bow.head), int(bow.dependent)))
        for x in range(left, right + 1):
            canvas.line(y, x, (_LEFT if x > left else 0) | (_RIGHT if x < right else 0), heavy)
        for word, x in ((bow.arc.head, bow.head), (bow.arc.dependent, bow.dependent)):
            if word != bow.elsewhere:
                canvas.line(y, int(x), _DOWN, heavy)
                for below in range(y + 1, ground):
                    canvas.line(below, int(x), _UP | _DOWN, heavy)
    for bow in row.bows:
        y = ground - 1 - bow.level
        left, right = sorted((int(bow.head), int(bow.dependent)))
        if bow.elsewhere is not None:
            name = cut(words[bow.elsewhere], 4 if cells(words[bow.elsewhere]) > 8 else 8)
            edge = bow.head if bow.elsewhere == bow.arc.head else bow.dependent
            at = right + 1 if int(edge) == right else left - cells(name)
            canvas.write(y, at, name)
        if bow.elsewhere != bow.arc.dependent:
            canvas.write(ground - 1, int(bow.dependent), "▼")
        if probabilities and right - left > 4:
            share = f"{bow.arc.probability:.2f}"
            canvas.write(y, (left + right) // 2 - 1, "1.0" if share == "1.00" else share[1:])
    for _, x in row.roots:
        canvas.write(0, int(x) - 1, "ROOT")
        canvas.write(ground - 1, int(x), "▼")
    for word, x in row.places.items():
        canvas.write(ground, int(x) - cells(words[word]) // 2, words[word])
    return str(canvas)
