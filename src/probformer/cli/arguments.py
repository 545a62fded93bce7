"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[str, typer.Argument(help="A TOML file, or the name of a bundled config.")]
RunFolder = Annotated[Path, typer.Argument(help="A run folder.")]
DataFolder = Annotated[
    Path, typer.Option(help="Where the data is: the config's files, or folders of known corpora.")
]
Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        help="Change a setting: training.epochs=3. May be repeated. "
        "A new kind (encoder.potential.kind=rotary) comes with its own defaults.",
    ),
]
ITERATION = typer.Option(
    help="From 1, or from the end: -1, the last, is the default. Of a transformer, the layer.",
    show_default=False,
)
JSON = typer.Option("--json", help="All figures as one JSON object, instead of tables.")
