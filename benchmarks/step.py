"""Time and memory of a training step or of inference, side by side in one run: `make bench`."""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import platform
import resource
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from candidates import PRODUCTS, Shape, Step, step_of
from probformer.training.memory import keep_freed_memory

REFERENCE = "Transformer"
NAMES: tuple[str, ...] = (
    PRODUCTS,
    "UV",
    "SharedUV",
    "Rotary",
    "UV as dense einsums",
    REFERENCE,
    "relative Transformer",
)
_SHORT = 0.02
"""Seconds: a step that takes less is repeated until it takes about that, at most 20 times."""
K = TypeVar("K")


Key = tuple[str, bool]
"""A candidate's name, and whether it computes in bf16: autocast, with weights in float32."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--dropout", type=float, default=0.15)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--inference", action="store_true", help="measure the forward pass alone")
    arguments = parser.parse_args()

    keep_freed_memory()  # as in training
    torch.set_num_threads(arguments.threads)
    device, training = torch.device(arguments.device), not arguments.inference
    shape = Shape(arguments.batch, arguments.length, arguments.dropout, device)
    shapes = {key: replace(shape, bf16=key[1]) for key in itertools.product(NAMES, (False, True))}
    steps = {key: step_of(key[0], shaped, training) for key, shaped in shapes.items()}
    rounds = take_turns(steps, shape, arguments.repeats)
    memory = {key: peak_memory(key[0], shaped, training) for key, shaped in shapes.items()}

    what = f"Training step (forward and backward, dropout {shape.dropout})"
    print(f"{what if training else 'Inference'}, {shape.batch} × {shape.length} words,")
    where = f"{machine(device)}, torch {torch.__version__}"
    print(f"on {where}; medians of {arguments.repeats} rounds.\n")
    print_table(rounds, memory)


def print_table(rounds: list[dict[Key, float]], memory: dict[Key, int]) -> None:
    """Ratios are to the products and to the Transformer of the same precision."""
    titles = (f"{'ms':>8}", "/ products", "/ Transformer", "fp32 / this", "peak MB")
    print(f"| {'':30} | {' | '.join(titles)} |")
    print(f"|{'-' * 32}|{'|'.join('-' * (len(title) + 1) + ':' for title in titles)}|")
    for name, bf16 in memory:
        this = name, bf16

        def ratio(one: Key, other: Key) -> str:
            return f"{statistics.median(turn[one] / turn[other] for turn in rounds):.2f}"

        cells = (
            f"{1e3 * statistics.median(turn[this] for turn in rounds):.1f}",
            ratio(this, (PRODUCTS, bf16)),
            ratio(this, (REFERENCE, bf16)),
            ratio((name, False), this),
            f"{memory[this] / 2**20:.0f}",
        )
        row = (f"{cell:>{len(title)}}" for cell, title in zip(cells, titles, strict=True))
        print(f"| {name + ', bf16' * bf16:30} | {' | '.join(row)} |")


def take_turns(steps: dict[K, Step], shape: Shape, repeats: int) -> list[dict[K, float]]:
    """Seconds of each candidate by round; they take turns, so that slow moments affect them all.

    A short step is run several times without synchronising in between, as in training.
    """
    for step in steps.values():
        seconds(step, shape.device)
    alone = {name: seconds(step, shape.device) for name, step in steps.items()}
    times = {name: max(1, min(20, round(_SHORT / second))) for name, second in alone.items()}
    return [
        {name: seconds(step, shape.device, times[name]) for name, step in steps.items()}
        for _ in range(repeats)
    ]


def seconds(step: Step, device: torch.device, times: int = 1) -> float:
    synchronise(device)
    begin = time.perf_counter()
    for _ in range(times):
        step()
    synchronise(device)
    return (time.perf_counter() - begin) / times


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_memory(name: str, shape: Shape, training: bool = True) -> int:
    """Bytes that the model and a step need; on a CPU, measured in a separate process."""
    if shape.device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(shape.device)
        before = torch.cuda.memory_allocated(shape.device)
        step_of(name, shape, training)()
        return torch.cuda.max_memory_allocated(shape.device) - before
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak_memory, (name, shape, training))


def _peak_memory(name: str, shape: Shape, training: bool) -> int:
    before = _resident_peak()
    step_of(name, shape, training)()
    return _resident_peak() - before


def _resident_peak() -> int:
    """Bytes: VmHWM on Linux, as `getrusage` may report the peak of the parent process."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{torch.get_num_threads()} CPU threads ({platform.machine()})"


if __name__ == "__main__":
    main()
