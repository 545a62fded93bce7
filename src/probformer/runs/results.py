"""`probformer report`: results of finished runs, averaged over seeds, beside the published ones.

A row of the report is a config with its changed settings; the runs of a row differ in their seed.
"""

from __future__ import annotations

import json
import shlex
import statistics
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from probformer.config import RunSettings, from_dict, to_dict
from probformer.config.lookup import read_settings, shipped_configs
from probformer.config.reading import changes_between
from probformer.data.readers import lines_of
from probformer.errors import InputError, counted, require
from probformer.runs.files import read_json
from probformer.runs.plots import plot_curves
from probformer.runs.run_folder import (
    has_begun,
    load_description,
    read_final,
    read_metrics,
)

_SHARES = {"accuracy", "f1", "strict f1", "voted f1", "exact match", "clas", "ece"}
_SHARES |= {"uas", "uas_nopunct", "las", "las_nopunct", "las_subtypes", "upos", "xpos"}
"""Metrics between 0 and 1, which are shown in per cent."""


@dataclass(frozen=True)
class Result:
    """A finished run. A results file has a line for each, without the curve."""

    config: str
    changes: str
    seed: int
    metric: str
    figures: dict[str, dict[str, float]]
    """Metrics by split."""
    epochs: int
    seconds: float
    sentences: int
    """Number of sentences in training, over all epochs."""
    parameters: int
    """Parameters of the encoder."""
    environment: dict[str, Any]
    settings: dict[str, Any]
    """All settings but the seed."""
    curve: list[dict[str, Any]] = field(default_factory=list)
    """The lines of metrics.jsonl, one for each epoch."""

    @classmethod
    def of_run(cls, folder: Path) -> Result:
        final = read_final(folder)
        if final is None:
            raise InputError(f"{folder}: the run is not finished; resume it first")
        run, curve = load_description(folder), read_metrics(folder)[:-1]
        series = folder.parent if folder.name.startswith("seed-") else folder
        settings = to_dict(run.settings)
        return cls(
            config=run.settings.name or series.name,
            changes=_changes(run.settings),
            seed=settings.pop("seed"),
            metric=run.task.metric,
            figures=final,
            epochs=len(curve),
            seconds=round(sum(line["seconds"] for line in curve), 3),
            sentences=sum(line.get("sentences", 0) for line in curve),
            parameters=run.model.encoder.count_parameters(),
            environment=read_json(folder / "environment.json"),
            settings=settings,
            curve=curve,
        )

    @property
    def init(self) -> str | None:
        """The run whose encoder this one started from."""
        return self.environment.get("init")

    @property
    def data(self) -> str:
        """The digests of its splits as text; empty for older runs, which did not record them."""
        found = self.environment.get("data")
        return json.dumps(found, sort_keys=True) if found else ""

    def to_json(self) -> str:
        return json.dumps({k: v for k, v in vars(self).items() if k != "curve"})


@dataclass(frozen=True)
class Published:
    mean: float
    deviation: float
    source: str = "paper"

    def __str__(self) -> str:
        source = "" if self.source == "paper" else " (authors' code)"
        return f"{self.mean:.2f} ± {self.deviation:.2f}{source}"


