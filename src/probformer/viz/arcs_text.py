"""Arcs over words in a terminal: box drawing, or a plain list if that is too wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probformer.viz.arc_layout import Arc, Measure, WordRow, lay_out
from probformer.viz.words import cells, escaped, fitted, kept_in_place

_NARROW = 40
_NAME, _LABEL = 8, 12
"""The most cells of the name of a word in another row, and of a label."""
_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_LIGHT = " ───│┘└┴│┐┌┬│┤├┼"
_HEAVY = " ━━━┃┛┗┻┃┓┏┳┃┫┣╋"
_CROSSINGS = {(False, False): "┼", (True, False): "┿", (False, True): "╂", (True, True): "╋"}
_STRONG = 0.5


def panel(words: Sequence[str], arcs: Sequence[Arc], probabilities: bool, width: int) -> str:
    """Arcs of a probability of at least 0.5 are heavy lines."""
    words = [escaped(word) for word in words]
    marks = {arc[:2]: _mark(arc, probabilities) for arc in arcs}
    widest = max(map(cells, marks.values()), default=0)
    room = widest + 1 if widest else 0
    measure = Measure(
        cells,
        gap=4 if probabilities else 2,  # the shortest arc has room for its probability
        port=2,
        root=4,
        margin=1 + _NAME + room,
        limit=width,
        mark=lambda arc: cells(marks[arc[:2]]) + 3 if arc.label else 0,
    )
    rows = lay_out(words, arcs, measure)
    if width < _NARROW or rows[0].width > width:  # a word may be too wide, or have too many arcs
        return _listed(words, arcs)
    return "\n".join(_row(words, row, marks, room) for row in rows)


def _listed(words: Sequence[str], arcs: Sequence[Arc]) -> str:
    lines = []
    for at, word in enumerate(words):
        mine = sorted((arc for arc in arcs if arc.dependent == at), key=lambda a: -a.probability)
        heads = [_head(words, arc) for arc in mine]
        lines.append(f"{kept_in_place(word)} <- {', '.join(heads) or '-'}\n")
    return "".join(lines)


def _head(words: Sequence[str], arc: Arc) -> str:
    name = "ROOT" if arc.head is None else kept_in_place(words[arc.head])
    label = f" ({kept_in_place(escaped(arc.label))})" if arc.label else ""
    return f"{name}{label} {arc.probability:.2f}"


class _Canvas:
    """Cells of lines and letters; a wide letter takes two cells."""

    def __init__(self, height: int, width: int) -> None:
        self._lines = [[0] * width for _ in range(height)]
        self._heavy = [[0] * width for _ in range(height)]
        self._letters: list[dict[int, str]] = [{} for _ in range(height)]

    def line(self, y: int, x: int, directions: int, heavy: bool) -> None:
        self._lines[y][x] |= directions
        if heavy:
            self._heavy[y][x] |= directions

    def free(self, y: int, left: int, right: int, size: int) -> int:
        """Where to write: over as few crossing lines as possible, and near the middle."""
        crossed = [bool(cell & (_UP | _DOWN)) for cell in self._lines[y]]
        middle = (left + right - size + 1) / 2
        return min(
            range(left + 1, right - size + 1),
            key=lambda x: (sum(crossed[x : x + size]), abs(x - middle)),
        )

    def write(self, y: int, x: int, text: str) -> None:
        waiting, last = "", x
        for letter in kept_in_place(text):
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


def _row(
    words: Sequence[str], row: WordRow, marks: Mapping[tuple[int, int | None], str], room: int
) -> str:
    top = (1 + any(marks[arc[:2]] for arc, _ in row.roots)) * bool(row.roots)
    ground = row.levels + top + 1 if row.bows or row.roots else 0
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
        mark = marks[bow.arc[:2]]
        if bow.elsewhere is not None:
            name = fitted(words[bow.elsewhere], _NAME)
            edge = bow.head if bow.elsewhere == bow.arc.head else bow.dependent
            if int(edge) == right:
                canvas.write(y, right + 1, mark)
                canvas.write(y, right + 1 + room, name)
            else:
                canvas.write(y, left - cells(mark), mark)
                canvas.write(y, left - room - cells(name), name)
        elif mark:
            canvas.write(y, canvas.free(y, left, right, cells(mark)), mark)
        if bow.elsewhere != bow.arc.dependent:
            canvas.write(ground - 1, int(bow.dependent), "▼")
    for arc, x in row.roots:
        canvas.write(0, int(x) - 1, "ROOT")
        if mark := marks[arc[:2]]:
            canvas.write(1, int(x) - (cells(mark) - 1) // 2, mark)
        canvas.write(ground - 1, int(x), "▼")
    for word, x in row.places.items():
        canvas.write(ground, int(x) - cells(words[word]) // 2, words[word])
    return str(canvas)


def _mark(arc: Arc, probabilities: bool) -> str:
    """The label, and the probability in three cells."""
    share = f"{arc.probability:.2f}"
    share = "1.0" if share == "1.00" else share[1:]
    parts = [fitted(escaped(arc.label), _LABEL)] * bool(arc.label) + [share] * probabilities
    return " ".join(parts)
