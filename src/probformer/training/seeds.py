"""The same run with several seeds: their processes, and the mean of their results."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from probformer.errors import InputError, counted, require
from probformer.runs.figures import format_metric
from probformer.runs.run_folder import load_description, read_final

Results = dict[str, dict[str, float]]
"""Metrics by split."""


def parse_seeds(text: str) -> list[int]:
    """The seeds of a range like "0..4", both ends included, or of a list like "0,3,7"."""
    try:
        first, dots, last = text.partition("..")
        seeds = [*range(int(first), int(last) + 1)] if dots else [int(x) for x in text.split(",")]
    except ValueError:
        seeds = []
    valid = bool(seeds) and min(seeds) >= 0 and len(set(seeds)) == len(seeds)
    require(valid, f"seeds must be like 0..4 or 0,3,7, got {text!r}")
    return seeds


def side_by_side(commands: dict[int, list[str]], parallel: int) -> dict[int, str]:
    """Train several seeds at a time, each in a process of its own.

    Args:
        commands: The command line of each seed.
        parallel: The number of processes at a time.

    Returns:
        By seed, the error messages of those that failed.
    """
    if "RANK" in os.environ:
        raise InputError("--parallel cannot be used under torchrun or accelerate launch")
    running: set[subprocess.Popen[str]] = set()
    # More threads than cores, over all runs, would make every run many times slower.
    threads = max(1, _cores() // parallel)
    environment = {"OMP_NUM_THREADS": str(threads), **os.environ}

    def run(seed: int) -> str:
        process = subprocess.Popen(
            commands[seed],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # so that Ctrl-C reaches it only once, from here
        )
        running.add(process)
        errors: list[str] = []
        thread = threading.Thread(target=_pass_on, args=(process.stderr, seed, sys.stderr, errors))
        thread.start()
        _pass_on(process.stdout, seed, sys.stdout, [])
        thread.join()
        running.discard(process)
        return "" if process.wait() == 0 else (errors or ["stopped"])[-1].removeprefix("error: ")

    pool = ThreadPoolExecutor(parallel)
    try:
        ended = dict(zip(commands, pool.map(run, commands), strict=True))
    except BaseException:  # such as Ctrl-C: the runs stop as well, each with a checkpoint
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(running):
            process.terminate()
        raise
    finally:
        pool.shutdown()
    return {seed: message for seed, message in ended.items() if message}


def _pass_on(stream: Any, seed: int, to: Any, lines: list[str]) -> None:
    for line in stream:
        lines.append(line.rstrip())
        print(f"seed {seed}: {line}", end="", file=to, flush=True)


def _cores() -> int:
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count else os.cpu_count() or 1


def summary(folders: dict[int, Path]) -> list[str]:
    """A line for each seed that is finished, and mean and standard deviation for each split."""
    done = {seed: final for seed, folder in folders.items() if (final := read_final(folder))}
    if not done:
        return []
    metric = load_description(folders[next(iter(done))]).task.metric
    lines = []
    for split in next(iter(done.values())):
        if split == "dev":
            continue
        values = {seed: results[split][metric] for seed, results in done.items()}
        lines += [
            f"seed {seed}: {split} {metric} {format_metric(value)}"
            for seed, value in values.items()
        ]
        mean = format_metric(statistics.mean(values.values()))
        spread = f" ± {format_metric(statistics.stdev(values.values()))}" if len(values) > 1 else ""
        lines.append(f"{split} {metric} {mean}{spread} ({counted(len(values), 'seed')})")
    return lines