@dataclass(frozen=True)
class ReportRow:
    """The runs of one config with the same changed settings."""

    runs: list[Result]
    published: Published | None

    @property
    def title(self) -> str:
        first = self.runs[0]
        init = f"--init {first.init}" if first.init else ""
        return " ".join(filter(None, (first.config, first.changes, init)))

    @property
    def split(self) -> str:
        """The split of the main result: "gen" if there is one, else "test"."""
        return "gen" if "gen" in self.runs[0].figures else "test"

    @property
    def metric(self) -> str:
        return self.runs[0].metric

    @property
    def seconds(self) -> float:
        """Mean training time."""
        return statistics.mean(run.seconds for run in self.runs)

    @property
    def speed(self) -> float:
        """Sentences per second in training."""
        seconds = sum(run.seconds for run in self.runs)
        return sum(run.sentences for run in self.runs) / seconds if seconds else 0.0

    @property
    def command(self) -> str:
        first, seeds = self.runs[0], [run.seed for run in self.runs]
        several = f"{seeds[0]}..{seeds[-1]}"
        listed = several if len(seeds) == seeds[-1] - seeds[0] + 1 else ",".join(map(str, seeds))
        changes = "".join(f" --set {shlex.quote(c)}" for c in shlex.split(first.changes))
        changes += f" --init {first.init}" if first.init else ""
        return f"probformer train {first.config} --data corpora --seeds {listed}{changes}"

    @property
    def machine(self) -> str:
        return "; ".join(sorted({_machine(run.environment) for run in self.runs}))

    def figure(self, metric: str | None = None, split: str | None = None) -> str:
        """Mean ± standard deviation over seeds; shares in per cent."""
        metric, split = metric or self.metric, split or self.split
        factor = 100 if metric.partition("/")[0] in _SHARES else 1
        values = [factor * run.figures[split][metric] for run in self.runs]
        spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
        return f"{statistics.mean(values):.2f}{spread}"

    def cases(self) -> list[str]:
        """The names of metrics for a part of the split, such as a case of COGS."""
        return [name for name in self.runs[0].figures[self.split] if "/" in name]


def _machine(environment: Mapping[str, Any]) -> str:
    device = environment["device"]
    if device == "cpu":
        threads = counted(environment["threads"], "thread")
        device = f"{threads} of a CPU ({environment['machine']})"
    return f"{device}, torch {environment['torch']}"


def collect(paths: Iterable[Path]) -> list[ReportRow]:
    """The results of run folders, of folders of run folders, and of results files.

    The runs of a row have the same config, changed settings and data. Older runs, which did not
    record digests of their data, are added to a row with the same settings.
    """
    rows: dict[tuple[str, str, str, str, str], dict[str, Result]] = {}
    for run in sorted(_results(paths), key=lambda run: not run.data):
        line = run.to_json()  # equal for a run that is given twice
        key = run.config, run.changes, run.init or "", json.dumps(run.settings)
        known = (other for other in rows if other[:4] == key)
        data = run.data or next((other[4] for other in known), "")
        rows.setdefault((*key, data), {})[line] = run
    return [
        ReportRow(
            sorted(runs.values(), key=lambda run: run.seed),
            _published_for(config) if _comparable(changes) and not init else None,
        )
        for (config, changes, init, *_), runs in sorted(rows.items(), key=lambda item: item[0])
    ]


def _results(paths: Iterable[Path]) -> list[Result]:
    paths = list(paths)
    kept = [run for path in paths if path.suffix == ".jsonl" for run in load_results(path)]
    folders = [f for path in paths if path.suffix != ".jsonl" for f in _run_folders(path)]
    for folder in folders:
        try:
            kept.append(Result.of_run(folder))
        except InputError as error:
            if len(folders) == len(paths) == 1:
                raise
            print(f"left out: {error}", file=sys.stderr)
    return kept


def _comparable(changes: str) -> bool:
    """Whether a run with these changes is comparable with the published result of its config."""
    free = ("training.precision=", "training.checkpoint_minutes=", "training.tensorboard=")
    return all(change.startswith((*free, "data.folder=")) for change in shlex.split(changes))


def _run_folders(folder: Path) -> list[Path]:
    if has_begun(folder):
        return [folder]
    inside = [path for path in sorted(folder.glob("*")) if has_begun(path)]
    require(bool(inside), f"{folder}: is not a run folder and contains none")
    return inside


def _changes(settings: RunSettings) -> str:
    if settings.name not in shipped_configs():
        return ""
    shipped = replace(read_settings(settings.name, []), seed=settings.seed)
    return shlex.join(changes_between(shipped, settings))


def _published_for(config: str) -> Published | None:
    """The published result; for a config "…-best", the better of the two models'."""
    published, (name, _, model) = _published(), config.rpartition("-")
    if model != "best":
        return published.get(config)
    strongest = min if name.startswith("mlm") else max
    both = (published.get(f"{name}-pt"), published.get(f"{name}-transformer"))
    known = [figure for figure in both if figure is not None]
    return strongest(known, key=lambda figure: figure.mean, default=None)


