"""Arcs over words: one panel, a grid of panels, or panels one after the other in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probformer.errors import require_between
from probformer.viz import arcs_svg, arcs_text, arcs_tikz
from probformer.viz.arc_layout import Arc
from probformer.viz.numbers import (
    Floats,
    LabelTable,
    as_array,
    distributions,
    for_panels,
    label_table,
    titles_of,
)
from probformer.viz.picture import FILE_WIDTH, Picture
from probformer.viz.svg import document

THRESHOLD = 0.15


@dataclass(frozen=True)
class Panel:
    arcs: tuple[Arc, ...]
    title: str = ""


@dataclass(frozen=True)
class Arcs(Picture):
    words: tuple[str, ...]
    panels: tuple[Panel, ...]
    title: str
    probabilities: bool = False
    """Whether they are written at the arcs."""

    def svg(self) -> str:
        panels = [(panel.title, panel.arcs) for panel in self.panels]
        return document(arcs_svg.grid(self.words, panels, self.probabilities), self.title)

    def tikz(self) -> str:
        parts = [
            arcs_tikz.environments(self.words, panel.arcs, panel.title, self.probabilities)
            for panel in self.panels
        ]
        return arcs_tikz.HEADER + arcs_tikz.BETWEEN.join(parts)

    def text(self, width: int = FILE_WIDTH) -> str:
        return "\n".join(
            (f"{panel.title}\n" if panel.title else "")
            + arcs_text.panel(self.words, panel.arcs, self.probabilities, width)
            for panel in self.panels
        )


@dataclass(frozen=True)
class Animation(Arcs):
    """One panel at a time: animated in SVG, with a slider in HTML; text has all panels in order."""

    def svg(self) -> str:
        return document(self._frames(moving=True), self.title)

    def html_body(self) -> str:
        still = document(self._frames(moving=False), self.title)
        return _PLAYER.format(svg=still, last=len(self.panels))

    def _frames(self, moving: bool) -> arcs_svg.Block:
        panels = [(panel.title, panel.arcs) for panel in self.panels]
        return arcs_svg.frames(self.words, panels, self.probabilities, moving)


_PLAYER = """<p><button type="button" id="play">play</button>
<input type="range" id="frame" min="1" max="{last}" value="{last}" aria-label="frame"></p>
<div class="scroll">{svg}</div>
<script>
const frames = document.querySelectorAll("g.frame");
const slider = document.getElementById("frame"), button = document.getElementById("play");
let timer = null;
function show() {{
  frames.forEach((g, t) => g.setAttribute("visibility",
    t + 1 === slider.valueAsNumber ? "visible" : "hidden"));
}}
function stop() {{ clearInterval(timer); timer = null; button.textContent = "play"; }}
function step() {{
  slider.value = slider.valueAsNumber % frames.length + 1;
  show();
}}
button.addEventListener("click", () => {{
  if (timer) return stop();
  button.textContent = "pause";
  step();
  timer = setInterval(step, 1200);
}});
slider.addEventListener("input", () => {{ stop(); show(); }});
</script>"""


def arcs(
    words: Sequence[str],
    heads: Any,
    root: Any = None,
    *,
    labels: Any = None,
    label_probabilities: Any = None,
    threshold: float = THRESHOLD,
    probabilities: bool = False,
    titles: Sequence[str] = (),
) -> Arcs:
    """Arcs from heads to dependents, over the words.

    Args:
        words: The n words of a sentence.
        heads: (n, n): row i is the distribution over the head of word i. Lists, arrays or tensors.
            (h, n, n) makes a grid of panels, one for each channel.
        root: (n,), or (h, n): the probability that ROOT heads each word.
        labels: (n, n) texts, or (n, n+1) with ROOT in the last column: the label of each arc, ""
            for none. For a grid a list with these for each panel, or None.
        label_probabilities: Numbers of the same shapes: the probability of each label, given its
            arc.
        threshold: Arcs below this probability are left out.
        probabilities: Whether to write those of arcs at the arcs.
        titles: One for each panel.

    Returns:
        One panel, or a grid of panels.

    Raises:
        InputError: Shapes do not fit, or numbers are no probabilities.
    """
    panels = _panels(words, heads, root, labels, label_probabilities, threshold, titles)
    return Arcs(tuple(words), panels, " ".join(words), probabilities)


def animation(
    words: Sequence[str],
    heads: Any,
    root: Any = None,
    *,
    labels: Any = None,
    label_probabilities: Any = None,
    threshold: float = THRESHOLD,
    probabilities: bool = False,
    titles: Sequence[str] = (),
) -> Animation:
    """Arcs over the words that change over iterations, or layers.

    Args:
        words: The n words of a sentence.
        heads: (T, n, n): row i of each step is the distribution over the head of word i.
        root: (T, n): the probability that ROOT heads each word.
        labels: For each step (n, n) texts, or (n, n+1) with ROOT in the last column: the label of
            each arc, "" for none.
        label_probabilities: Numbers of the same shapes: the probability of each label, given its
            arc.
        threshold: Arcs below this probability are left out.
        probabilities: Whether to write those of arcs at the arcs.
        titles: One for each step.

    Returns:
        A panel for each step; words and arcs keep their places.

    Raises:
        InputError: Shapes do not fit, or numbers are no probabilities.
    """
    panels = _panels(words, heads, root, labels, label_probabilities, threshold, titles)
    return Animation(tuple(words), panels, " ".join(words), probabilities)


def _panels(
    words: Sequence[str],
    heads: Any,
    root: Any,
    labels: Any,
    label_probabilities: Any,
    threshold: float,
    titles: Sequence[str],
) -> tuple[Panel, ...]:
    require_between("threshold", threshold, 0, 1)
    matrices, roots = distributions(words, heads, root)
    named = titles_of(matrices, titles)
    single = as_array("heads", heads).ndim == 2
    given = [
        for_panels(name, len(matrices), [values] if single else values)
        for name, values in (("labels", labels), ("label_probabilities", label_probabilities))
    ]
    tables = [label_table(words, *of_panel) for of_panel in zip(*given, strict=True)]
    return tuple(
        Panel(_strong(matrix, above, table, threshold), title)
        for matrix, above, table, title in zip(matrices, roots, tables, named, strict=True)
    )


def _strong(
    heads: Floats, root: Floats | None, labels: LabelTable, threshold: float
) -> tuple[Arc, ...]:
    """Arcs of at least that probability; never those of probability 0."""
    kept = (heads >= threshold) & (heads > 0)
    places = [(int(i), int(j)) for i, j in np.argwhere(kept) if i != j]
    arcs = [Arc(i, j, float(heads[i, j]), *labels.get((i, j), ("", None))) for i, j in places]
    if root is not None:
        above = map(int, np.flatnonzero((root >= threshold) & (root > 0)))
        arcs += [Arc(i, None, float(root[i]), *labels.get((i, None), ("", None))) for i in above]
    return tuple(arcs)
