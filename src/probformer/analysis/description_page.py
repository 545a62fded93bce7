"""`probformer describe`: tables on the terminal, JSON, or a page with plots."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from probformer.analysis.describing import Description, describe
from probformer.analysis.description_tables import NO_LABELS, TextTable, summary, tables
from probformer.analysis.texts import check_source, read_text
from probformer.errors import InputError, require_packages
from probformer.runs.files import require_writable, write_text
from probformer.runs.run_folder import load_run
from probformer.viz.words import shown

_SHOWN_LABELS = 20
_PAGE, _HEADING = "description.md", "# What the model learnt\n"
_MEANING_IN_MARKDOWN = re.compile(r"([\\`*_<>\[\]|~&#$])")


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
    """Without a file, the text is a split of the run's data, by default dev."""
    check_source(file, split)
    if out is not None:  # before minutes are spent
        require_packages("a page with plots", "matplotlib", "probformer[plot]")
        _check_page_folder(out)
    run = load_run(folder)
    run.model.to("cuda" if torch.cuda.is_available() else "cpu")
    split = split or "dev"
    description = describe(run, read_text(run, file, data, split), column, iteration)
    title = (
        f"{folder.name or folder}: {split if file is None else file.name}, {summary(description)}"
    )
    # Before anything is printed to somebody who may not read to the end.
    page = None if out is None else write_page(title, description, out)
    if as_json:
        print(json.dumps(_as_json(description), ensure_ascii=False))
    else:
        _print(title, description)
    if page is not None:
        print(f"the page is in {page}", file=sys.stderr if as_json else sys.stdout)


def _check_page_folder(folder: Path) -> None:
    """An earlier page is replaced; files of the same names that belong to none are kept."""
    from probformer.analysis.description_plots import FILES

    require_writable(folder, folder=True)
    page = folder / _PAGE
    if page.is_file() and page.read_bytes().startswith(_HEADING.encode()):
        return
    for path in (page, *(folder / name for name in FILES)):
        if path.exists():
            raise InputError(f"{path}: is not part of a description, and would be overwritten")


def _print(title: str, description: Description) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(Text(title))
    if description.labels is None:
        console.print(NO_LABELS)
    for table in tables(description, _SHOWN_LABELS):
        if not table.rows:
            console.print(Text(f"{table.name}\n{table.note}"))
            continue
        # As Text: brackets in words are no markup.
        lines = Table(*table.header, title=table.name, caption=table.note)
        lines.title_justify = lines.caption_justify = "left"
        for row in table.rows:
            lines.add_row(*(Text(_shown(cell)) for cell in row))
        console.print(lines)


def write_page(title: str, description: Description, folder: Path) -> Path:
    """`description.md` with all labels that are used, and its plots beside it."""
    from probformer.analysis.description_plots import draw

    folder.mkdir(parents=True, exist_ok=True)
    plots = draw(description, folder)
    parts = [f"{_HEADING}\n{_escaped(title)}\n"]
    if description.labels is None:
        parts.append(f"{NO_LABELS}\n")
    for table in tables(description):
        plot = f"![{table.name}]({plots[table.name]})\n" if table.name in plots else ""
        parts += [f"## {table.name}\n", f"{_escaped(table.note)}\n", plot, _markdown(table)]
    page = folder / _PAGE
    write_text(page, "\n".join(filter(None, parts)))
    return page


def _markdown(table: TextTable) -> str:
    if not table.rows:
        return ""
    rule = ["---"] * len(table.header)
    lines = [map(_escaped, table.header), rule, *(map(_escaped, row) for row in table.rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _escaped(text: str) -> str:
    return _MEANING_IN_MARKDOWN.sub(r"\\\1", _shown(text)).replace("\n", "<br>")


def _shown(text: str) -> str:
    """Lines of a cell, without what would steer a terminal."""
    return "\n".join(map(shown, text.split("\n")))


def _as_json(description: Description) -> dict[str, Any]:
    """Of a transformer, what is counted is called by its name: "layer" and "layers"."""
    return {
        key.replace("iteration", description.step): value
        for key, value in _rounded(asdict(description)).items()
        if key != "step"
    }


def _rounded(value: Any) -> Any:
    """Six digits say it all."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [*map(_rounded, value)] if isinstance(value, list) else value
