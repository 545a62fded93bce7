"""`probformer data`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import Config, DataFolder, Set

app = typer.Typer(help="Look at data, and bring known corpora here.", no_args_is_help=True)
Corpora = Annotated[list[str] | None, typer.Argument(help="Names of corpora; all if none.")]


@app.command("describe")
def describe(config: Config, change: Set = [], data: DataFolder = Path(".")) -> None:  # noqa: B006
    """Sizes, vocabulary and columns of the data that a config names."""
    from probformer.training.commands import describe_data

    describe_data(config, change, data)


@app.command("list")
def list_data() -> None:
    """The corpora that are known, their licences, and what can be fetched."""
    from probformer.data.commands import print_corpora

    print_corpora()


@app.command("fetch")
def fetch_data(
    corpora: Annotated[list[str], typer.Argument(help="Names of corpora.")],
    data: DataFolder = Path("."),
    source: Annotated[
        str | None, typer.Option("--from", help="A folder, an archive, or an archive's address.")
    ] = None,
) -> None:
    """Download corpora into folders of their own, or take them from a place of yours."""
    from probformer.data.commands import fetch_corpora

    fetch_corpora(corpora, data, source)


@app.command("check")
def check_data(corpora: Corpora = None, data: DataFolder = Path(".")) -> None:
    """Whether the files of corpora are those that are known, byte for byte."""
    from probformer.data.commands import check_corpora

    check_corpora(corpora or [], data)
