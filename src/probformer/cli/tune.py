"""`probformer tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import Config, DataFolder, Set


def tune(
    config: Config,
    space: Annotated[
        str,
        typer.Option(
            help="TOML file with settings and their ranges, or the name of a bundled space."
        ),
    ],
    trials: Annotated[int, typer.Option(help="Number of trials, over all workers.")] = 20,
    change: Set = [],  # noqa: B006  typer copies it
    data: DataFolder = Path("."),
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the study, the same for all workers; by default runs/ and the config's "
            "name with -tuning."
        ),
    ] = None,
    sampler: Annotated[
        str, typer.Option(help="random, or tpe, which learns from earlier trials.")
    ] = "random",
    prune: Annotated[
        bool, typer.Option("--prune", help="Stop trials below the median early.")
    ] = False,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Storage of Optuna: the URL of a database, or a journal file; by default study.db "
            "in the folder."
        ),
    ] = None,
    study: Annotated[
        str | None, typer.Option(help="Name of the study; by default the config's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the values that are drawn.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="SVG file for a plot of the search.")] = None,
) -> None:
    """Search for better settings. Start the same command again to add a worker or to continue."""
    from probformer.tuning.command import tune as search

    search(config, space, change, data, out, trials, sampler, prune, storage, study, seed, plot)
