"""Time and memory of a training step, side by side in one run: `make bench`."""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import resource
import statistics
import time
from pathlib import Path

import torch

from candidates import PRODUCTS, Shape, Step, step_of

REFERENCE = "Transformer"
NAMES = (
    PRODUCTS,
    "UV",
    "SharedUV",
    "Rotary",
    "UV as dense einsums",
    REFERENCE,
    "relative Transformer",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--dropout", type=float, default=0.15)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    device = torch.device(arguments.device)
    shape = Shape(arguments.batch, arguments.length, arguments.dropout, device)
    rounds = interleaved_rounds(shape, arguments.repeats)
    memory = {name: peak_memory(name, shape) for name in NAMES}

    print(f"Training step (forward and backward, fp32), {shape.batch} × {shape.length} words,")
    print(
        f"dropout {shape.dropout}, on {machine(device)}; medians of {arguments.repeats} rounds.\n"
    )
    print(f"| {'':26} | {'ms':>8} | {'/ products':>10} | {'/ Transformer':>13} | {'peak MB':>8} |")
    print(f"|{'-' * 28}|{'-' * 9}:|{'-' * 11}:|{'-' * 14}:|{'-' * 9}:|")
    for name in NAMES:
        milliseconds = 1e3 * statistics.median(turn[name] for turn in rounds)
        floor, other = (
            statistics.median(turn[name] / turn[reference] for turn in rounds)
            for reference in (PRODUCTS, REFERENCE)
        )
        ratios = f"{floor:10.2f} | {other:13.2f}"
        print(f"| {name:26} | {milliseconds:8.1f} | {ratios} | {memory[name] / 2**20:8.0f} |")


def interleaved_rounds(shape: Shape, repeats: int) -> list[dict[str, float]]:
    """Seconds; the candidates take turns, so that a slow moment of the machine hits all."""
    return take_turns({name: step_of(name, shape) for name in NAMES}, shape, repeats)


def take_turns(steps: dict[str, Step], shape: Shape, repeats: int) -> list[dict[str, float]]:
    for step in steps.values():
        seconds(step, shape.device)
    return [
        {name: seconds(step, shape.device) for name, step in steps.items()} for _ in range(repeats)
    ]


def seconds(step: Step, device: torch.device) -> float:
    synchronise(device)
    begin = time.perf_counter()
    step()
    synchronise(device)
    return time.perf_counter() - begin


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_memory(name: str, shape: Shape) -> int:
    """Bytes that the model and a step need; on a CPU, measured in a process of its own."""
    if shape.device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(shape.device)
        before = torch.cuda.memory_allocated(shape.device)
        step_of(name, shape)()
        return torch.cuda.max_memory_allocated(shape.device) - before
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak_memory, (name, shape))


def _peak_memory(name: str, shape: Shape) -> int:
    before = _resident_peak()
    step_of(name, shape)()
    return _resident_peak() - before


def _resident_peak() -> int:
    """Bytes; Linux's own count where there is one, as `getrusage` reports a parent's peak too."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return (
        f"{torch.get_num_threads()} CPU threads ({platform.machine()}), torch {torch.__version__}"
    )


if __name__ == "__main__":
    main()
