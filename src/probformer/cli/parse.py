"""`probformer parse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import ITERATION, JSON, DataFolder, RunFolder


def parse(
    run: RunFolder,
    file: Annotated[
        Path | None,
        typer.Argument(help="CoNLL-U with gold heads; a split if none."),
    ] = None,
    data: DataFolder = Path("."),
    split: Annotated[
        str | None, typer.Option(help="Of the run's data: train, dev, test (by default) or gen.")
    ] = None,
    decoder: Annotated[
        str, typer.Option(help="argmax: each word alone; tree; projective: no arcs cross.")
    ] = "tree",
    many_roots: Annotated[
        bool, typer.Option("--many-roots", help="Trees may have several words at the root.")
    ] = False,
    iteration: Annotated[int, ITERATION] = -1,
    every_iteration: Annotated[
        bool, typer.Option("--every-iteration", help="A table over all iterations, or layers, too.")
    ] = False,
    channel: Annotated[
        str,
        typer.Option(help="Which to show and write: a number from 0, best (by UUAS), or average."),
    ] = "average",
    out: Annotated[
        Path | None, typer.Option(help="Write the sentences with the heads that were found.")
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """How often the heads that a model found are the gold ones, beside simple baselines."""
    from probformer.analysis.parse_command import parse_file
    from probformer.analysis.parsing import AVERAGE, BEST, Question
    from probformer.analysis.reading import channel_of

    chosen = channel_of(channel, AVERAGE, BEST)
    question = Question(decoder, not many_roots, iteration, chosen, every_iteration)
    parse_file(run, file, data, question, split, out, json)
