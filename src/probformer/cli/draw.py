"""`probformer draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import ITERATION


def draw(
    run: Annotated[str, typer.Argument(help="A run folder; for graphs, a config is enough.")],
    sentence: Annotated[str, typer.Argument(help="Words separated by spaces.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="A .svg, .html, .tex or .txt file; by default the terminal.")
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help="arcs; iterations: animated arcs, of a transformer by layer; heat: a heat map of "
            "heads; labels: the strongest labels, and the words likeliest to have them without "
            "context; factors, computation: graphs of the model."
        ),
    ] = "arcs",
    channel: Annotated[
        str | None, typer.Option(help="A number from 0, all, or average (the default).")
    ] = None,
    iteration: Annotated[int | None, ITERATION] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Smallest probability of an arc; 0.15 by default.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write them into the picture.")
    ] = False,
) -> None:
    """Draw the heads and labels of a sentence, or the graph of a model."""
    from probformer.analysis.draw import draw_to

    draw_to(out, run, sentence, kind, channel, iteration, threshold, probabilities)
