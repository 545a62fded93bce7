"""Learning curves as SVG; needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probformer.errors import require_packages

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Epochs = list[dict[str, Any]]


def plot_curves(runs: Mapping[str, tuple[str, list[Epochs]]], path: Path) -> None:
    """Draw training loss and dev metric by epoch: a colour for each config, a line for each seed.

    Args:
        runs: By title, the main metric and the epochs of each seed.
        path: The SVG file.
    """
    require_packages("drawing curves", "matplotlib", "probformer[plot]")
    from matplotlib.figure import Figure

    metrics = sorted({metric for metric, _ in runs.values()})
    figure = Figure(figsize=(5 * (1 + len(metrics)), 4), layout="constrained")
    loss, *panels = figure.subplots(1, 1 + len(metrics), squeeze=False)[0]
    loss.set(title="training loss", xlabel="epoch")
    by_metric = dict(zip(metrics, panels, strict=True))
    for metric, panel in by_metric.items():
        panel.set(title=f"dev {metric}", xlabel="epoch")
    for number, (name, (metric, seeds)) in enumerate(runs.items()):
        for seed, lines in enumerate(seeds):
            epochs = [line["epoch"] for line in lines]
            style = {"color": f"C{number % 10}", "label": name if seed == 0 else None}
            loss.plot(epochs, [line["train_loss"] for line in lines], **style)
            by_metric[metric].plot(epochs, [line["dev"][metric] for line in lines], **style)
    figure.legend(*loss.get_legend_handles_labels(), loc="outside lower center", fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_plot(figure, path)


def save_plot(figure: Figure, path: Path) -> None:
    """Write SVG, byte for byte the same for the same numbers."""
    import matplotlib

    # Matplotlib's random salt and its date would make every file different.
    with matplotlib.rc_context({"svg.hashsalt": "probformer"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
