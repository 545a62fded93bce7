"""The same run with several seeds, one after the other or side by side."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from probformer.errors import InputError, counted, require
from probformer.runs.run_folder import load_description, read_final
from probformer.training.progress import shown

Results = dict[str, dict[str, float]]


def parse_seeds(text: str) -> list[int]:
    """ "0..4" or "0,3,7"."""
    try:
        first, dots, last = text.partition("..")
        seeds = [*range(int(first), int(last) + 1)] if dots else [int(x) for x in text.split(",")]
    except ValueError:
        seeds = []
    valid = bool(seeds) and min(seeds) >= 0 and len(set(seeds)) == len(seeds)
    require(valid, f"seeds must be like 0..4 or 0,3,7, got {text!r}")
    return seeds


def one_after_the_other(seeds: list[int], train: Callable[[int], Results]) -> dict[int, str]:
    """Trains all of them; the result says which failed, and why."""
    failures: dict[int, str] = {}
    for seed in seeds:
        try:
            train(seed)
        except InputError as error:
            if "RANK" in os.environ:  # the other processes may still be in this seed
                raise
            failures[seed] = str(error)
    return failures


def side_by_side(commands: dict[int, list[str]], parallel: int) -> dict[int, str]:
    """A process a seed, `parallel` of them at a time; their lines are printed with the seed.

    The result says which failed, and why.
    """
    if "RANK" in os.environ:
        raise InputError("--parallel cannot be used under torchrun or accelerate launch")
    running: set[subprocess.Popen[str]] = set()
    # Threads of one run that wait for those of another make both many times slower.
    threads = max(1, _cores() // parallel)
    environment = {"OMP_NUM_THREADS": str(threads), **os.environ}

    def run(seed: int) -> str:
        process = subprocess.Popen(
            commands[seed],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # a Ctrl-C reaches it once, through us
        )
        running.add(process)
        said: list[str] = []
        watcher = threading.Thread(target=_pass_on, args=(process.stderr, seed, sys.stderr, said))
        watcher.start()
        _pass_on(process.stdout, seed, sys.stdout, [])
        watcher.join()
        running.discard(process)
        return "" if process.wait() == 0 else (said or ["stopped"])[-1].removeprefix("error: ")

    pool = ThreadPoolExecutor(parallel)
    try:
        ended = dict(zip(commands, pool.map(run, commands), strict=True))
    except BaseException:  # above all Ctrl-C: the runs stop too, each with a checkpoint
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(running):
            process.terminate()
        raise
    finally:
        pool.shutdown()
    return {seed: message for seed, message in ended.items() if message}


def _pass_on(stream: Any, seed: int, to: Any, said: list[str]) -> None:
    for line in stream:
        said.append(line.rstrip())
        print(f"seed {seed}: {line}", end="", file=to, flush=True)


def _cores() -> int:
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count else os.cpu_count() or 1


def summary(folders: dict[int, Path]) -> list[str]:
    """A line a seed that came to its end, and the mean and deviation of each split."""
    done = {seed: final for seed, folder in folders.items() if (final := read_final(folder))}
    if not done:
        return []
    metric = load_description(folders[next(iter(done))]).task.metric
    lines = []
    for split in next(iter(done.values())):
        if split == "dev":
            continue
        values = {seed: results[split][metric] for seed, results in done.items()}
        lines += [f"seed {seed}: {split} {metric} {shown(value)}" for seed, value in values.items()]
        mean = shown(statistics.mean(values.values()))
        spread = f" ± {shown(statistics.stdev(values.values()))}" if len(values) > 1 else ""
        lines.append(f"{split} {metric} {mean}{spread} ({counted(len(values), 'seed')})")
    return lines
