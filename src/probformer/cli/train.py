"""`probformer train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import Config, DataFolder, Set


def train(
    config: Config,
    change: Set = [],  # noqa: B006  typer copies it
    data: DataFolder = Path("."),
    out: Annotated[
        Path | None, typer.Option(help="Run folder; by default runs/ and the config's name.")
    ] = None,
    seeds: Annotated[
        str,
        typer.Option(
            help="Train a run for each seed, 0..4 or 0,3,7, in folders seed-N of the run folder."
        ),
    ] = "",
    parallel: Annotated[int, typer.Option(help="Number of seeds that train at the same time.")] = 1,
    init: Annotated[
        Path | None, typer.Option(help="Run folder with a trained encoder to start from.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the run in the folder from its last checkpoint, if there is one.",
        ),
    ] = False,
) -> None:
    """Train a model, and evaluate the weights of its best epoch."""
    from probformer.training.commands import train_seeds

    train_seeds(config, change, data, out, seeds, parallel, init, resume)
