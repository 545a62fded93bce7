"""Run all trainings of a table, several at a time.

    python benchmarks/trainings.py benchmarks/claims.toml --data corpora --parallel 4

There is a run for each config, list of changes and seed. Finished runs are skipped, and stopped
ones are resumed. When a run finishes, its result is added to OUT/figures.jsonl; `probformer
report` shows it.

Several runs on one GPU take turns, unless NVIDIA's MPS is started before them
(`nvidia-cuda-mps-control -d`). With it, five trainings of a model of the paper's table together did
1.3 to 2.5 times the steps of one alone on an H200, the more the smaller the model. Large models
slow down small ones that run at the same time, and eleven runs did fewer steps in all than four.
Under MPS, killing one of them (`kill -9`) ended the others too, with an illegal memory access;
`--minutes` stops them with SIGTERM, so that each saves a checkpoint.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from probformer.config.lookup import read_settings
from probformer.config.reading import Settings, from_dict, from_toml
from probformer.errors import InputError, require
from probformer.runs.results import Result
from probformer.runs.run_folder import read_final
from probformer.training.seeds import parse_seeds


@dataclass(frozen=True)
class TrainingList(Settings):
    groups: list


@dataclass(frozen=True)
class Group(Settings):
    config: str
    seeds: str
    common: list = field(default_factory=list)
    """Changes to the config for all runs of the group."""
    changes: list = field(default_factory=lambda: [[]])
    """Lists of changes; each is a row of the comparison."""

    def check(self) -> None:
        lists = [self.common, *self.changes]
        texts = all(isinstance(one, list) and all(isinstance(x, str) for x in one) for one in lists)
        require(texts, "common must be a list of texts, and changes one of such lists")


@dataclass(frozen=True)
class Training:
    config: str
    changes: tuple[str, ...]
    seed: int

    @property
    def folder(self) -> Path:
        """Named by the config and its changes: the last part of a setting's name, and its value."""
        pairs = [change.partition("=") for change in self.changes]
        parts = [self.config, *(f"{key.rpartition('.')[2]}={value}" for key, _, value in pairs)]
        return Path("-".join(parts)) / f"seed-{self.seed}"

    def command(self, data: Path, out: Path, more: list[str]) -> list[str]:
        line = [sys.executable, "-m", "probformer", "train", self.config, "--resume"]
        line += ["--data", str(data), "--out", str(out / self.folder)]
        for change in (*self.changes, *more, f"seed={self.seed}"):
            line += ["--set", change]
        return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("list", type=Path, help="a file such as claims.toml")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    parser.add_argument("--out", type=Path, default=Path("runs/table"))
    parser.add_argument("--only", default="", help="only runs whose folder's name contains this")
    parser.add_argument("--parallel", type=int, default=1, help="number of runs at a time")
    parser.add_argument("--minutes", type=float, help="then stop; the same command resumes")
    parser.add_argument("--set", action="append", default=[], help="a change for all runs")
    given = parser.parse_args()
    try:
        chosen = [one for one in trainings(given.list) if given.only in str(one.folder)]
        for one in chosen:  # wrong settings are reported before the first run starts
            read_settings(one.config, [*one.changes, *given.set])
    except InputError as error:
        parser.error(str(error))
    left = [one for one in chosen if read_final(given.out / one.folder) is None]
    print(f"{len(chosen)} runs, {len(chosen) - len(left)} of them done", flush=True)
    end = time.monotonic() + 60 * (given.minutes or float("inf"))
    running: dict[Training, subprocess.Popen[bytes]] = {}
    failed = 0
    while (left or running) and time.monotonic() < end:
        while left and len(running) < given.parallel:
            one = left.pop(0)
            folder = given.out / one.folder
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "output.txt").open("ab") as file:
                line = one.command(given.data, given.out, given.set)
                running[one] = subprocess.Popen(line, stdout=file, stderr=subprocess.STDOUT)
        for one in [one for one, process in running.items() if process.poll() is not None]:
            ended = running.pop(one).returncode
            why = f"ended with status {ended}: {given.out / one.folder / 'output.txt'} says why"
            print(one.folder, "done" if ended == 0 else why, flush=True)
            failed += ended != 0
            if ended == 0:
                keep(given.out / one.folder, given.out / "figures.jsonl")
        time.sleep(0.5)
    for process in running.values():  # each of them leaves a checkpoint
        process.terminate()
    for process in running.values():
        process.wait()
    if running or left:
        print(f"stopped with {len(running) + len(left)} runs to go")
    if failed:
        sys.exit(1)


def keep(run: Path, figures: Path) -> None:
    """Add a run's result, as `report --save` does, so that it remains without the run folder."""
    with figures.open("a", encoding="utf-8") as file:
        file.write(f"{Result.of_run(run).to_json()}\n")


def trainings(path: Path) -> Iterator[Training]:
    for number, values in enumerate(from_toml(TrainingList, path).groups):
        group = from_dict(Group, values, f"groups[{number}].")
        for changes in group.changes:
            for seed in parse_seeds(group.seeds):
                yield Training(group.config, (*group.common, *changes), seed)


if __name__ == "__main__":
    main()
