"""To stop a run from outside, and to keep two from sharing a folder."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any

from probformer.errors import InputError

try:
    import fcntl
except ImportError:  # not a POSIX system: two runs in a folder go unnoticed
    fcntl = None


class Stopped(Exception):
    """Training stopped between two batches, with a checkpoint, because a signal asked for it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


class InUse(InputError):
    """Another process has the folder."""


class StopSignal:
    """Notes a Ctrl-C or a SIGTERM; a second Ctrl-C stops at once.

    One that came too late to stop what went on takes effect after it.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignal:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.received is not None and error is None:
            signal.raise_signal(self.received)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number


@contextmanager
def only_one(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """While this lasts, no other process trains in the folder.

    One that is about to end is waited for, for so many seconds.
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
            if set(folder.rglob("*")) == {state, state / "lock"}:  # nothing was begun
                shutil.rmtree(state)
                with suppress(OSError):  # it may be a link, or the folder that we are in
                    folder.rmdir()


def _locked(state: Path) -> IO[str] | None:
    """The open lock; none while another process has it."""
    state.mkdir(parents=True, exist_ok=True)
    file = (state / "lock").open("w")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
    return file


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Processes that come here wait for each other."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
