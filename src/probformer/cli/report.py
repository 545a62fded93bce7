"""`probformer report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run folders, folders of run folders, or files written with --save."),
    ],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    curves: Annotated[
        Path | None, typer.Option(help="SVG file to draw learning curves in.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="File to save the results in, a line of JSON for each run.")
    ] = None,
) -> None:
    """Print the results of finished runs, averaged over seeds, beside the published ones."""
    from probformer.runs.results import print_report

    print_report(runs, markdown, curves, save)
