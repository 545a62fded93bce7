"""File locks, which the system releases when their process ends.

One process at a time trains in a run folder; one worker of a search at a time takes a trial.
"""

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
    """Within the context, no other process can train in the folder.

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
    """Wait for the lock on a file, and hold it within the context."""
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
