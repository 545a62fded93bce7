"""How time and memory grow, measured on one device: `make performance DEVICE=cpu`.

Writes what it measures to docs/performance/<device>.json, and docs/performance.md with tables and
plots of all devices that have been measured.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from candidates import PRODUCTS, Mode, Shape, Sizes, step_of
from performance_page import write_page
from step import machine, peak_memory, take_turns

REFERENCE = "Transformer"
MODELS = ("UV", "SharedUV", "Rotary", "UV as dense einsums", REFERENCE, "relative Transformer")
_COMPILED: tuple[Mode, ...] = ("compiled",)
DOCS = Path(__file__).parent.parent / "docs"


@dataclass(frozen=True)
class Plan:
    """What is measured on a kind of device, small enough for it."""

    shapes: tuple[tuple[int, int], ...]
    """Batch × length."""
    modes: tuple[Mode, ...]
    compiled: tuple[tuple[int, int], ...]
    """The shapes for which training is measured compiled too, which takes its time."""
    base: tuple[int, int]
    """The shape of which one size at a time is changed."""
    growth: dict[str, tuple[int, ...]]
    bf16: bool


PLANS = {
    "cpu": Plan(
        shapes=((1, 25), (16, 25)),
        modes=("eager",),
        compiled=(),
        base=(1, 24),
        growth={
            "n": (12, 24, 48, 96),
            "d": (96, 192, 384),
            "h": (4, 8, 16),
            "gamma": (0, 1, 3),
            "T": (1, 2, 5),
        },
        bf16=False,
    ),
    "cuda": Plan(
        shapes=((1, 24), (64, 24), (512, 24), (16, 512), (1, 8192)),
        modes=("eager", "graph"),
        compiled=((64, 24), (512, 24)),
        base=(64, 24),
        growth={
            "n": (12, 24, 48, 96, 192),
            "d": (96, 192, 384, 768),
            "h": (4, 8, 16, 32),
            "gamma": (0, 1, 3, 7),
            "T": (1, 2, 5, 8),
        },
        bf16=True,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=PLANS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page is written")
    arguments = parser.parse_args()
    plan, device = PLANS[arguments.device], torch.device(arguments.device)
    found = {
        "machine": machine(device),
        "torch": torch.__version__,
        "precision": "bf16, with float32 scores and softmax" if plan.bf16 else "fp32",
        "command": f"make performance DEVICE={arguments.device}",
        "shapes": list(measure_shapes(plan, device, arguments.repeats)),
        "growth": list(measure_growth(plan, device, arguments.repeats)),
    }
    folder = arguments.docs / "performance"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1)
    (folder / f"{arguments.device}.json").write_text(text + "\n", encoding="utf-8")
    write_page(arguments.docs)


def measure_shapes(plan: Plan, device: torch.device, repeats: int) -> Iterator[dict[str, Any]]:
    """Every model in every mode, training and inference, with memory."""
    for batch, length in plan.shapes:
        shape = Shape(batch, length, 0.15, device, bf16=plan.bf16)
        for training in (True, False):
            asked = training and (batch, length) in plan.compiled
            modes = plan.modes + (_COMPILED if asked else ())
            runs = itertools.product(MODELS, modes)
            times = measured([(PRODUCTS, modes[0]), *runs], shape, training, repeats)
            for (name, mode), (milliseconds, ratio) in times.items():
                yield {
                    "model": name,
                    "mode": mode,
                    "batch": batch,
                    "length": length,
                    "training": training,
                    "milliseconds": milliseconds,
                    "times the Transformer": ratio,
                    "megabytes": memory(name, mode, shape, training),
                }


def memory(name: str, mode: Mode, shape: Shape, training: bool) -> float | None:
    """Of a training step in eager mode; graphs keep the same tensors."""
    if not training or mode != "eager" or name == PRODUCTS:
        return None
    try:
        return peak_memory(name, shape) / 2**20
    except torch.OutOfMemoryError:
        return None


def measure_growth(plan: Plan, device: torch.device, repeats: int) -> Iterator[dict[str, Any]]:
    """One size at a time, training, in the last of the modes."""
    for letter, values in plan.growth.items():
        for value in values:
            batch, length = plan.base
            shape = Shape(batch, length, 0.15, device, bf16=plan.bf16)
            if letter == "n":
                shape = replace(shape, length=value)
            else:
                shape = replace(shape, sizes=replace(Sizes(), **{letter: value}))
            times = measured([(name, plan.modes[-1]) for name in MODELS], shape, True, repeats)
            for (name, _), (milliseconds, _) in times.items():
                yield {
                    "model": name,
                    "letter": letter,
                    "value": value,
                    "milliseconds": milliseconds,
                    **asdict(shape.sizes),
                }


def measured(
    runs: Iterable[tuple[str, Mode]], shape: Shape, training: bool, repeats: int
) -> dict[tuple[str, Mode], tuple[float, float]]:
    """Median milliseconds, and median of the ratios to the Transformer in the same round."""
    steps = {}
    for name, mode in runs:
        try:
            steps[name, mode] = step_of(name, shape, training, mode)
            steps[name, mode]()
        except (RuntimeError, torch.OutOfMemoryError) as error:  # too large for this device
            steps.pop((name, mode), None)
            print(f"left out: {name}, {mode}, {shape.batch} × {shape.length}: {error}"[:120])
    named = {f"{name}|{mode}": step for (name, mode), step in steps.items()}
    rounds = take_turns(named, shape, repeats)
    fastest = min(
        (key for key in named if key.startswith(f"{REFERENCE}|")),
        key=lambda key: statistics.median(turn[key] for turn in rounds),
    )
    found = {}
    for name, mode in steps:
        key = f"{name}|{mode}"
        milliseconds = 1e3 * statistics.median(turn[key] for turn in rounds)
        ratio = statistics.median(turn[key] / turn[fastest] for turn in rounds)
        found[name, mode] = (round(milliseconds, 3), round(ratio, 3))
        place = f"{shape.batch} × {shape.length} {shape.sizes}"
        print(f"{place} {key}: {milliseconds:.2f} ms", flush=True)
    return found


if __name__ == "__main__":
    main()
