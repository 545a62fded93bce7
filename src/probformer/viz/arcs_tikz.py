"""Arcs over words for LaTeX, with the package tikz-dependency."""

from __future__ import annotations

from collections.abc import Sequence

from probformer.viz.layout import Arc, Bow, Measure, lay_out
from probformer.viz.words import pixels, run_right_to_left, shown

_LINE = 620.0
"""Pixels of our measure that fit beside each other on a page; what is longer is shrunk."""
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
    **{letter: "\\" + letter for letter in "{}$&#_%"},
}


def latex(text: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in shown(text))


def environment(
    words: Sequence[str], arcs: Sequence[Arc], title: str, probabilities: bool
) -> str:
    """All words in one row, from right to left where the script does."""
    measure = Measure(pixels, gap=16, port=9, root=34, margin=0, limit=float("inf"))
    (row,) = lay_out(words, arcs, measure)
    backwards = run_right_to_left(words)
    shownwords = [f"{{{latex(word)}}}" for word in (reversed(words) if backwards else words)]

    def column(word: int) -> int:
        return len(words) - word if backwards else word + 1

    lines = [f"\\par\\noindent {latex(title)}\\par"] if title else []
    lines += ["\\resizebox{\\linewidth}{!}{%"] if row.width > _LINE else []
    lines += [
        "\\begin{dependency}",
        "\\begin{deptext}[column sep=1.2em]",
        " \\& ".join(shownwords) + " \\\\",
        "\\end{deptext}",
    ]
    for bow in row.bows:
        assert bow.arc.head is not None
        ends = f"{{{column(bow.arc.head)}}}{{{column(bow.arc.dependent)}}}"
        height = f"edge height={2 + 2.5 * bow.level:g}ex, "
        lines.append(f"\\depedge[{height}{_style(bow.arc, probabilities)}]{ends}{_mark(bow, probabilities)}")
    for arc, _ in row.roots:
        height = f"edge height={4.5 + 2.5 * row.levels:g}ex, "
        style = _style(arc, True)
        lines.append(f"\\deproot[{height}{style}]{{{column(arc.dependent)}}}{{ROOT}}")
    lines.append("\\end{dependency}")
    lines += ["}"] if row.width > _LINE else []
    return "\n".join(lines) + "\n"


def _mark(bow: Bow, probabilities: bool) -> str:
    return f"{{{bow.arc.probability:.2f}}}" if probabilities else "{}"


def _style(arc: Arc, labelled: bool) -> str:
    width, opacity = 0.3 + 0.7 * arc.probability, 0.2 + 0.8 * arc.probability
    edge = f"edge style={{line width={width:.2f}pt, opacity={opacity:.2f}}}"
    return edge if labelled else f"{edge}, hide label"
