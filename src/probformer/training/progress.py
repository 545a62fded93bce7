"""The messages of a run: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from probformer.runs.figures import format_metric
from probformer.training.checkpoints import Progress


class Reporter:
    """Prints nothing: for all processes but the main one."""

    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def batch_done(self, progress: Progress, batches: int, epochs: int, speed: float) -> None: ...

    def epoch_done(self, line: dict[str, Any], metric: str, epochs: int) -> None: ...

    def close(self) -> None: ...


class LineReporter(Reporter):
    """Prints a line for each epoch.

    Args:
        name: A prefix of the lines.
        to: Where lines go that are no warnings; None: standard output.
    """

    def __init__(self, name: str = "", to: TextIO | None = None) -> None:
        self.prefix = f"{name}: " if name else ""
        self.to = to

    def say(self, text: str) -> None:
        print(f"{self.prefix}{text}", file=self.to, flush=True)

    def warn(self, text: str) -> None:
        print(f"{self.prefix}warning: {text}", file=sys.stderr, flush=True)

    def epoch_done(self, line: dict[str, Any], metric: str, epochs: int) -> None:
        self.say(epoch_text(line, metric, epochs))


class BarReporter(LineReporter):
    """Prints the same lines above a bar with the remaining time."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(compact=True),
        )
        self.bar = Bar(*columns, console=Console(), transient=True)
        self.task = self.bar.add_task(f"{self.prefix}reading the data", total=None, figures="")
        self.bar.start()
        self.updated_at = 0.0
        self.dev = ""

    def say(self, text: str) -> None:
        self.bar.console.print(f"{self.prefix}{text}", highlight=False, markup=False)

    def batch_done(self, progress: Progress, batches: int, epochs: int, speed: float) -> None:
        if time.monotonic() - self.updated_at < 0.1:
            return
        self.updated_at = time.monotonic()
        loss = progress.loss / max(progress.chunks, 1)
        self.bar.update(
            self.task,
            description=f"{self.prefix}{progress.epoch + 1}/{epochs}",
            total=epochs * batches,
            completed=progress.epoch * batches + progress.batch,
            figures=f"loss {loss:.3f} {self.dev}{speed:,.0f}/s",
        )

    def epoch_done(self, line: dict[str, Any], metric: str, epochs: int) -> None:
        super().epoch_done(line, metric, epochs)
        self.dev = f"dev {line['dev'][metric]:.4g} "

    def close(self) -> None:
        self.bar.stop()


def epoch_text(line: dict[str, Any], metric: str, epochs: int) -> str:
    dev = format_metric(line["dev"][metric])
    speed = line["sentences"] / max(line["seconds"], 1e-9)
    return (
        f"epoch {line['epoch']}/{epochs}  loss {line['train_loss']:.4f}  dev {metric} {dev}  "
        f"lr {line['learning_rate']:.1e}  {speed:,.0f}/s"
    )


def build_reporter(is_main_process: bool, name: str = "") -> Reporter:
    if not is_main_process:
        return Reporter()
    return BarReporter(name) if sys.stdout.isatty() else LineReporter(name)
