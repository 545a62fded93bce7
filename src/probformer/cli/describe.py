"""`probformer describe`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import ITERATION, JSON, DataFolder, RunFolder


def describe(
    run: RunFolder,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A .conllu, .mrg or .txt file, or one like the run's; by default a split."
        ),
    ] = None,
    data: DataFolder = Path("."),
    split: Annotated[
        str | None, typer.Option(help="Of the run's data: train, dev (the default), test or gen.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The tags that labels and channels are compared with.")
    ] = None,
    iteration: Annotated[int, ITERATION] = -1,
    out: Annotated[
        Path | None, typer.Option(help="Also write a page with plots into this folder.")
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Describe labels and channels: words, tags, distances, and links."""
    from probformer.analysis.describe.command import describe_run

    describe_run(run, file, data, split, column, iteration, out, json)
