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
        typer.Argument(help="A text: .conllu, .mrg, .txt, or as the run's; a split if none."),
    ] = None,
    data: DataFolder = Path("."),
    split: Annotated[
        str | None, typer.Option(help="Of the run's data: train, dev (by default), test or gen.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The tags that labels and channels are compared with.")
    ] = None,
    iteration: Annotated[int, ITERATION] = -1,
    out: Annotated[
        Path | None, typer.Option(help="Write a page with plots into this folder, too.")
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """What labels mean and channels do: words, tags, distances, and what is linked."""
    from probformer.analysis.description_page import describe_run

    describe_run(run, file, data, split, column, iteration, out, json)
