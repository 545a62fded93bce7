"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[str, typer.Argument(help="A TOML file, or the name of a bundled config.")]
RunFolder = Annotated[Path, typer.Argument(help="A run folder.")]
DataFolder = Annotated[
    Path, typer.Option(help="Folder of the data; a known corpus is in a subfolder with its name.")
]
Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        help="Change a setting, such as training.epochs=3. May be repeated. A new kind, such as "
        "encoder.potential.kind=rotary, resets the other settings of its table to defaults.",
    ),
]
ITERATION = typer.Option(
    help="Iteration (layer of a transformer), from 1, or from the end: -1, the default, is the "
    "last.",
    show_default=False,
)
JSON = typer.Option("--json", help="Print all figures as one JSON object instead of tables.")
