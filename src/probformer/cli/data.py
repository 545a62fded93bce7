"""`probformer data`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import Config, DataFolder, Set

app = typer.Typer(help="Describe data; list, fetch and check known corpora.", no_args_is_help=True)
Corpora = Annotated[
    list[str] | None, typer.Argument(help="Names of corpora; by default all in the folder.")
]


@app.command("describe")
def describe(config: Config, change: Set = [], data: DataFolder = Path(".")) -> None:  # noqa: B006
    """Print the sizes, vocabulary and columns of the data of a config."""
    from probformer.training.commands import describe_data

    describe_data(config, change, data)


@app.command("list")
def list_data() -> None:
    """List the known corpora, their licences, and which can be downloaded."""
    from probformer.data.commands import print_corpora

    print_corpora()


@app.command("fetch")
def fetch_data(
    corpora: Annotated[list[str], typer.Argument(help="Names of corpora.")],
    data: DataFolder = Path("."),
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Folder, archive, or URL of an archive that has the files; by default they are "
            "downloaded from where the corpus is published.",
        ),
    ] = None,
) -> None:
    """Download corpora, or copy them from a folder or an archive of yours."""
    from probformer.data.commands import fetch_corpora

    fetch_corpora(corpora, data, source)


@app.command("check")
def check_data(corpora: Corpora = None, data: DataFolder = Path(".")) -> None:
    """Check the files of corpora against their known checksums."""
    from probformer.data.commands import check_corpora

    check_corpora(corpora or [], data)
