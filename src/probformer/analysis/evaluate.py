"""`probformer evaluate`: metrics, tables of scores, JSON, and a reliability diagram."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from rich.console import Console
from rich.table import Table
from rich.text import Text

from probformer.analysis.input_text import check_source, sentences_of
from probformer.data.breakdown import ScoreTable
from probformer.data.calibration import CalibrationBin, calibration_bins, calibration_error
from probformer.data.sentence import Sentence
from probformer.errors import require
from probformer.runs.figures import format_metric
from probformer.runs.files import require_writable
from probformer.runs.run_folder import Run, has_begun, load_run
from probformer.tasks.task import Counts
from probformer.training.evaluation import total_counts
from probformer.training.processes import join_processes
from probformer.training.progress import LineReporter, Reporter
from probformer.training.splits import check_lengths, check_metrics, encode_split
from probformer.viz import Picture, reliability_diagram
from probformer.viz.words import escaped

_SUFFIXES = (".svg", ".html")


def evaluate_run(
    folder: Path,
    file: Path | None,
    data: Path,
    split: str | None = None,
    plot: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print the metrics of a trained model, and the tables of its task.

    Args:
        folder: A run folder.
        file: Sentences with gold annotation. None: a split of the run's data.
        data: The folder of the data's files.
        split: "train", "dev", "test" (the default) or "gen".
        plot: Where to write a reliability diagram.
        as_json: Print one JSON object.

    Raises:
        InputError: The run has no trained model, its data has no such split, the sentences are not
            annotated, or the task has no reliability diagram.
    """
    check_source(file, split)
    if plot is not None:
        _check_plot(plot)
    run = load_run(folder)
    message = "holds a model without run.toml, so its data is not known"
    require(has_begun(folder), f"{folder}: {message}")
    got = f"got a run with task.kind {run.settings.task.kind!r}"
    drawn = plot is None or run.task.counts_confidences
    require(drawn, f"--plot shows how sure a parser is, {got}")
    name = str(file) if file else split or "test"
    sentences = sentences_of(run, file, data, name)
    accelerator = join_processes()
    reporter = LineReporter(to=sys.stderr if as_json else None)
    counts = _count(run, name, sentences, accelerator, reporter)
    if not accelerator.is_main_process:
        return
    metrics = run.task.metrics(counts)
    del metrics["score"]
    tables = run.task.details(counts)
    bins = calibration_bins(counts) if run.task.counts_confidences else []
    if plot is not None:  # before printing, as a reader like `head` may close the pipe
        title = f"{folder.name or folder}, {Path(name).name}: predicted heads"
        _diagram(bins, calibration_error(counts), title).save(plot)
    if as_json:
        print(json.dumps(_as_json(metrics, tables, bins), ensure_ascii=False))
    else:
        for metric, value in metrics.items():
            print(f"{metric} {format_metric(value)}")
        _print_tables(tables)
    if plot is not None:
        print(f"the diagram is in {plot}", file=sys.stderr if as_json else sys.stdout)


def _count(
    run: Run,
    name: str,
    sentences: Iterable[Sentence],
    accelerator: Accelerator,
    reporter: Reporter,
) -> Counts:
    task, model = run.task, run.model.to(accelerator.device)
    task.skips_bad_sentences = getattr(run.settings.data, "skip_bad_lines", False)
    reporter = reporter if accelerator.is_main_process else Reporter()
    encoded = encode_split(name, sentences, task, reporter)
    check_lengths(run.settings, {name: encoded})
    check_metrics(task, {name: encoded})
    return total_counts(model, task, task.count_details, encoded, accelerator)


def _check_plot(path: Path) -> None:
    allowed = " or ".join(_SUFFIXES)
    require(path.suffix.lower() in _SUFFIXES, f"{path}: the suffix of a plot must be {allowed}")
    require_writable(path)


def _diagram(bins: Sequence[CalibrationBin], error: float, title: str) -> Picture:
    counts, confidences, right = zip(*((x.count, x.confidence, x.right) for x in bins), strict=True)
    return reliability_diagram(counts, confidences, right, error, title)


def _as_json(
    metrics: Mapping[str, float], tables: Sequence[ScoreTable], bins: Sequence[CalibrationBin]
) -> dict[str, Any]:
    """All shares as fractions."""
    found = {"metrics": metrics} | {table.name: table.rows for table in tables}
    return found | ({"calibration": [*map(asdict, bins)]} if bins else {})


def _print_tables(tables: Sequence[ScoreTable]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    for table in tables:
        if not table.rows:
            continue
        has_shares = any(isinstance(cell, float) for row in table.rows for cell in row.values())
        console.print(Text(f"\n{table.title}{', %' if has_shares else ''}"))
        lines = Table()
        for column, cell in table.rows[0].items():
            lines.add_column(column, justify="left" if isinstance(cell, str) else "right")
        for row in table.rows:
            lines.add_row(*map(_cell, row.values()))
        console.print(lines)


def _cell(value: str | int | float | None) -> Text:  # as Text: Rich takes brackets for markup
    match value:
        case None:
            return Text("–")
        case str():
            return Text(escaped(value))
        case int():
            return Text(f"{value:,}")
    return Text(f"{100 * value:.1f}")
