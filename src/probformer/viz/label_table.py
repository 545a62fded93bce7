"""The strongest labels of each word, and the words of the vocabulary that own them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probformer.errors import InputError, require_whole
from probformer.viz.numbers import as_array, check_probabilities, check_words
from probformer.viz.picture import FILE_WIDTH, Picture
from probformer.viz.svg import Block, document, markup, tag, text
from probformer.viz.words import cells, cut, escaped, fitted, kept_in_place, pixels

STRONGEST = 3

_LINE = 22.0
_BAR = 60.0
_LONGEST = 24


@dataclass(frozen=True)
class WordLabel:
    """One of the strongest labels of a word."""

    number: int
    probability: float
    owners: tuple[str, ...]

    def listed(self) -> str:
        return " · ".join(self.owners)


@dataclass(frozen=True)
class LabelTable(Picture):
    kind = "table of labels"

    words: tuple[str, ...]
    labels: tuple[tuple[WordLabel, ...], ...]
    """For each word, the strongest first."""
    title: str

    def svg(self) -> str:
        """A line for each label: word, bar, label, owners."""
        names = [cut(escaped(word), _LONGEST) for word in self.words]
        word_end = max(map(pixels, names))
        bar, number, owners = word_end + 16, word_end + _BAR + 60, word_end + _BAR + 110
        owned = [escaped(label.listed()) for labels in self.labels for label in labels]
        width = owners + max(pixels(names, 13) for names in owned)
        body, y = "", 0.0
        for name, labels in zip(names, self.labels, strict=True):
            body += text(name, word_end, y + 16, text_anchor="end")
            for label in labels:
                size = _BAR * label.probability
                body += tag("rect", x=bar, y=y + 5, width=size, height=12, class_="tip", rx=2)
                share = f"{label.probability:.2f}"
                body += text(share, bar + size + 4, y + 15, 11, class_="dim", text_anchor="start")
                body += text(f"{label.number}", number + 28, y + 16, 13, text_anchor="end")
                body += text(label.listed(), owners, y + 16, 13, class_="dim", text_anchor="start")
                y += _LINE
            body += tag("path", d=f"M0 {y + 2:g} H{width:.0f}", class_="line", stroke_width=0.5)
            y += 6
        return document(Block(width, y - 6, body), self.title)

    def html_body(self) -> str:
        rows = "".join(
            "<tr>"
            + (
                f'<th scope="rowgroup" rowspan="{len(labels)}" dir="auto">{markup(word)}</th>'
                if first
                else ""
            )
            + f"<td>{label.number}</td><td>{label.probability:.2f}</td>"
            + f'<td><div class="bar" style="width: {8 * label.probability:.2f}em"></div></td>'
            + f'<td dir="auto">{markup(label.listed())}</td></tr>\n'
            for word, labels in zip(self.words, self.labels, strict=True)
            for first, label in ((at == 0, label) for at, label in enumerate(labels))
        )
        style = "td, th { padding: .15rem .7rem; text-align: start; vertical-align: top; }\n"
        style += ".bar { background: #4a86c8; height: .8em; border-radius: 2px; margin: .2em 0; }"
        header = "<tr><th>word</th><th>label</th><th colspan='2'>probability</th>"
        return (
            f"<style>{style}</style>\n<div class='scroll'><table>\n"
            f"{header}<th>owned by</th></tr>\n{rows}</table></div>"
        )

    def text(self, width: int = FILE_WIDTH) -> str:
        names = [fitted(escaped(word), min(_LONGEST, max(width // 4, 4))) for word in self.words]
        margin = max(map(cells, names))
        lines = []
        for name, labels in zip(names, self.labels, strict=True):
            for at, label in enumerate(labels):
                word = kept_in_place(name) if at == 0 else ""
                start = f"{word}{' ' * (margin - cells(word))}  {label.number:>4}"
                start += f"  {label.probability:.2f}  "
                room = max(width - cells(start), 1)
                lines.append((start + fitted(escaped(label.listed()), room)).rstrip())
        return "\n".join(lines) + "\n"


def label_table(
    words: Sequence[str],
    marginals: Any,
    owners: Mapping[int, Sequence[str]] | None = None,
    *,
    strongest: int = STRONGEST,
) -> LabelTable:
    """A table of the strongest labels of each word.

    Args:
        words: The n words of a sentence.
        marginals: (n, d): row i is the distribution over the labels of word i.
        owners: By label, the words of the vocabulary that own it.
        strongest: The number of labels for each word.

    Returns:
        A line for each label of each word.

    Raises:
        InputError: Shapes do not fit, or numbers are no probabilities.
    """
    check_words(words)
    require_whole("strongest", strongest)
    values = as_array("marginals", marginals)
    if values.ndim != 2 or len(values) != len(words) or not values.size:
        raise InputError(f"marginals must have the shape ({len(words)}, d), got {values.shape}")
    check_probabilities("marginals", values)
    owned = {} if owners is None else owners
    order = np.argsort(-values, axis=1, kind="stable")[:, :strongest]
    table = tuple(
        tuple(WordLabel(int(a), float(values[i, a]), tuple(owned.get(int(a), ()))) for a in row)
        for i, row in enumerate(order)
    )
    return LabelTable(tuple(words), table, " ".join(words))
