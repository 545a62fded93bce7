"""Errors of commands: what a user can fix is one sentence on standard error and exit status 2."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import typer

from probformer.errors import InputError, is_out_of_memory


def run_command(command: Callable[[], Any]) -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # some terminals' encodings lack characters
    signal.signal(signal.SIGTERM, _terminate)  # an exception, so that child processes are stopped
    try:
        _report_errors(command)
    except SystemExit as end:
        if "RANK" in os.environ:
            _exit_now(end.code)
        raise


def _exit_now(status: Any) -> None:
    """Of several processes: torch's communication threads may abort while Python shuts down."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def _terminate(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _report_errors(command: Callable[[], Any]) -> None:
    try:
        command()
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'writing or reading failed'}: {error.strerror or error}")
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        remedies = "a smaller training.chunk or training.batch may help, or shorter sentences"
        _fail(f"out of memory: {remedies}")


def _fail(message: str) -> None:
    typer.echo(f"error: {message}", err=True)
    if path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
        with suppress(OSError):
            _write_for_torchrun(Path(path), message)
    raise SystemExit(2)


def _write_for_torchrun(path: Path, message: str) -> None:
    """torchrun prints the message at its end.

    It crashes on a partial file, which the SIGTERM it sends after another process's failure could
    leave: hence the rename.
    """
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps({"message": message, "timestamp": int(time.time())}))
    part.replace(path)
