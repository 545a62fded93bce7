"""The factor graph of a probabilistic transformer, for three words and one of its channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probformer.config import EncoderSettings
from probformer.errors import counted
from probformer.viz.head_groups import named, one_label, tree_channels
from probformer.viz.picture import Picture
from probformer.viz.svg import Block, document, moved, number, tag, text
from probformer.viz.words import pixels

_BETWEEN = 210.0
_TREE = -34.0
"""y of the factor over all heads of a channel, above the rest."""
_HEADS, _FACTORS, _LABELS, _UNARY, _WORDS = 40.0, 130.0, 260.0, 318.0, 366.0
_CIRCLE = 21.0
_SUBSCRIPTS = "₀₁₂₃"
_WORD_COUNT = 3
_FORMULAS = {
    "full": "T in full",
    "uv": "T = U Vᵀ",
    "uvw": "T = U diag(W) Vᵀ",
    "shared-uv": "T = U diag(D) Vᵀ",
    "rotary": "T = U R(i−j) Vᵀ",
}
"""By kind of potential."""


@dataclass(frozen=True)
class FactorGraph(Picture):
    kind = "factor graph"

    settings: EncoderSettings
    title: str = kind

    def svg(self) -> str:
        return document(_drawn(self.settings), self.title)


def factor_graph(settings: EncoderSettings) -> FactorGraph:
    """The factor graph of an encoder with these settings; as SVG or HTML."""
    return FactorGraph(settings)


def described_potential(settings: EncoderSettings) -> str:
    """The decomposition of T, and the distances that it distinguishes."""
    potential: Any = settings.potential
    formula = _FORMULAS.get(potential.kind, f"T of the kind {potential.kind!r}")
    rank = f" of rank {potential.rank}" if hasattr(potential, "rank") else ""
    distances = f": {_distances(potential.gamma)}" if hasattr(potential, "gamma") else ""
    return f"{formula}{rank}{distances}"


def _distances(gamma: int | None) -> str:
    if gamma is None:
        return "blind to order"
    return f"distances up to {gamma}" if gamma else "left and right"


def _line(x: float, y: float, to_x: float, to_y: float, kind: str = "line", **more: str) -> str:
    path = f"M{number(x)} {number(y)} L{number(to_x)} {number(to_y)}"
    return tag("path", d=path, class_=kind, stroke_width=1.3, **more)


def _variable(x: float, y: float, name: str, channels: int = 1) -> str:
    """A circle; several behind each other for a variable of each channel."""
    circles = "".join(
        tag("circle", cx=x + 4 * back, cy=y - 4 * back, r=_CIRCLE, class_="paper outline")
        for back in reversed(range(min(channels, 3)))
    )
    return circles + text(name, x, y + 5, 15 if len(name) < 4 else 13)


def _factor(x: float, y: float, kind: str = "dim") -> str:
    return tag("rect", x=x - 6, y=y - 6, width=12, height=12, class_=kind)


def _label_factor(x: float, y: float, half: float, kind: str) -> str:
    size = {"width": 2 * half, "height": 2 * half}
    return tag("rect", x=x - half, y=y - half, class_=f"{kind} outline", **size)


def _shown_channel(settings: EncoderSettings) -> int | None:
    """The channel whose arcs have labels, or the first of trees; None if all are alike."""
    if settings.arc_labels is not None:
        return settings.arc_labels.channel
    channels = [c for group in tree_channels(settings).values() for c in group]
    return min(channels, default=None)


def _drawn(settings: EncoderSettings) -> Block:
    left = 40.0 + (110 if settings.root else 0)
    xs = [left + at * _BETWEEN for at in range(_WORD_COUNT)]
    lines, nodes = "", ""
    in_tree = any(_shown_channel(settings) in group for group in tree_channels(settings).values())
    if in_tree:
        nodes += _factor(xs[1], _TREE, "ink")
    for i, x in enumerate(xs):
        name = _SUBSCRIPTS[i + 1]
        if in_tree:
            lines += _line(xs[1], _TREE, x, _HEADS)
        head = f"H{name},L{name}" if settings.arc_labels else f"H{name}"
        nodes += _variable(x, _HEADS, head, settings.channels)
        nodes += _variable(x, _LABELS, f"Z{name}") + _factor(x, _UNARY)
        lines += _line(x, _LABELS, x, _WORDS - 14)
        nodes += text(f"w{name}", x, _WORDS + 4)
        others = [(j, xs[j], "arc") for j in range(_WORD_COUNT) if j != i]
        if settings.root:
            others.insert(0, (-1, 40.0, "root"))
        for at, (_, other, kind) in enumerate(others):
            place = x + (at - (len(others) - 1) / 2) * 44
            lines += _line(place, _FACTORS, x, _HEADS) + _line(place, _FACTORS, x, _LABELS)
            lines += _line(place, _FACTORS, other, _LABELS, kind, stroke_opacity="0.6")
            nodes += _factor(place, _FACTORS, "root-tip" if kind == "root" else "tip")
            if settings.arc_labels and kind == "arc":  # with the same variables
                nodes += _label_factor(place, _FACTORS, 10, "line")
            elif settings.arc_labels:  # ROOT's has only two of the variables
                place -= 26
                lines += _line(place, _FACTORS, x, _HEADS) + _line(place, _FACTORS, x, _LABELS)
                nodes += _label_factor(place, _FACTORS, 6, "paper")
        if settings.globals:
            lines, nodes = _with_globals(settings, x, name, lines, nodes)
    if settings.root:
        nodes += _variable(40, _LABELS, "Z₀") + text(
            "ROOT", 40, _LABELS + 42, 13, class_="root-tip"
        )
    captions = _captions(settings)
    caption = "".join(
        text(line, 0, _WORDS + 40 + 20 * at, 13, class_=kind, text_anchor="start")
        for at, (line, kind) in enumerate(captions)
    )
    beside = 124 if settings.globals else 52  # of the last word's factors and variables
    width = max(xs[-1] + beside, *(pixels(line, 13) for line, _ in captions))
    above = 10 - _TREE if in_tree else 0.0
    block = Block(width, _WORDS + 30 + 20 * len(captions), lines + nodes + caption)
    return Block(width, block.height + above, moved(block, 0, above)) if in_tree else block


def _with_globals(
    settings: EncoderSettings, x: float, name: str, lines: str, nodes: str
) -> tuple[str, str]:
    """The binary factor B: at H itself (all-dep), or at a variable G beside it."""
    assert settings.globals
    if settings.globals.mode == "all-dep":
        place = x + 84
        lines += _line(place, _FACTORS, x, _HEADS) + _line(place, _FACTORS, x, _LABELS)
    else:
        place = x + 92
        many = settings.channels if settings.globals.mode == "dep-split" else 1
        lines += _line(place, _HEADS, place, _FACTORS) + _line(place, _FACTORS, x, _LABELS)
        nodes += _variable(place, _HEADS, f"G{name}", many)
    return lines, nodes + _factor(place, _FACTORS, "ink")


def _captions(settings: EncoderSettings) -> list[tuple[str, str]]:
    d, h, potential = settings.labels, settings.channels, described_potential(settings)
    shown = _shown_channel(settings)
    which = "one" if shown is None else f"channel {shown}"
    found = [
        (
            f"Z: one of {d} labels.  H: the head, in {h} channels (factors of {which} are shown).",
            "ink",
        ),
        ("■ unary factors S: word and label", "dim"),
        (f"■ ternary factors: label, head, label of the head;  {potential}", "tip"),
    ]
    if settings.root:
        of_root = counted(settings.root.labels, "label")
        found.append((f"■ ternary factors with ROOT: {of_root}", "root-tip"))
    found += [(line, "ink") for line in _captions_of_arcs(settings, shown)]
    if settings.globals:
        mode, count = settings.globals.mode, settings.globals.count
        made = ", B = P(F) T″ᵀ" if settings.globals.features else ""
        found.append((f"■ binary factors B: {count} global features, {mode}{made}", "ink"))
    return found


def _captions_of_arcs(settings: EncoderSettings, shown: int | None) -> list[str]:
    found: list[str] = []
    if settings.arc_labels is not None:
        found.append(f"L: {one_label(settings)}.  (H, L) is one variable, Fᵢⱼₗ = Fᵢⱼ + Rᵢⱼₗ")
        words = f"R = Uₗ Vₗᵀ + bₗ of rank {settings.arc_labels.rank}"
        found.append(f"□ factors of labels: {words}, around ternary ones;  for ROOT R = wₗ + bₗ")
    for kind, channels in tree_channels(settings).items():
        sign = "■ " if shown in channels else ""
        roots = "exactly one word" if settings.inference.single_root else "one word or more"
        found.append(
            f"{sign}factor of a {kind}: all heads of {named(channels)}, with {roots} under ROOT"
        )
    return found
