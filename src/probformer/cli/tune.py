"""`probformer tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import Config, DataFolder, Set


def tune(
    config: Config,
    space: Annotated[
        str, typer.Option(help="A TOML file: settings and their ranges; or one that comes along.")
    ],
    trials: Annotated[int, typer.Option(help="In all, over all workers.")] = 20,
    change: Set = [],  # noqa: B006  typer copies it
    data: DataFolder = Path("."),
    out: Annotated[
        Path | None,
        typer.Option(help="Where trials go, the same for all workers; runs/NAME-tuning if none."),
    ] = None,
    sampler: Annotated[str, typer.Option(help="random, or tpe: learns from trials.")] = "random",
    prune: Annotated[bool, typer.Option("--prune", help="Stop trials below the median.")] = False,
    storage: Annotated[
        str | None,
        typer.Option(help="Of Optuna: a URL, or a journal file; study.db in the folder if none."),
    ] = None,
    study: Annotated[str | None, typer.Option(help="Its name; the config's if none.")] = None,
    seed: Annotated[int, typer.Option(help="Of the values that are drawn.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the search into this SVG file.")] = None,
) -> None:
    """Search for better settings. Start it several times for several workers, or to go on."""
    from probformer.tuning.command import tune as search

    search(config, space, change, data, out, trials, sampler, prune, storage, study, seed, plot)
