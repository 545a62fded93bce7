"""Plots of a description; drawing needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from probformer.analysis.describe.associations import Floats
from probformer.analysis.describe.channel_statistics import ROOT_NAME, Spread
from probformer.analysis.describe.description import Description
from probformer.analysis.describe.label_statistics import LabelDescription
from probformer.runs.plots import save_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILES = USAGE, TAGS, DISTANCES = "labels.svg", "tags.svg", "distances.svg"
_LABELS, _TAGS = 64, 40  # more are not legible side by side
_FAR = 8
_SHADE = "#2b6cb0"


def draw(description: Description, folder: Path) -> dict[str, str]:
    """Write the plots of a description into a folder; file names by the table they belong to."""
    made: dict[str, tuple[str, Figure]] = {}
    if description.labels is not None:
        made["Labels"] = USAGE, _usage(description.labels)
        if description.column:
            made["Labels and tags"] = TAGS, _tags(description, description.labels)
    made["Channels"] = DISTANCES, _distances(description)
    for name, figure in made.values():
        save_plot(figure, folder / name)
    return {table: name for table, (name, _) in made.items()}


def _usage(labels: Sequence[LabelDescription]) -> Figure:
    figure, axes = _panel(10, 3)
    places = np.arange(len(labels))
    axes.bar(places, [label.strongest for label in labels], color="#90cdf4", label="strongest")
    axes.plot(
        places, [label.probability for label in labels], ".", color=_SHADE, label="probability"
    )
    every = max(1, len(labels) // _LABELS)
    names = [str(label.number) for label in labels]
    axes.set_xticks(places[::every], names[::every], rotation=90, fontsize="x-small")
    axes.set(xlabel="label", ylabel="share of words", xlim=(-1, len(labels)))
    axes.legend(frameon=False)
    return figure


def _tags(description: Description, labels: Sequence[LabelDescription]) -> Figure:
    """P(tag | label), with labels sorted by their most probable tag."""
    tags = description.tags[:_TAGS]
    found = [(label, label.tags.shares) for label in labels if label.tags is not None][:_LABELS]
    found.sort(key=lambda pair: tags.index(max(tags, key=lambda tag: pair[1].get(tag, 0.0))))
    shares = np.array([[given.get(tag, 0.0) for _, given in found] for tag in tags])
    figure, axes = _panel(2 + 0.16 * len(found), 1.2 + 0.18 * len(tags))
    names = [str(label.number) for label, _ in found]
    _heat_map(figure, axes, shares, tags, names, f"P({description.column} | label)")
    axes.set(xlabel="label", ylabel=description.column)
    axes.tick_params("x", rotation=90)
    return figure


def _distances(description: Description) -> Figure:
    named = {str(channel.number): channel.spread for channel in description.channels}
    named["uniform"] = description.uniform
    rooted = any(spread.root for spread in named.values())
    offsets = range(-_FAR, _FAR + 1)
    rows = [[*_near(spread), *([spread.root] if rooted else [])] for spread in named.values()]
    names = [f"≤ −{_FAR}", *(f"{k:+d}".replace("-", "−") for k in offsets[1:-1]), f"≥ +{_FAR}"]
    names[_FAR] = "0"
    figure, axes = _panel(8, 1.2 + 0.25 * len(rows))
    columns = [*names, *([ROOT_NAME] if rooted else [])]
    _heat_map(figure, axes, np.array(rows), [*named], columns, "probability")
    axes.set(xlabel="place of the head, seen from the word", ylabel="channel")
    return figure


def _near(spread: Spread) -> Floats:
    """The probability of a head at −8 … 8 words; longer distances are added to the ends."""
    found = np.zeros(2 * _FAR + 1)
    for offset, share in spread.offsets.items():
        found[min(max(offset, -_FAR), _FAR) + _FAR] += share
    return found * (spread.left + spread.itself + spread.right)


def _panel(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _heat_map(
    figure: Figure,
    axes: Axes,
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
) -> None:
    mesh = axes.pcolormesh(values, cmap="Blues", vmin=0)
    axes.invert_yaxis()
    for name_ticks, names in ((axes.set_yticks, rows), (axes.set_xticks, columns)):
        middles = np.arange(len(names)) + 0.5
        name_ticks(middles, names, fontsize="x-small", parse_math=False)  # tags may hold "$"
    figure.colorbar(mesh, ax=axes, label=title)
