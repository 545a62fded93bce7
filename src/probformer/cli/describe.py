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
            help="Sentences: a .conllu, .mrg or .txt file, or one in the format of the run's data; "
            "by default a split of that data."
        ),
    ] = None,
    data: DataFolder = Path("."),
    split: Annotated[
        str | None,
        typer.Option(help="Split of the run's data: train, dev (default), test or gen."),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            help="Column of the gold tags to compare with; by default that of the run's task, or "
            "the first."
        ),
    ] = None,
    iteration: Annotated[int, ITERATION] = -1,
    out: Annotated[
        Path | None, typer.Option(help="Also write a page with plots into this folder.")
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Describe a model's labels (words, tags) and channels (distances and kinds of heads)."""
    from probformer.analysis.describe.command import describe_run

    describe_run(run, file, data, split, column, iteration, out, json)
