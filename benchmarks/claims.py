"""Train what the paper's claims are judged by: claims.toml, a run for each change and seed.

    python benchmarks/claims.py --data corpora --set training.precision=bf16

A command that was stopped goes on where it was; `probformer report` then shows the figures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    parser.add_argument("--out", type=Path, default=Path("runs/claims"))
    parser.add_argument("--only", default="", help="runs whose folder has this in its name")
    parser.add_argument("--parallel", default="1", help="so many seeds side by side")
    parser.add_argument("--set", action="append", default=[], help="for all runs")
    arguments = parser.parse_args()
    for config, seeds, changes in trainings():
        folder = arguments.out / folder_name(config, changes)
        if arguments.only not in str(folder):
            continue
        command = [sys.executable, "-m", "probformer", "train", config, "--resume"]
        command += ["--data", str(arguments.data), "--out", str(folder)]
        command += ["--seeds", seeds, "--parallel", arguments.parallel]
        for change in (*changes, *arguments.set):
            command += ["--set", change]
        print(*command[3:], flush=True)
        subprocess.run(command, check=True)


def trainings() -> Iterator[tuple[str, str, list[str]]]:
    """Config, seeds and changes of each."""
    text = Path(__file__).with_name("claims.toml").read_text(encoding="utf-8")
    for group in tomllib.loads(text)["groups"]:
        for changes in group["changes"]:
            yield group["config"], group["seeds"], [*group["common"], *changes]


def folder_name(config: str, changes: list[str]) -> str:
    """The last names of what is changed, and their values."""
    pairs = [change.partition("=") for change in changes]
    return "-".join([config, *(f"{key.rpartition('.')[2]}={value}" for key, _, value in pairs)])


if __name__ == "__main__":
    main()
