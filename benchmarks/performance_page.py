"""Writes docs/performance.md from the measurements in docs/performance/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

_LETTERS = {
    "n": "n, words in a sentence",
    "d": "d, labels (width)",
    "h": "h, channels",
    "gamma": "γ, distances told apart",
    "T": "T, iterations (layers)",
}
_TITLES = {"cuda": "GPU", "cpu": "CPU"}
REFERENCE = "Transformer"
PROFILED = 100
"""The number of batches whose stages are timed."""
_INTRODUCTION = """# Performance

Training steps (forward and backward of the encoder, dropout 0.15) and inference, at the sizes of
the paper's PTB language model: d 384, h 16, T 5, γ 3, rank 64; the Transformer has 5 layers, width
384, 8 heads of 256 and 2,048 in the feed-forward layer. All models of a table took turns in one
run; "/ Transformer" is the median of the ratios to the Transformer in its fastest mode. "Necessary
products" are the matrix products that `UV` cannot do without; "dense einsums" are the paper's
equations written down as they stand.

This page is written by the commands it names, from the numbers in `docs/performance/`.
"""


_EPOCH = (
    "## An epoch",
    "",
    "Masked language modelling on the Penn Treebank as `probformer train` does it, without the dev",
    "split: batches of 64, in chunks of 16, random order. The first one compiles kernels and",
    "captures CUDA graphs. The Transformer reads sentences end to end, by kernels of this library;",
    "padded, by PyTorch's.",
    "`python benchmarks/epoch.py --text ptb.train.txt --profile --docs docs`.",
    "",
)


def write_page(docs: Path) -> None:
    parts = [_INTRODUCTION]
    for device, title in _TITLES.items():
        path = docs / "performance" / f"{device}.json"
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            parts.append(_section(title, device, found, docs / "performance"))
    epoch = docs / "performance" / "epoch.json"
    if epoch.is_file():
        lines = epoch_lines(json.loads(epoch.read_text(encoding="utf-8")))
        parts.append("\n".join([*_EPOCH, *lines, ""]))
    notes = docs / "performance" / "notes.md"
    if notes.is_file():
        parts.append(notes.read_text(encoding="utf-8"))
    (docs / "performance.md").write_text("\n".join(parts), encoding="utf-8")


def _section(title: str, device: str, found: dict[str, Any], folder: Path) -> str:
    lines = [
        f"## {title}",
        "",
        f"{found['machine']}, torch {found['torch']}, {found['precision']}: `{found['command']}`.",
        "",
    ]
    for rows in _cases(found["cases"]):
        lines += [f"### {_heading(rows[0])}", "", *_table(rows), ""]
    picture = f"{device}-growth.svg"
    _plot(found["growth"], folder / picture)
    lines += [
        "### How a training step grows",
        "",
        f"![Milliseconds of a training step by n, d, h, γ and T](performance/{picture})",
        "",
    ]
    return "\n".join(lines)


def _cases(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of each table: those of the same shape and sizes."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        cases.setdefault(_heading(row), []).append(row)
    return list(cases.values())


def _heading(row: dict[str, Any]) -> str:
    sizes = row["sizes"]
    shape = f"{row['batch']} × {row['length']:,} words"
    return f"{shape}, d {sizes['d']}, h {sizes['h']}, T {sizes['T']}"


def _table(here: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| | mode | training, ms | / Transformer | peak MB | inference, ms | / Transformer |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for model, mode in dict.fromkeys((row["model"], row["mode"]) for row in here):
        both = {
            row["training"]: row for row in here if (row["model"], row["mode"]) == (model, mode)
        }
        cells = [_figures(both.get(True)), _megabytes(both.get(True)), _figures(both.get(False))]
        lines.append(f"| {model} | {mode} | {' | '.join(cells)} |")
    return lines


def _figures(row: dict[str, Any] | None) -> str:
    if row is None:
        return "– | –"
    return f"{row['milliseconds']:,.2f} | {row['times the Transformer']:.2f}"


def _megabytes(row: dict[str, Any] | None) -> str:
    return f"{row['megabytes']:,.0f}" if row and row["megabytes"] is not None else ""


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    """A column per letter: time above, memory below."""
    figure = Figure(figsize=(20, 7), layout="constrained")
    panels = figure.subplots(2, len(_LETTERS))
    models = list(dict.fromkeys(row["model"] for row in rows))
    units = {"milliseconds": "ms", "megabytes": "peak MB"}
    for column, (letter, label) in enumerate(_LETTERS.items()):
        for panel, (quantity, unit) in zip(panels[:, column], units.items(), strict=True):
            for number, model in enumerate(models):
                line = [row for row in rows if (row["letter"], row["model"]) == (letter, model)]
                panel.plot(
                    [row["value"] for row in line],
                    [row[quantity] for row in line],
                    marker="o",
                    color=f"C{number}",
                    linestyle="--" if "Transformer" in model else "-",
                    label=model,
                )
            panel.set(xlabel=label, ylabel=unit, ylim=(0, None))
    panels[0, 0].legend()
    with matplotlib.rc_context({"svg.hashsalt": "performance"}):  # the same numbers, the same file
        figure.savefig(path, format="svg", metadata={"Date": None})


def epoch_lines(found: dict[str, Any]) -> list[str]:
    """A table of epochs, and one of the stages of a step if those were measured."""
    sentences, rows = found["sentences"], found["rows"]
    seconds = {row["model"]: row["epoch"] for row in rows}
    reference = seconds[REFERENCE]
    lines = [
        f"An epoch of {sentences:,} sentences in {found['precision']}, on {found['machine']}.",
        "",
        f"| {'':19} | first epoch, s | epoch, s | sentences/s | / Transformer |",
        f"|{'-' * 21}|{'-' * 15}:|{'-' * 9}:|{'-' * 12}:|{'-' * 14}:|",
    ]
    for row in rows:
        speed = f"{sentences / row['epoch']:11,.0f} | {row['epoch'] / reference:13.2f}"
        times = f"{row['first epoch']:14.2f} | {row['epoch']:8.2f}"
        lines.append(f"| {row['model']:19} | {times} | {speed} |")
    if rows[0]["stages"] is None:
        return lines
    lines += [
        "",
        f"Milliseconds a step, each stage waited for; means of {PROFILED} batches.",
        "",
        f"| {'':19} | batch made | forward and backward | update |",
        f"|{'-' * 21}|{'-' * 11}:|{'-' * 21}:|{'-' * 7}:|",
    ]
    for row in rows:
        made, gradients, update = row["stages"]
        lines.append(f"| {row['model']:19} | {made:10.3f} | {gradients:20.3f} | {update:6.3f} |")
    return lines
