"""How a command ends: with an error that a user can mend, as one sentence and exit status 2."""

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
            stream.reconfigure(errors="replace")  # an old terminal may not know all letters
    signal.signal(signal.SIGTERM, _terminate)  # so that runs side by side are stopped too
    try:
        _guarded(command)
    except SystemExit as end:
        if "RANK" in os.environ:
            _end_at_once(end.code)
        raise


def _end_at_once(status: Any) -> None:
    """One of several processes: torch's threads between them may abort it while Python ends."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def _terminate(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _guarded(command: Callable[[], Any]) -> None:
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
            _tell_torchrun(Path(path), message)
    raise SystemExit(2)


def _tell_torchrun(path: Path, message: str) -> None:
    """It repeats the message at its end, and dies of a file half written.

    Which its own SIGTERM would leave, sent to us because another process has died.
    """
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps({"message": message, "timestamp": int(time.time())}))
    part.replace(path)
