"""`probformer draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import ITERATION


def draw(
    run: Annotated[str, typer.Argument(help="A run folder; for graphs, a config will do.")],
    sentence: Annotated[str, typer.Argument(help="Words with spaces between them.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="A .svg, .html, .tex or .txt file; the terminal if none.")
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help="arcs; iterations: arcs that move, of a transformer by layers; "
            "heat: a map of heads; labels: the strongest, and the words likeliest to have them "
            "without context; factors, computation: graphs."
        ),
    ] = "arcs",
    channel: Annotated[
        str | None, typer.Option(help="A number from 0, all, or average, the default.")
    ] = None,
    iteration: Annotated[int | None, ITERATION] = None,
    threshold: Annotated[
        float | None, typer.Option(help="No arcs of less probability; 0.15 by default.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write them into the picture.")
    ] = False,
) -> None:
    """A picture of how a model reads a sentence, or of the model."""
    from probformer.analysis import drawing

    if out is not None:
        drawing.check_target(out)
    picture = drawing.draw(run, sentence, kind, channel, iteration, threshold, probabilities)
    drawing.show(picture, out)
