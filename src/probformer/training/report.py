"""What a person sees of a run: a progress bar where somebody looks on, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from probformer.training.checkpoints import Progress


class Reporter:
    """Tells nothing; what processes other than the first use."""

    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def batch_done(self, progress: Progress, batches: int, epochs: int) -> None: ...

    def epoch_done(self, line: dict[str, Any], metric: str, speed: float, epochs: int) -> None: ...

    def close(self) -> None: ...


class LineReporter(Reporter):
    """A line an epoch."""

    def __init__(self, name: str = "") -> None:
        self.prefix = f"{name}: " if name else ""

    def say(self, text: str) -> None:
        print(f"{self.prefix}{text}", flush=True)

    def warn(self, text: str) -> None:
        print(f"{self.prefix}warning: {text}", file=sys.stderr, flush=True)

    def epoch_done(self, line: dict[str, Any], metric: str, speed: float, epochs: int) -> None:
        self.say(epoch_text(line, metric, speed, epochs))


class BarReporter(LineReporter):
    """The same lines, above a bar with the time left."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
        )
        self.bar = Bar(*columns, console=Console(), transient=True)
        self.task = self.bar.add_task("", total=None, figures="")
        self.bar.start()
        self.shown = 0.0
        self.dev = ""

    def say(self, text: str) -> None:
        self.bar.console.print(f"{self.prefix}{text}", highlight=False, markup=False)

    def batch_done(self, progress: Progress, batches: int, epochs: int) -> None:
        if time.monotonic() - self.shown < 0.1:
            return
        self.shown = time.monotonic()
        self.bar.update(
            self.task,
            description=f"epoch {progress.epoch + 1}/{epochs}",
            total=epochs * batches,
            completed=progress.epoch * batches + progress.batch,
            figures=self._figures(progress),
        )

    def _figures(self, progress: Progress) -> str:
        loss = progress.loss / max(progress.chunks, 1)
        speed = progress.batch / max(progress.seconds, 1e-9)
        return f"loss {loss:.4f}  {self.dev}{speed:.1f} batches/s  left"

    def epoch_done(self, line: dict[str, Any], metric: str, speed: float, epochs: int) -> None:
        super().epoch_done(line, metric, speed, epochs)
        self.dev = f"dev {metric} {line['dev'][metric]:.4f}  "

    def close(self) -> None:
        self.bar.stop()


def epoch_text(line: dict[str, Any], metric: str, speed: float, epochs: int) -> str:
    dev = line["dev"]
    return (
        f"epoch {line['epoch']}/{epochs}  train loss {line['train_loss']:.4f}  "
        f"dev {metric} {dev[metric]:.4f}  lr {line['learning_rate']:.2e}  {speed:,.0f} sentences/s"
    )


def build_reporter(is_main_process: bool, name: str = "") -> Reporter:
    if not is_main_process:
        return Reporter()
    return BarReporter(name) if sys.stdout.isatty() else LineReporter(name)
