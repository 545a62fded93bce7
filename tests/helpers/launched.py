"""Training runs of several processes, started by torchrun, which tests wait for and kill."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

SETTINGS = ["data.size=300", "training.epochs=4", "training.chunk=8", "encoder.dropout=0.0"]
SETTINGS += ["training.checkpoint_minutes=0.003"]
TRAIN = ["train", "mlm-builtin-pt", *(part for s in SETTINGS for part in ("--set", s))]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
ONE_NODE = [*TORCHRUN, "--standalone", "--nproc-per-node", "2"]
PATIENCE = 300.0


def train(folder: Path, *more: str) -> list[str]:
    return ["-m", "probformer", *TRAIN, "--out", str(folder), "--resume", *more]


class Launched:
    """A launcher, its processes, and what they print."""

    def __init__(self, line: list[str], output: Path, environment: dict[str, str]) -> None:
        self.output = output
        with output.open("w") as file:
            self.process = subprocess.Popen(
                line,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            )

    def worker(self, rank: int) -> psutil.Process:
        """The process of this rank, which a restart may have started just now."""
        found = []

        def look() -> bool:
            for child in psutil.Process(self.process.pid).children():
                try:
                    if child.environ().get("RANK") == str(rank):
                        found.append(child)
                except psutil.Error:  # it is just ending
                    continue
            return bool(found)

        self.wait_until(look)
        return found[0]

    def wait_until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            assert self.process.poll() is None, self.text
            assert time.monotonic() < end, self.text
            time.sleep(0.02)

    def wait_for_step(self, folder: Path, step: int) -> None:
        """Wait until there is a checkpoint after at least `step` updates."""
        self.wait_until(lambda: steps_saved(folder) >= step)

    def ended(self) -> int:
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """Kill all processes at once, as when a machine fails."""
        children = []
        if self.process.poll() is None:
            launcher = psutil.Process(self.process.pid)
            launcher.suspend()  # so that it starts no more
            children = launcher.children(recursive=True)
            launcher.kill()
        for child in children:
            child.kill()
        psutil.wait_procs(children, PATIENCE)
        self.process.wait(PATIENCE)

    @property
    def text(self) -> str:
        return self.output.read_text()


def steps_saved(folder: Path) -> int:
    return max((int(p.name.split("-")[1]) for p in (folder / "state").glob("step-*")), default=-1)


@contextmanager
def launched(line: list[str], output: Path, **environment: str) -> Iterator[Launched]:
    """Start a launcher, and kill its processes at the end of the block."""
    launch = Launched(line, output, environment)
    try:
        yield launch
    finally:
        launch.kill()
