"""A description as a page in Markdown, with plots beside it."""

from __future__ import annotations

import re
from pathlib import Path

from probformer.analysis.describe.description import Description
from probformer.analysis.describe.plots import FILES, draw
from probformer.analysis.describe.tables import NO_LABELS, TextTable, escaped_lines, tables
from probformer.errors import InputError
from probformer.runs.files import require_writable, write_text

_PAGE, _HEADING = "description.md", "# What the model learnt\n"
_MARKUP = re.compile(r"([\\`*_<>\[\]|~&#$])")


def check_page_folder(folder: Path) -> None:
    """An earlier page may be replaced; other files of the same names may not."""
    require_writable(folder, folder=True)
    page = folder / _PAGE
    if page.is_file() and page.read_bytes().startswith(_HEADING.encode()):
        return
    for path in (page, *(folder / name for name in FILES)):
        if path.exists():
            raise InputError(f"{path}: is not part of a description, and would be overwritten")


def write_page(title: str, description: Description, folder: Path) -> Path:
    """`description.md` with all labels that are used, and its plots."""
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
    return _MARKUP.sub(r"\\\1", escaped_lines(text)).replace("\n", "<br>")
