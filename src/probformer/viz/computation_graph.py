"""One iteration of inference as a computation graph, beside the parts of a transformer layer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from probformer.config import EncoderSettings, FullSettings
from probformer.viz.head_groups import named, one_label, tree_channels
from probformer.viz.picture import Picture
from probformer.viz.svg import Block, document, markup, number, tag, text
from probformer.viz.words import pixels

_NONE = "—"
"""In place of a part that a transformer does not have."""
_STEP = 62.0
_BOX = 40.0
_LEFT = 96.0
"""x of the boxes; the loop and the connection of S are left of them."""


class _Part(NamedTuple):
    formula: str
    meaning: str
    in_transformer: str


@dataclass(frozen=True)
class ComputationGraph(Picture):
    kind = "computation graph"

    settings: EncoderSettings
    title: str = kind

    def svg(self) -> str:
        return document(_drawn(self.settings), self.title)


def computation_graph(settings: EncoderSettings) -> ComputationGraph:
    """The computation of an encoder with these settings; as SVG or HTML."""
    return ComputationGraph(settings)


def _parts(settings: EncoderSettings) -> list[_Part]:
    """From word scores to the representation; an iteration begins at the second part."""
    inference, potential = settings.inference, settings.potential
    z, h = _name(inference.normaliser_z), _name(inference.normaliser_h)
    full = isinstance(potential, FullSettings)
    x, y = ("Q_Z T", "Q_Z") if full else ("Q_Z U", "Q_Z V")
    messages = "(A Tᵀ + C)" if full else "(A Uᵀ + C Vᵀ)"
    heads = "words" + (" and ROOT" if settings.root else "")
    split = settings.globals is not None and settings.globals.mode != "all-dep"
    if settings.globals is not None and not split:
        heads += f" and {settings.globals.count} features"
    parts = [
        _Part("S", f"scores of {settings.labels} labels, by word", "word embeddings"),
        _Part(f"Q_Z = {z}((S + G) / λ_Z)", "labels of words", "layer norm (pre-LN)"),
        _Part(f"X = {x},  Y = {y}", "as dependents, as heads", "queries; keys and values, tied"),
        _Part("F = X Yᵀ", f"{settings.channels} channels", "Q Kᵀ, heads"),
        *_head_parts(settings, h, heads),
        _Part("A = Q_H Y,  C = Q_Hᵀ X", "from heads, from dependents", "attention × values"),
        _Part(f"G = Σ_c {messages}", "messages to labels", "W^O, tied to W^Q"),
    ]
    if settings.arc_labels is not None:
        formula = "G + Σ_l Q_l (Q_Z V_l) U_lᵀ + Q_lᵀ (Q_Z U_l) V_lᵀ"
        parts.append(_Part(formula, "messages of labels of arcs", _NONE))
    if settings.globals is not None and split:
        count, mode = settings.globals.count, settings.globals.mode
        formula = f"G + {'Σ_c ' if mode == 'dep-split' else ''}{h}(Q_Z Bᵀ / λ_H) B"
        parts.append(_Part(formula, f"{count} features, {mode}", "feed-forward"))
    return [
        *parts,
        _Part("S + G", "word and context", "residual connection"),
        _Part("(S + G) / λ_Z", "after the last iteration", "contextual embeddings"),
    ]


def _head_parts(settings: EncoderSettings, normaliser: str, heads: str) -> list[_Part]:
    """From the scores of arcs to Q_H, for channels of each kind; of those with labels, Q_l too."""
    labelled = settings.arc_labels and settings.arc_labels.channel
    trees = {c: kind for kind, channels in tree_channels(settings).items() for c in channels}
    groups: dict[tuple[str | None, bool], list[int]] = {}
    for channel in range(settings.channels):
        groups.setdefault((trees.get(channel), channel == labelled), []).append(channel)
    parts: list[_Part] = []
    for (kind, has_labels), channels in sorted(groups.items(), key=lambda group: group[0][1]):
        where = "" if len(groups) == 1 else f"{named(channels)}: "
        scores = "F / λ_H"
        if has_labels:
            formula = "F_l = F + (Q_Z U_l) (Q_Z V_l)ᵀ + b_l"
            parts.append(_Part(formula, f"{where}l is {one_label(settings)}", _NONE))
            parts.append(_Part("θ = log Σ_l exp(F_l / λ_H)", "arcs with any label", _NONE))
            scores = "θ"
        if kind is None:
            meaning = f"{where}over {heads}, never itself"
            parts.append(_Part(f"Q_H = {normaliser}({scores})", meaning, "attention, scaled"))
        else:
            meaning = f"{where}arcs of a random {kind}, P(tree) ∝ exp(Σ {scores})"
            parts.append(_Part(f"Q_H = {kind}s({scores})", meaning, "structured attention"))
        if has_labels:
            parts.append(_Part("Q_l = Q_H exp(F_l / λ_H − θ)", "arcs with label l", _NONE))
    return parts


def _name(normaliser: object) -> str:
    return normaliser if isinstance(normaliser, str) else getattr(normaliser, "__name__", "σ")


def _drawn(settings: EncoderSettings) -> Block:
    parts = _parts(settings)
    inner = max(pixels(part.formula) for part in parts) + 24
    meaning = _LEFT + inner + 14
    layer = meaning + max(pixels(part.meaning, 12) for part in parts) + 20
    width = layer + max(pixels(part.in_transformer, 13) for part in parts)
    tops = [28 + _STEP * at for at in range(len(parts))]
    middle = _LEFT + inner / 2
    body = text("probabilistic transformer", _LEFT, 13, 13, class_="dim", text_anchor="start")
    body += text("transformer", layer, 13, 13, class_="dim", text_anchor="start")
    for at, (part, top) in enumerate(zip(parts, tops, strict=True)):
        kind = "outline" if at in (0, len(parts) - 1) else "stage"
        box = {"x": _LEFT, "y": top, "width": inner, "height": _BOX, "rx": 6}
        body += tag("rect", class_=f"paper {kind}", **box)
        body += _formula(part.formula, middle, top + 25)
        body += text(part.meaning, meaning, top + 25, 12, class_="dim", text_anchor="start")
        body += _formula(part.in_transformer, layer, top + 25, 13, text_anchor="start")
    for above, below in pairwise(tops):
        body += _arrow(f"M{number(middle)} {number(above + _BOX)}", middle, below)
    return Block(width, tops[-1] + _BOX + 2, body + _loop(settings, tops))


def _loop(settings: EncoderSettings, tops: Sequence[float]) -> str:
    """The connection of S past the iteration, and the loop back."""
    first, start, add = (tops[at] + _BOX / 2 for at in (0, 1, -2))
    beside = f"M{number(_LEFT)} {number(first)} H{number(_LEFT - 24)} V{number(add + 7)}"
    back = f"M{number(_LEFT)} {number(add - 7)} H{number(_LEFT - 50)} V{number(start)}"
    drawn = _arrow(beside, _LEFT, add + 7, sideways=True)
    drawn += _arrow(back, _LEFT, start, sideways=True, kind="arc", tip="tip")
    middle, times = (start + add) / 2, f"{settings.inference.iterations} ×"
    for at, line in enumerate((times, "same", "weights")):
        y = middle + 16 * (at - 1)
        drawn += text(line, _LEFT - 56, y, 12, class_="tip", text_anchor="end")
    return drawn


def _formula(
    content: str, x: float, y: float, size: float = 15, text_anchor: str = "middle"
) -> str:
    """Text in which _Z is a subscript and ^O a superscript."""
    drawn, shift = "", 0.0
    for part in re.split(r"([_^]\w)", content):
        wanted = {"_": 4.0, "^": -5.0}.get(part[:1], 0.0)
        small = {"font_size": size * 0.72} if wanted else {}
        if part:
            content_part = markup(part[1:] if wanted else part)
            drawn += tag("tspan", content_part, dy=wanted - shift, **small)
            shift = wanted
    look = {"class_": "ink", "text_anchor": text_anchor, "font_size": size}
    return tag("text", drawn, x=x, y=y, **look)


def _arrow(
    path: str, x: float, y: float, sideways: bool = False, kind: str = "line", tip: str = "dim"
) -> str:
    """From the start of the path to a tip at x, y that points down or to the right."""
    path += f" H{number(x - 7)}" if sideways else f" V{number(y - 7)}"
    corners = f"M{number(x)} {number(y)} " + ("l-8 -4 v8 z" if sideways else "l-4 -8 h8 z")
    return tag("path", d=path, class_=kind, stroke_width=1.4) + tag("path", d=corners, class_=tip)
