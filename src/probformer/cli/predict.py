"""`probformer predict`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import RunFolder
from probformer.errors import InputError


def predict(
    run: RunFolder,
    text: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences; read from standard input if none is given."),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="A file with one sentence per line.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each sentence.")
    ] = False,
) -> None:
    """Predict for sentences: words for <mask>, tags, entities, a label or a logical form."""
    from probformer.data.readers import lines_of
    from probformer.runs.prediction import predict_lines

    if text and file:
        raise InputError("give sentences or --file, not both")
    lines = text or lines_of(file or sys.stdin.buffer)
    for answer in predict_lines(run, lines, as_json=json):
        typer.echo(answer)
