"""What all pictures can do: be written down in several forms, saved, and shown in Jupyter."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from probformer.errors import InputError, require
from probformer.viz.svg import escaped

FILE_WIDTH = 100
"""Columns of a text file."""

SUFFIXES = {".svg": "svg", ".html": "html", ".tex": "tikz", ".txt": "text"}
"""Of files, and which form of a picture they hold."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 1.5rem; background: Canvas; color: CanvasText;
  font-family: Helvetica, Arial, sans-serif; }}
.scroll {{ overflow-x: auto; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def check_suffix(path: Path) -> None:
    known = ", ".join(SUFFIXES)
    require(path.suffix.lower() in SUFFIXES, f"{path}: the suffix must be one of {known}")


class Picture:
    """Call `svg`, `html`, `tikz` or `text`, or `save` by the suffix of a file."""

    title: str
    kind: ClassVar[str] = "picture"

    def svg(self) -> str:
        raise NotImplementedError

    def html(self) -> str:
        """A page that asks for nothing from anywhere."""
        return _PAGE.format(title=escaped(self.title), body=self.html_body())

    def html_body(self) -> str:
        return f'<div class="scroll">{self.svg()}</div>'

    def tikz(self) -> str:
        """To be \\input into a document; its first lines say what that needs."""
        raise InputError(f"a {self.kind} has no form in TikZ: save it as .svg or .html")

    def text(self, width: int = FILE_WIDTH) -> str:
        """For a terminal of so many columns."""
        raise InputError(f"a {self.kind} has no form as text: save it as .svg or .html")

    def save(self, path: str | Path) -> None:
        path = Path(path)
        check_suffix(path)
        content = getattr(self, SUFFIXES[path.suffix.lower()])()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg()}</div>'
