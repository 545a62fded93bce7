"""What runs came to: figures over seeds, beside the published ones.

A row of the report is a config, with the changes that were made to it; its runs are its seeds.
"""

from __future__ import annotations

import json
import statistics
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from probformer.config import RunSettings, to_toml
from probformer.config.lookup import read_settings, shipped_configs
from probformer.config.reading import differences
from probformer.errors import InputError, require
from probformer.training.files import read_json
from probformer.training.plots import plot_curves
from probformer.training.run_folder import (
    Run,
    holds_run,
    load_description,
    read_final,
    read_metrics,
)

_IN_PER_CENT = ("accuracy", "f1", "exact match")


@dataclass(frozen=True)
class Finished:
    """A run that came to its end."""

    run: Run
    epochs: list[dict[str, Any]]
    final: dict[str, dict[str, float]]
    environment: dict[str, Any]


@dataclass(frozen=True)
class Published:
    mean: float
    deviation: float
    source: str = "paper"

    def __str__(self) -> str:
        source = "" if self.source == "paper" else " (authors' code)"
        return f"{self.mean:.2f} ± {self.deviation:.2f}{source}"


@dataclass(frozen=True)
class Row:
    """The runs of one config, with the changes that were made to it."""

    name: str
    changes: str
    runs: list[Finished]
    published: Published | None

    @property
    def title(self) -> str:
        return f"{self.name} {self.changes}".strip()

    @property
    def split(self) -> str:
        """Where the headline figure is from: "gen" if there is one."""
        return "gen" if "gen" in self.runs[0].final else "test"

    @property
    def metric(self) -> str:
        return self.runs[0].run.task.metric

    @property
    def parameters(self) -> int:
        return self.runs[0].run.model.encoder.count_parameters()

    @property
    def seconds(self) -> float:
        """Of training, on average."""
        return statistics.mean(sum(line["seconds"] for line in run.epochs) for run in self.runs)

    @property
    def speed(self) -> float:
        """Sentences a second in training."""
        sentences = sum(line.get("sentences", 0) for run in self.runs for line in run.epochs)
        return sentences / max(sum(line["seconds"] for r in self.runs for line in r.epochs), 1e-9)

    def figure(self, metric: str | None = None, split: str | None = None) -> str:
        """Mean ± deviation, in per cent where that is usual."""
        metric, split = metric or self.metric, split or self.split
        factor = 100 if metric.partition("/")[0] in _IN_PER_CENT else 1
        values = [factor * run.final[split][metric] for run in self.runs]
        spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
        return f"{statistics.mean(values):.2f}{spread}"

    def cases(self) -> list[str]:
        """Metrics of parts of the split."""
        return [name for name in self.runs[0].final[self.split] if "/" in name]


def collect(folders: Iterable[Path]) -> list[Row]:
    """The runs in the folders, or in the folders inside of them, by config and changes to it."""
    paths = {path.resolve(): path for folder in folders for path in _run_folders(folder)}
    rows: dict[tuple[str, str, str], list[Finished]] = {}
    for path in paths.values():
        try:
            run = _finished(path)
        except InputError as error:
            if len(paths) == 1:
                raise
            print(f"left out: {error}", file=sys.stderr)
            continue
        settings = run.run.settings
        series = path.parent if path.name.startswith("seed-") else path
        key = (settings.name or series.name, _changes(settings), to_toml(replace(settings, seed=0)))
        rows.setdefault(key, []).append(run)
    published = _published()
    return [
        Row(name, changes, runs, published.get(name) if _comparable(changes) else None)
        for (name, changes, _), runs in sorted(rows.items(), key=lambda item: item[0])
    ]


def _comparable(changes: str) -> bool:
    """Whether the run is still the published one: precision and such may differ."""
    free = ("training.precision=", "training.checkpoint_minutes=", "training.tensorboard=")
    return all(change.startswith((*free, "data.folder=")) for change in changes.split())


def _run_folders(folder: Path) -> list[Path]:
    if holds_run(folder):
        return [folder]
    inside = [path for path in sorted(folder.glob("*")) if holds_run(path)]
    require(bool(inside), f"{folder}: is no run folder, and has none in it")
    return inside


def _finished(folder: Path) -> Finished:
    final = read_final(folder)
    if final is None:
        raise InputError(f"{folder}: the run has not come to its end; resume it first")
    environment = read_json(folder / "environment.json")
    return Finished(load_description(folder), read_metrics(folder)[:-1], final, environment)


def _changes(settings: RunSettings) -> str:
    if settings.name not in shipped_configs():
        return ""
    shipped = read_settings(settings.name, [])
    changed = differences(shipped, settings)
    return " ".join(f"{key}={new}" for key, (_, new) in changed.items() if key != "seed")


def _published() -> Mapping[str, Published]:
    text = files("probformer.training").joinpath("published.toml").read_text(encoding="utf-8")
    return {name: Published(**values) for name, values in tomllib.loads(text).items()}


def save_results(rows: Iterable[Row], path: Path) -> None:
    """A line of JSON a run: what remains when the run folders are gone."""
    lines = [
        {
            "config": row.name,
            "changes": row.changes,
            "seed": run.run.settings.seed,
            "figures": run.final,
            "epochs": len(run.epochs),
            "seconds": round(sum(line["seconds"] for line in run.epochs), 1),
            "sentences": sum(line.get("sentences", 0) for line in run.epochs),
            "parameters": row.parameters,
            "environment": run.environment,
        }
        for row in rows
        for run in sorted(row.runs, key=lambda run: run.run.settings.seed)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def print_report(
    folders: Iterable[Path], markdown: bool, curves: Path | None, save: Path | None
) -> None:
    rows = collect(folders)
    if save is not None:
        save_results(rows, save)
    for title, table in _tables(rows):
        if markdown:
            print(f"{title}\n\n" if title else "", _as_markdown(table), sep="")
        else:
            shown = Table(*table[0], title=title or None)
            for line in table[1:]:
                shown.add_row(*line)
            Console(width=None if sys.stdout.isatty() else 120).print(shown)
    if curves is not None:
        named = {f"{row.name} {row.changes}".strip(): row for row in rows}
        plot_curves(
            {name: (row.metric, [r.epochs for r in row.runs]) for name, row in named.items()},
            curves,
        )
        print(f"the curves are in {curves}")


def _tables(rows: list[Row]) -> Iterator[tuple[str, list[list[str]]]]:
    """A header and lines each: all rows, then the parts of those that have parts."""
    header = ["run", "figure", "ours", "published", "seeds", "parameters", "sentences/s", "time"]
    lines = [
        [
            row.title,
            f"{row.split} {row.metric}",
            row.figure(),
            str(row.published or ""),
            str(len(row.runs)),
            f"{row.parameters:,}",
            f"{row.speed:,.0f}" if row.speed else "",
            str(timedelta(seconds=round(row.seconds))),
        ]
        for row in rows
    ]
    yield "", [header, *lines]
    for row in rows:
        if cases := row.cases():
            parts = [[case.partition("/")[2], row.figure(case)] for case in cases]
            yield f"{row.title}, {row.split} by case", [["case", row.metric], *parts]


def _as_markdown(table: list[list[str]]) -> str:
    rule = ["---"] * len(table[0])
    return "".join(f"| {' | '.join(line)} |\n" for line in [table[0], rule, *table[1:]])
