"""`probformer describe`: tables on the terminal, JSON, or a page with plots."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from probformer.analysis.describing import Description, describe
from probformer.analysis.description_tables import NO_LABELS, TextTable, summary, tables
from probformer.config import FileData
from probformer.data.corpus import load_corpus
from probformer.data.readers import Format, SentenceFile
from probformer.data.sentence import Sentence
from probformer.errors import InputError, require
from probformer.training.files import write_text
from probformer.training.run_folder import Run, load_run
from probformer.viz.words import shown

_SHOWN_LABELS = 20
_FORMATS: dict[str, Format] = {".conllu": "conllu", ".mrg": "mrg", ".txt": "text"}
_MEANING_IN_MARKDOWN = re.compile(r"([\\`*_<>\[\]|~&#$])")


def describe_run(
    folder: Path,
    data: Path,
    split: str,
    file: Path | None = None,
    column: str | None = None,
    iteration: int = -1,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    if out is not None:
        _require_plots()  # before minutes are spent
    run = load_run(folder)
    run.model.to("cuda" if torch.cuda.is_available() else "cpu")
    sentences = _split(run, data, split) if file is None else _from_file(run, file)
    description = describe(run, sentences, column, iteration)
    title = (
        f"{folder.name or folder}: {split if file is None else file.name}, {summary(description)}"
    )
    if as_json:
        print(json.dumps(_rounded(asdict(description)), ensure_ascii=False))
    else:
        _print(title, description)
    if out is not None:
        page = write_page(title, description, out)
        print(f"the page is in {page}", file=sys.stderr if as_json else sys.stdout)


def _require_plots() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        package = "the package matplotlib: pip install 'probformer[plot]'"
        raise InputError(f"a page with plots needs {package}") from None


def _split(run: Run, data: Path, split: str) -> Iterable[Sentence]:
    splits = load_corpus(run.settings.data, data).splits
    require(split in splits, f"split must be one of {', '.join(splits)}, got {split!r}")
    return splits[split]


def _from_file(run: Run, file: Path) -> SentenceFile:
    """In the format of the run's own files if it is called like them, or in that of its name."""
    own = run.settings.data
    kind = _kind(file)
    if isinstance(own, FileData) and (kind == _kind(Path(own.train)) or kind not in _FORMATS):
        columns = own.columns.split() if own.format in ("columns", "tsv") else ()
        return SentenceFile(file, own.format, columns, own.skip_bad_lines, own.prepare)
    expected = f"expected one that ends in {', '.join(_FORMATS)}"
    require(kind in _FORMATS, f"{file}: the name says nothing about the format, {expected}")
    return SentenceFile(file, _FORMATS[kind])


def _kind(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _print(title: str, description: Description) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(Text(title))
    if description.labels is None:
        console.print(NO_LABELS)
    for table in tables(description, _SHOWN_LABELS):
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
    parts = [f"# What the model learnt\n\n{_escaped(title)}\n"]
    if description.labels is None:
        parts.append(f"{NO_LABELS}\n")
    for table in tables(description):
        plot = f"![{table.name}]({plots[table.name]})\n" if table.name in plots else ""
        parts += [f"## {table.name}\n", f"{_escaped(table.note)}\n", plot, _markdown(table)]
    page = folder / "description.md"
    write_text(page, "\n".join(filter(None, parts)))
    return page


def _markdown(table: TextTable) -> str:
    rule = ["---"] * len(table.header)
    lines = [map(_escaped, table.header), rule, *(map(_escaped, row) for row in table.rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _escaped(text: str) -> str:
    return _MEANING_IN_MARKDOWN.sub(r"\\\1", _shown(text)).replace("\n", "<br>")


def _shown(text: str) -> str:
    """Lines of a cell, without what would steer a terminal."""
    return "\n".join(map(shown, text.split("\n")))


def _rounded(value: Any) -> Any:
    """Six digits say it all."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [*map(_rounded, value)] if isinstance(value, list) else value
