"""Stopping a run by Ctrl-C or SIGTERM, between two batches and with a checkpoint."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any


class Stopped(Exception):
    """A signal has stopped training between two batches; there is a checkpoint."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


class StopSignal:
    """Within the context, records a Ctrl-C or a SIGTERM; a second Ctrl-C stops at once.

    A signal that came too late to stop training is raised again at the end of the context.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignal:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._record)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.received is not None and error is None:
            signal.raise_signal(self.received)

    def _record(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number
