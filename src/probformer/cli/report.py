"""`probformer report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, folders of them, or files of --save.")
    ],
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown.")] = False,
    curves: Annotated[
        Path | None, typer.Option(help="Draw the curves into this SVG file too.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Keep the figures in this file, a line of JSON a run.")
    ] = None,
) -> None:
    """What finished runs came to, over seeds, beside the published figures."""
    from probformer.runs.results import print_report

    print_report(runs, markdown, curves, save)
