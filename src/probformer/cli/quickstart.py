"""`probformer quickstart`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs/quickstart"),
) -> None:
    """Train small models on the built-in corpus and compare them: a few minutes on two cores."""
    from probformer.training.quickstart import run_quickstart

    run_quickstart(out)
