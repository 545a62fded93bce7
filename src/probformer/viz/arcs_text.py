"""Arcs over words in a terminal: box drawing, or a plain list if that is too wide."""

from __future__ import annotations

from collections.abc import Sequence

from probformer.viz.arc_layout import Arc, Measure, WordRow, lay_out
from probformer.viz.words import cells, escaped, fitted, kept_in_place

_NARROW = 40
_NAME, _SHARE = 8, 4
"""Cells of the name of a word in another row, and of a probability."""
_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_LIGHT = " ───│┘└┴│┐┌┬│┤├┼"
_HEAVY = " ━━━┃┛┗┻┃┓┏┳┃┫┣╋"
_CROSSINGS = {(False, False): "┼", (True, False): "┿", (False, True): "╂", (True, True): "╋"}
_STRONG = 0.5


def panel(words: Sequence[str], arcs: Sequence[Arc], probabilities: bool, width: int) -> str:
    """Arcs of a probability of at least 0.5 are heavy lines."""
    words = [escaped(word) for word in words]
    gap = 4 if probabilities else 2  # the shortest arc has room for its probability
    margin = 1 + _NAME + (_SHARE if probabilities else 0)
    measure = Measure(cells, gap=gap, port=2, root=4, margin=margin, limit=width)
    rows = lay_out(words, arcs, measure)
    if width < _NARROW or rows[0].width > width:  # a word may be too wide, or have too many arcs
        return _listed(words, arcs)
    return "\n".join(_row(words, row, probabilities) for row in rows)


def _listed(words: Sequence[str], arcs: Sequence[Arc]) -> str:
    lines = []
    for at, word in enumerate(words):
        mine = sorted((arc for arc in arcs if arc.dependent == at), key=lambda a: -a.probability)
        names = ["ROOT" if arc.head is None else kept_in_place(words[arc.head]) for arc in mine]
        heads = [f"{name} {arc.probability:.2f}" for name, arc in zip(names, mine, strict=True)]
        lines.append(f"{kept_in_place(word)} <- {', '.join(heads) or '-'}\n")
    return "".join(lines)


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


def _row(words: Sequence[str], row: WordRow, probabilities: bool) -> str:
    top = (1 + probabilities) * bool(row.roots)
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
        share = _share(bow.arc) if probabilities else ""
        if bow.elsewhere is not None:
            name = fitted(words[bow.elsewhere], _NAME)
            edge = bow.head if bow.elsewhere == bow.arc.head else bow.dependent
            room = _SHARE if probabilities else 0
            if int(edge) == right:
                canvas.write(y, right + 1, share)
                canvas.write(y, right + 1 + room, name)
            else:
                canvas.write(y, left - len(share), share)
                canvas.write(y, left - room - cells(name), name)
        elif probabilities:
            canvas.write(y, canvas.free(y, left, right, len(share)), share)
        if bow.elsewhere != bow.arc.dependent:
            canvas.write(ground - 1, int(bow.dependent), "▼")
    for arc, x in row.roots:
        canvas.write(0, int(x) - 1, "ROOT")
        if probabilities:
            canvas.write(1, int(x) - 1, _share(arc))
        canvas.write(ground - 1, int(x), "▼")
    for word, x in row.places.items():
        canvas.write(ground, int(x) - cells(words[word]) // 2, words[word])
    return str(canvas)


def _share(arc: Arc) -> str:
    """In three cells."""
    written = f"{arc.probability:.2f}"
    return "1.0" if written == "1.00" else written[1:]
