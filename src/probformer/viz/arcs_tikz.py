"""Arcs over words for LaTeX, with the package tikz-dependency."""

from __future__ import annotations

from collections.abc import Sequence

from probformer.viz.layout import Arc, Measure, Row, lay_out
from probformer.viz.words import pixels, shown

_MEASURE = Measure(  # the limit is what fits on a line of LaTeX's own article in letters of 10 pt
    width=lambda word: pixels(shown(word)), gap=18, port=0, root=34, margin=32, limit=510
)
_ESCAPES = {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    '"': "\\char34{}",
    "`": "\\char96{}",
    "'": "\\char39{}",
    "-": "-{}",  # two of them would become one dash
    **{letter: "\\" + letter for letter in "{}$#_%"},
    "&": "\\char38{}",  # \\& stands between words
}


def latex(text: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in shown(text))


def environments(words: Sequence[str], arcs: Sequence[Arc], title: str, probabilities: bool) -> str:
    """One for each row; an arc to another row ends in dots at the edge, named after its word."""
    rows = lay_out(words, arcs, _MEASURE)
    parts = [_environment(words, row, len(rows) > 1, probabilities) for row in rows]
    return (f"\\par\\noindent {latex(title)}\\par\n" if title else "") + "\n\n".join(parts)


def _environment(words: Sequence[str], row: Row, broken: bool, probabilities: bool) -> str:
    order = sorted(row.places, key=row.places.__getitem__)
    dots = ["\\dots"] if broken else []
    cells = [*dots, *(f"{{{latex(words[word])}}}" for word in order), *dots]

    def column(word: int, x: float) -> int:
        if word in row.places:
            return 1 + broken + order.index(word)
        return 1 if x < row.width / 2 else len(cells)

    lines = [
        "\\begin{dependency}",
        "\\begin{deptext}[column sep=1.2em]",
        " \\& ".join(cells) + " \\\\",
        "\\end{deptext}",
    ]
    for arc, level, head, dependent, elsewhere in row.bows:
        assert arc.head is not None
        marks = [] if elsewhere is None else [latex(words[elsewhere])]
        marks += [f"{arc.probability:.2f}"] if probabilities else []
        ends = f"{{{column(arc.head, head)}}}{{{column(arc.dependent, dependent)}}}"
        lines.append(f"\\depedge[{_style(arc, level, not marks)}]{ends}{{{' '.join(marks)}}}")
    for arc, x in row.roots:
        style = _style(arc, row.levels + 1, hidden=False)
        lines.append(f"\\deproot[{style}]{{{column(arc.dependent, x)}}}{{ROOT}}")
    return "\n".join([*lines, "\\end{dependency}"]) + "\n"


def _style(arc: Arc, level: int, hidden: bool) -> str:
    width, opacity = 0.3 + 0.7 * arc.probability, 0.25 + 0.75 * arc.probability
    edge = f"edge style={{line width={width:.2f}pt, opacity={opacity:.2f}}}"
    return f"edge height={2 + 2.5 * level:g}ex, {edge}" + (", hide label" if hidden else "")
