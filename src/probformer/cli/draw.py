"""`probformer draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import ITERATION


def draw(
    run: Annotated[
        str, typer.Argument(help="A run folder; with --kind factors or computation, also a config.")
    ],
    sentence: Annotated[str, typer.Argument(help="Words separated by spaces.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="A .svg, .html, .tex or .txt file; by default the terminal.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="tree: the predicted tree of a parser; arcs: heads as arcs over the words, with "
            "labels in the channel whose arcs have them; iterations: arcs, animated over "
            "iterations or layers; heat: a heat map of heads; labels: the most probable labels of "
            "each word, and the words most likely to have them without context; factors, "
            "computation: the factor graph and the computation graph of the model. By default tree "
            "for a parser without --channel, --iteration and --threshold, otherwise arcs."
        ),
    ] = None,
    channel: Annotated[
        str | None,
        typer.Option(
            help="Number of a channel from 0, all, or average; by default the channel of a parser, "
            "or the one whose arcs have labels, otherwise average."
        ),
    ] = None,
    iteration: Annotated[int | None, ITERATION] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Smallest probability of an arc; 0.15 by default.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write probabilities into the picture.")
    ] = False,
) -> None:
    """Draw the heads and labels of a sentence, or the graph of a model."""
    from probformer.analysis.draw import draw_to

    draw_to(out, run, sentence, kind, channel, iteration, threshold, probabilities)
