"""`probformer evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import DataFolder, RunFolder


def evaluate(
    run: RunFolder,
    data: DataFolder = Path("."),
    split: Annotated[str, typer.Option(help="The split: train, dev, test or gen.")] = "test",
) -> None:
    """Print the metrics of a trained model on a split of its data."""
    from probformer.training.commands import evaluate_run

    evaluate_run(run, data, split)
