"""Arcs over words for LaTeX, with the package `tikz-dependency`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probformer.viz.arc_layout import Arc, Measure, WordRow, lay_out
from probformer.viz.words import cut, escaped, pixels, run_right_to_left

HEADER = """\
% needs \\usepackage{tikz-dependency}; letters other than Latin ones need LuaLaTeX too, with
% \\usepackage[bidi=basic]{babel} and \\babelfont{rm}{a font that has them}
"""
BETWEEN = "\\par\\medskip\n"
_SEPARATION = 12.0
_MARK, _AROUND_MARK = 7.0, 16.0
"""Size of a label, and the space for the curves beside it."""
_MEASURE = Measure(  # in points, for letters of 10 pt; LaTeX's article has room in all its sizes
    width=lambda word: pixels(escaped(word), 10),
    gap=_SEPARATION + 4.3,  # cells have half an ex around their words
    port=0,
    root=22,
    margin=34,  # the dots, and the part of a label that is beyond them
    limit=325,
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
    return "".join(_ESCAPES.get(letter, letter) for letter in escaped(text))


def environments(words: Sequence[str], arcs: Sequence[Arc], title: str, probabilities: bool) -> str:
    """One for each row; an arc to another row ends at the edge, labelled by its word."""

    def mark(arc: Arc) -> float:
        return pixels(_mark(arc, probabilities), _MARK) + _AROUND_MARK if arc.label else 0.0

    measure = replace(_MEASURE, mark=mark, root=36 if probabilities else _MEASURE.root)
    rows = lay_out(words, arcs, measure)
    parts = [_environment(words, row, measure, probabilities) for row in rows]
    return (f"\\noindent {latex(title)}\\par\n" if title else "") + BETWEEN.join(parts)


def _mark(arc: Arc, probabilities: bool) -> str:
    mark = arc.mark(probabilities)
    return f"ROOT {mark}".strip() if arc.head is None else mark


def _environment(words: Sequence[str], row: WordRow, measure: Measure, probabilities: bool) -> str:
    order = sorted(row.places, key=row.places.__getitem__)
    rooted = {arc.dependent for arc, _ in row.roots}

    def cell(word: int) -> str:
        room = row.slots[word] - measure.gap
        widened = word in rooted or room > measure.width(words[word]) + 0.1
        return f"|[minimum width={room:.4g}pt]| " * widened + f"{{{latex(words[word])}}}"

    cells = [cell(word) for word in order]
    more = [0 not in row.places, len(words) - 1 not in row.places]  # before, after
    on_left, on_right = more[::-1] if run_right_to_left(words) else more
    cells = ["\\dots"] * on_left + cells + ["\\dots"] * on_right

    def column(word: int, x: float) -> int:
        if word in row.places:
            return 1 + on_left + order.index(word)
        return 1 if x < row.width / 2 else len(cells)

    lines = [
        "\\noindent",
        "\\begin{dependency}[label style={draw=none, inner sep=.3ex}]",
        f"\\begin{{deptext}}[column sep={_SEPARATION:g}pt]",
        " \\& ".join(cells) + " \\\\",
        "\\end{deptext}",
    ]
    for arc, x in row.roots:
        style = _style(arc, row.levels + 2, hidden=False)  # measured from the middle of the word
        mark = latex(_mark(arc, probabilities))
        lines.append(f"\\deproot[{style}]{{{column(arc.dependent, x)}}}{{{mark}}}")
    # From the top: what comes later covers the legs that it crosses.
    bows = sorted(row.bows, key=lambda bow: -bow.level)
    for arc, level, head, dependent, elsewhere in bows:
        assert arc.head is not None
        marks = [] if elsewhere is None else [latex(cut(escaped(words[elsewhere]), 10))]
        marks += [latex(mark)] if (mark := _mark(arc, probabilities)) else []
        ends = f"{{{column(arc.head, head)}}}{{{column(arc.dependent, dependent)}}}"
        lines.append(f"\\depedge[{_style(arc, level, not marks)}]{ends}{{{' '.join(marks)}}}")
    return "\n".join([*lines, "\\end{dependency}"]) + "\n"


def _style(arc: Arc, level: int, hidden: bool) -> str:
    width, opacity = 0.3 + 0.7 * arc.probability, 0.25 + 0.75 * arc.probability
    edge = f"edge style={{line width={width:.2f}pt, opacity={opacity:.2f}}}"
    return f"edge height={2 + 2.5 * level:g}ex, {edge}" + (", hide label" if hidden else "")
