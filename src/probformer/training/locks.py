"""Locks on files, which end with their process: one run in a folder, one worker at a time."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from probformer.errors import InputError

try:
    import fcntl
except ImportError:  # not a POSIX system: two runs in one folder are not noticed
    fcntl = None


class InUse(InputError):
    """Another process trains in the folder."""


@contextmanager
def run_lock(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """No other process can train in the folder meanwhile.

    Args:
        folder: A run folder, which is created if needed.
        patience: Seconds to wait for another process that is about to end.

    Raises:
        InUse: Another process still has the lock.
    """
    state = folder / "state"
    give_up = time.monotonic() + patience
    while (file := _locked(state)) is None:
        if time.monotonic() >= give_up:
            raise InUse(f"{folder}: another process is training this run")
        time.sleep(0.2)
    with file:
        try:
            yield
        finally:
            if set(folder.rglob("*")) == {state, state / "lock"}:  # the run has not begun
                shutil.rmtree(state)
                with suppress(OSError):  # the folder may be a link, or the working directory
                    folder.rmdir()


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait until no other process has the lock, and keep it meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _locked(state: Path) -> IO[str] | None:
    """The open lock file; None while another process has the lock."""
    state.mkdir(parents=True, exist_ok=True)
    file = (state / "lock").open("w")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
    return file
