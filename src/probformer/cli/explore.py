"""`probformer explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probformer.cli.arguments import DataFolder


def explore(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    data: DataFolder = Path("."),
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; others than the default can let other machines connect."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port to listen on; if it is in use, the next free."),
    ] = 8765,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Serve a page that shows the heads and labels that runs infer for your sentences."""
    from probformer.web.server import serve

    serve(runs, data, host, port, browser)
