"""`probformer describe`: tables on the terminal, JSON, or a page with plots."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from probformer.analysis.describe.description import Description, describe
from probformer.analysis.describe.page import check_page_folder, write_page
from probformer.analysis.describe.tables import NO_LABELS, escaped_lines, summary, tables
from probformer.analysis.input_text import check_source, read_text
from probformer.errors import require_packages
from probformer.runs.run_folder import load_run

_MAX_LABELS = 20


def describe_run(
    folder: Path,
    file: Path | None,
    data: Path,
    split: str | None = None,
    column: str | None = None,
    iteration: int = -1,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Describe a run by a file or, without one, by a split of its data, by default dev."""
    check_source(file, split)
    if out is not None:  # before inference takes minutes
        require_packages("a page with plots", "matplotlib", "probformer[plot]")
        check_page_folder(out)
    run = load_run(folder)
    run.model.to("cuda" if torch.cuda.is_available() else "cpu")
    split = split or "dev"
    description = describe(run, read_text(run, file, data, split), column, iteration)
    text = split if file is None else file.name
    title = f"{folder.name or folder}: {text}, {summary(description)}"
    # before printing, as a reader like `head` may close the pipe
    page = None if out is None else write_page(title, description, out)
    if as_json:
        print(json.dumps(_as_json(description), ensure_ascii=False))
    else:
        _print_tables(title, description)
    if page is not None:
        print(f"the page is in {page}", file=sys.stderr if as_json else sys.stdout)


def _as_json(description: Description) -> dict[str, Any]:
    """The keys of a transformer have "layer" for "iteration"."""
    return {
        key.replace("iteration", description.step): value
        for key, value in _rounded(asdict(description)).items()
        if key != "step"
    }


def _rounded(value: Any) -> Any:
    """Floats with six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [*map(_rounded, value)] if isinstance(value, list) else value


def _print_tables(title: str, description: Description) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(Text(title))
    if description.labels is None:
        console.print(NO_LABELS)
    for table in tables(description, _MAX_LABELS):
        if not table.rows:
            console.print(Text(f"{table.name}\n{table.note}"))
            continue
        # cells as Text, as Rich takes brackets in strings for markup
        lines = Table(*table.header, title=table.name, caption=table.note)
        lines.title_justify = lines.caption_justify = "left"
        for row in table.rows:
            lines.add_row(*(Text(escaped_lines(cell)) for cell in row))
        console.print(lines)
