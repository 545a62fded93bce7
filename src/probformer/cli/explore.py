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
        str, typer.Option(help="The address to listen on; any other lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The next free one if it is taken.")
    ] = 8765,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """A page that shows how runs read the sentences you type."""
    from probformer.web.server import serve

    serve(runs, data, host, port, browser)
