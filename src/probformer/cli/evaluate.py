"""`probformer evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import DataFolder, RunFolder


def evaluate(
    run: RunFolder,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Sentences with gold annotation: a .conllu, .mrg or .txt file, or one in the "
            "format of the run's data; by default a split of that data."
        ),
    ] = None,
    data: DataFolder = Path("."),
    split: Annotated[
        str | None,
        typer.Option(help="Split of the run's data: train, dev, test (default) or gen."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Also write a parser's reliability diagram into this file, as SVG."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print all figures as one JSON object, shares of 1.")
    ] = False,
) -> None:
    """Print the metrics of a trained model, and for a parser tables of what is right and wrong."""
    from probformer.analysis.evaluate import evaluate_run

    evaluate_run(run, file, data, split, plot, json)
