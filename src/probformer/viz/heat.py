"""Head marginals as heat maps: rows are dependents, columns are heads, ROOT first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probformer.viz.numbers import Floats, distributions, titles_of
from probformer.viz.picture import FILE_WIDTH, Picture
from probformer.viz.svg import Block, document, markup, moved, number, tag, text
from probformer.viz.words import (
    cells,
    cut,
    escaped,
    fitted,
    kept_in_place,
    pixels,
    run_right_to_left,
)

_SHADES = " ░▒▓█"
_LONGEST = 16
_TURN, _ACROSS, _UP = 60, 0.5, 0.87  # the angle of column names, its cosine and its sine
_FAINT = 0.005


@dataclass(frozen=True, eq=False)
class HeatMap(Picture):
    kind = "heat map"

    words: tuple[str, ...]
    columns: tuple[str, ...]
    panels: tuple[tuple[str, Floats], ...]
    """Titles, and matrices of words × columns."""
    title: str
    probabilities: bool = False
    """Whether they are written into the cells."""

    def svg(self) -> str:
        blocks = [self._panel(title, matrix) for title, matrix in self.panels]
        width, height = blocks[0].width + 28, blocks[0].height + 28
        side = min(4, len(blocks), max(1, int(1800 // width)))
        places = [(at % side * width, at // side * height) for at in range(len(blocks))]
        body = "".join(moved(block, x, y) for block, (x, y) in zip(blocks, places, strict=True))
        bottom = places[-1][1] + height
        key = "rows: words; columns: their heads"
        body += text(key, 0, bottom - 10, 11, class_="dim", text_anchor="start")
        return document(
            Block(max(side * width - 28, pixels(key, 11)), bottom - 6, body), self.title
        )

    def _panel(self, title: str, matrix: Floats) -> Block:
        cell = 30.0 if self.probabilities else max(14.0, min(26.0, 700 / len(self.words)))
        font = min(13.0, cell * 0.8)
        rows = [cut(escaped(word), _LONGEST) for word in self.words]
        columns = [cut(escaped(word), _LONGEST) for word in self.columns]
        left = max(pixels(word, font) for word in rows) + 10
        longest = max(pixels(word, font) for word in columns)
        top = longest * _UP + font + 4 + (24 if title else 0)
        grid_width, grid_height = cell * len(columns), cell * len(rows)
        total = max(left + grid_width + longest * _ACROSS, pixels(title, 13))
        mirrored = run_right_to_left(self.words)

        def across(at: float) -> float:
            return total - left - at * cell if mirrored else left + at * cell

        body = text(title, 0, 13, 13, class_="dim", text_anchor="start") if title else ""
        for at, word in enumerate(columns):
            x = across(at + 0.5)
            turn = f"rotate({_TURN if mirrored else -_TURN} {number(x)} {number(top - 6)})"
            anchor = "end" if mirrored else "start"
            body += text(word, x, top - 6, font, text_anchor=anchor, transform=turn)
        for at, word in enumerate(rows):
            anchor = "start" if mirrored else "end"
            x = across(0) + (8 if mirrored else -8)
            body += text(word, x, top + (at + 0.5) * cell + font / 3, font, text_anchor=anchor)
        edge = min(across(0), across(len(columns)))
        body += tag("rect", x=edge, y=top, width=grid_width, height=grid_height, class_="line")
        for i, j in np.argwhere(matrix >= _FAINT):
            x = min(across(int(j)), across(int(j) + 1))
            body += self._cell(int(i), int(j), float(matrix[i, j]), x, top + i * cell, cell)
        return Block(total, top + grid_height + 1, body)

    def _cell(self, i: int, j: int, value: float, x: float, y: float, cell: float) -> str:
        hint = tag("title", markup(f"{self.words[i]} ← {self.columns[j]}  {value:.2f}"))
        box = {"x": x + 0.5, "y": y + 0.5, "width": cell - 1, "height": cell - 1}
        drawn = tag("rect", hint, class_="tip", fill_opacity=value, **box)
        if self.probabilities and value >= 0.05:
            kind = "paper" if value > 0.6 else "ink"
            drawn += text(f"{value:.2f}", x + cell / 2, y + cell / 2 + 4, 11, class_=kind)
        return drawn

    def text(self, width: int = FILE_WIDTH) -> str:
        """Shades from blank to full, two characters for each head; columns are numbered like rows.

        Columns that do not fit into the width follow in further blocks. A block lists only the
        words that have a shade in it, or are one of its columns.
        """
        names = [fitted(escaped(word), min(_LONGEST, max(width // 4, 4))) for word in self.words]
        margin = max(map(cells, names))
        starts = [
            f"{at:>3} {kept_in_place(name)}{' ' * (margin - cells(name))} "
            for at, name in enumerate(names, 1)
        ]
        rooted = len(self.columns) - len(names)
        numbers = ["R "] * rooted + [f"{at % 100:<2}" for at in range(1, len(names) + 1)]
        most = max((width - margin - 5) // 2, 1)
        lines = []
        for title, matrix in self.panels:
            lines += [title] if title else []
            for first in range(0, len(numbers), most):
                part = range(first, min(first + most, len(numbers)))
                lines.append(" " * (margin + 5) + "".join(numbers[at] for at in part).rstrip())
                for at, start in enumerate(starts):
                    shades = "".join(2 * _shade(matrix[at, head]) for head in part).rstrip()
                    if shades or at + rooted in part:
                        lines.append((start + shades).rstrip())
        return "\n".join(lines) + "\n"


def _shade(value: float) -> str:
    return _SHADES[min(int(value * 4 + 0.5), 4)]


def heat_map(
    words: Sequence[str],
    heads: Any,
    root: Any = None,
    *,
    probabilities: bool = False,
    titles: Sequence[str] = (),
) -> HeatMap:
    """Head marginals as heat maps: rows are dependents, columns are heads.

    Args:
        words: The n words of a sentence.
        heads: (n, n): row i is the distribution over the head of word i. Lists, arrays or tensors.
            (h, n, n) makes several maps, one for each channel.
        root: (n,), or (h, n): the probability that ROOT heads each word.
        probabilities: Whether to write them into the cells.
        titles: One for each map.

    Returns:
        One map, or several beside each other.

    Raises:
        InputError: Shapes do not fit, or numbers are no probabilities.
    """
    matrices, roots = distributions(words, heads, root)
    maps = tuple(
        (title, matrix if above is None else np.column_stack([above, matrix]))
        for title, matrix, above in zip(titles_of(matrices, titles), matrices, roots, strict=True)
    )
    columns = tuple(words) if root is None else ("ROOT", *words)
    return HeatMap(tuple(words), columns, maps, " ".join(words), probabilities)
