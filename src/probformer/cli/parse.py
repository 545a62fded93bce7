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
        typer.Argument(
            help="A CoNLL-U file with gold heads; by default a split of the run's data."
        ),
    ] = None,
    data: DataFolder = Path("."),
    split: Annotated[
        str | None,
        typer.Option(help="Split of the run's data: train, dev, test (default) or gen."),
    ] = None,
    decoder: Annotated[
        str,
        typer.Option(
            help="argmax: the best head of each word; tree: the best spanning tree; projective: "
            "the best tree without crossing arcs."
        ),
    ] = "tree",
    many_roots: Annotated[
        bool, typer.Option("--many-roots", help="Allow trees with several words under ROOT.")
    ] = False,
    iteration: Annotated[int, ITERATION] = -1,
    every_iteration: Annotated[
        bool, typer.Option("--every-iteration", help="Also score all other iterations, or layers.")
    ] = False,
    channel: Annotated[
        str,
        typer.Option(
            help="Channel to print and write: a number from 0, best (the highest UUAS), or average."
        ),
    ] = "average",
    out: Annotated[
        Path | None, typer.Option(help="Write the sentences with the found heads as CoNLL-U.")
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Score the heads that a model infers against gold heads, beside simple baselines."""
    from probformer.analysis.marginals import channel_of
    from probformer.analysis.parse.command import parse_file
    from probformer.analysis.parse.scoring import AVERAGE, BEST, ParserOptions

    chosen = channel_of(channel, AVERAGE, BEST)
    options = ParserOptions(decoder, not many_roots, iteration, chosen, every_iteration)
    parse_file(run, file, data, options, split, out, json)
