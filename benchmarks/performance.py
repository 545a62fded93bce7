"""Time and memory of all models by size, measured on one device: `make performance DEVICE=cpu`.

Writes the measurements to docs/performance/<device>.json, and docs/performance.md with tables and
plots of all devices that have been measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from candidates import PRODUCTS, Mode, Shape, Sizes, step_of
from performance_page import write_page
from probformer.errors import is_out_of_memory
from step import machine, peak_memory, take_turns

REFERENCE = "Transformer"
TRANSFORMERS = (REFERENCE, "relative Transformer")
LOW_RANK = ("UV", "SharedUV", "Rotary")
MODELS = ("UV as dense einsums", "UV, plain path", *LOW_RANK, *TRANSFORMERS)
DOCS = Path(__file__).parent.parent / "docs"


@dataclass(frozen=True)
class Case:
    """A table of the page."""

    batch: int
    length: int
    models: tuple[str, ...] = MODELS
    sizes: Sizes = field(default_factory=Sizes)
    compiled: bool = False
    """Whether the Transformer is also measured with torch.compile, which is slow to start."""


@dataclass(frozen=True)
class Plan:
    """The measurements for a kind of device."""

    cases: tuple[Case, ...]
    modes: tuple[Mode, ...]
    base: tuple[int, int]
    """Batch and length for `growth`, where one size at a time is changed."""
    growth: dict[str, tuple[int, ...]]
    """The values of each size."""
    growing: tuple[str, ...]
    """The models whose growth is measured."""
    bf16: bool


NER = Case(
    32,
    24,
    ("Full as dense einsums", "Full, plain path", "Full", *TRANSFORMERS),
    Sizes(d=256, h=18, T=4),
)
PLANS = {
    "cpu": Plan(
        cases=(Case(1, 25), Case(16, 25)),
        modes=("eager",),
        base=(1, 24),
        growth={
            "n": (12, 24, 48, 96),
            "d": (96, 192, 384),
            "h": (4, 8, 16),
            "gamma": (0, 1, 3),
            "T": (1, 2, 5),
        },
        growing=(*LOW_RANK, REFERENCE),
        bf16=False,
    ),
    "cuda": Plan(
        cases=(
            Case(1, 24),
            Case(64, 24, compiled=True),
            Case(512, 24, compiled=True),
            Case(16, 512, ("UV, plain path", *LOW_RANK, *TRANSFORMERS)),
            Case(1, 8192, (*LOW_RANK, REFERENCE)),
            NER,
        ),
        modes=("eager", "graph"),
        base=(64, 24),
        growth={
            "n": (12, 24, 48, 96, 192),
            "d": (96, 192, 384, 768),
            "h": (4, 8, 16, 32),
            "gamma": (0, 3, 7),
            "T": (1, 2, 5, 8),
        },
        growing=(*LOW_RANK, REFERENCE),
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
        "cases": [],
        "growth": [],
    }
    folder = arguments.docs / "performance"
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in (
        ("cases", measure_cases(plan, device, arguments.repeats)),
        ("growth", measure_growth(plan, device, arguments.repeats)),
    ):
        for row in rows:  # saved after each: a long run may be interrupted
            found[part].append(row)
            text = json.dumps(found, indent=1) + "\n"
            (folder / f"{arguments.device}.json").write_text(text, encoding="utf-8")
    write_page(arguments.docs)


def measure_cases(plan: Plan, device: torch.device, repeats: int) -> Iterator[dict[str, Any]]:
    """Every model in every mode, training and inference, with memory."""
    for case in plan.cases:
        shape = Shape(case.batch, case.length, 0.15, device, case.sizes, plan.bf16)
        for training in (True, False):
            runs: list[tuple[str, Mode]] = []
            if "UV" in case.models:
                runs.append((PRODUCTS, plan.modes[-1]))
            runs.extend((name, mode) for name in case.models for mode in plan.modes)
            if case.compiled and training:
                runs.append((REFERENCE, "compiled"))
            times = measured(runs, shape, training, repeats)
            for (name, mode), (milliseconds, ratio) in times.items():
                yield {
                    "model": name,
                    "mode": mode,
                    "batch": case.batch,
                    "length": case.length,
                    "sizes": asdict(case.sizes),
                    "training": training,
                    "milliseconds": milliseconds,
                    "times the Transformer": ratio,
                    "megabytes": memory(name, shape) if training and mode == "eager" else None,
                }


def memory(name: str, shape: Shape) -> float | None:
    """Peak megabytes of a training step in eager mode; graphs keep the same tensors."""
    if name == PRODUCTS:
        return None
    try:
        return peak_memory(name, shape) / 2**20
    except torch.OutOfMemoryError:
        return None


def measure_growth(plan: Plan, device: torch.device, repeats: int) -> Iterator[dict[str, Any]]:
    """Training steps with one size changed at a time, in the last of the modes."""
    for letter, values in plan.growth.items():
        for value in values:
            batch, length = plan.base
            shape = Shape(batch, length, 0.15, device, bf16=plan.bf16)
            if letter == "n":
                shape = replace(shape, length=value)
            else:
                shape = replace(shape, sizes=replace(Sizes(), **{letter: value}))
            times = measured(
                [(name, plan.modes[-1]) for name in plan.growing], shape, True, repeats
            )
            for (name, _), (milliseconds, _) in times.items():
                yield {
                    "model": name,
                    "letter": letter,
                    "value": value,
                    "milliseconds": milliseconds,
                    "megabytes": memory(name, shape),
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
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
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