def _published() -> Mapping[str, Published]:
    text = files("probformer.runs").joinpath("published.toml").read_text(encoding="utf-8")
    return {name: Published(**values) for name, values in tomllib.loads(text).items()}


def save_results(rows: Iterable[ReportRow], path: Path) -> None:
    """Write a line of JSON for each run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{run.to_json()}\n" for row in rows for run in row.runs)
    path.write_text("".join(lines), encoding="utf-8")


def load_results(path: Path) -> list[Result]:
    results = []
    for number, line in enumerate(lines_of(path), 1):
        try:
            result = Result(**json.loads(line))
            # The file may lack settings that are newer, and the config may have changed since: so
            # settings and changes are computed anew.
            given = from_dict(RunSettings, result.settings)
            settings = to_dict(given)
            del settings["seed"]
            results.append(replace(result, changes=_changes(given), settings=settings))
        except (TypeError, ValueError) as error:
            where = f"{path}, line {number}"
            raise InputError(f"{where}: is not a result of `report --save`: {error}") from None
    return results


def print_report(
    paths: Iterable[Path], markdown: bool, curves: Path | None, save: Path | None
) -> None:
    """Print the results of runs.

    Args:
        paths: Run folders, folders of run folders, and results files.
        markdown: Whether tables are in Markdown.
        curves: An SVG file for learning curves.
        save: A results file to write.
    """
    rows = collect(paths)
    if save is not None:
        save_results(rows, save)
    for title, table in _tables(rows):
        if markdown:
            print(f"### {title}\n\n" if title else "", _as_markdown(table), sep="")
        else:
            rich_table = Table(*table[0], title=title or None)
            for column in rich_table.columns:
                column.overflow = "fold"  # names are never cut
            for line in table[1:]:
                rich_table.add_row(*line)
            Console(width=None if sys.stdout.isatty() else 120).print(rich_table)
    if markdown:
        how = [[row.title, f"`{row.command}`", row.machine] for row in rows]
        print("### How\n\n", _as_markdown([["run", "command", "machine"], *how]), sep="")
    if curves is not None:
        named = {row.title: (row.metric, [run.curve for run in row.runs]) for row in rows}
        require(
            all(all(lines) for _, lines in named.values()),
            "--curves needs run folders: files of --save have no curves",
        )
        plot_curves(named, curves)
        print(f"the curves are in {curves}")


def _tables(rows: list[ReportRow]) -> Iterator[tuple[str, list[list[str]]]]:
    """Titles and tables: one of all rows without its empty columns, then one for each set of cases.

    A table is a header and its lines.
    """
    header = ["run", "figure", "ours", "published", "dev", "seeds", "parameters"]
    header += ["sentences/s", "time"]
    lines = [
        [
            row.title,
            f"{row.split} {row.metric}",
            row.figure(),
            str(row.published or ""),
            row.figure(split="dev"),
            str(len(row.runs)),
            f"{row.runs[0].parameters:,}",
            f"{row.speed:,.0f}" if row.speed else "",
            str(timedelta(seconds=round(row.seconds))),
        ]
        for row in rows
    ]
    filled = [at for at in range(len(header)) if any(line[at] for line in lines)]
    yield "", [[line[at] for at in filled] for line in [header, *lines]]
    alike: dict[tuple[str, ...], list[ReportRow]] = {}
    for row in rows:
        if cases := row.cases():
            alike.setdefault((row.split, row.metric, *cases), []).append(row)
    for (split, metric, *cases), several in alike.items():
        parts = [[c.partition("/")[2], *(row.figure(c) for row in several)] for c in cases]
        header = ["case", *(row.title for row in several)]
        yield f"{split} {metric} by case", [header, *parts]


def _as_markdown(table: list[list[str]]) -> str:
    rule = ["---"] * len(table[0])
    return "".join(f"| {' | '.join(line)} |\n" for line in [table[0], rule, *table[1:]])
