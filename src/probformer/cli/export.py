"""`probformer export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import RunFolder


def export(
    run: RunFolder,
    onnx: Annotated[bool, typer.Option("--onnx", help="Write model.onnx.")] = False,
    torch: Annotated[
        bool, typer.Option("--torch", help="Write model.pt2, a program of torch.export.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; by default in the run folder.")
    ] = None,
) -> None:
    """Write a trained model as a file that runs without Probformer; compare it with PyTorch."""
    from probformer.export import export_run

    export_run(run, onnx, torch, out)
