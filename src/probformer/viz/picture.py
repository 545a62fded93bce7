"""The base class of pictures: their forms, saving, and display in Jupyter."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from probformer.errors import InputError, require
from probformer.viz.svg import markup

FILE_WIDTH = 100
"""Width of a text file, in characters."""

SUFFIXES = {".svg": "svg", ".html": "html", ".tex": "tikz", ".txt": "text"}
"""Suffixes of files, and the method whose text they hold."""

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
    """A picture in several forms: `svg`, `html`, `tikz`, `text`; `save` picks one by the suffix."""

    title: str
    kind: ClassVar[str] = "picture"

    def svg(self) -> str:
        raise NotImplementedError

    def html(self) -> str:
        """A page that loads no other resource."""
        return _PAGE.format(title=markup(self.title), body=self.html_body())

    def html_body(self) -> str:
        return f'<div class="scroll">{self.svg()}</div>'

    def tikz(self) -> str:
        """A file to \\input into a LaTeX document; its first lines name the packages it needs."""
        raise InputError(f"a {self.kind} has no form in TikZ: save it as .svg or .html")

    def text(self, width: int = FILE_WIDTH) -> str:
        """Text for a terminal.

        Args:
            width: The number of columns of the terminal.
        """
        raise InputError(f"a {self.kind} has no form as text: save it as .svg or .html")

    def save(self, path: str | Path) -> None:
        """Write a file; missing folders are created.

        Args:
            path: Its suffix chooses the form: .svg, .html, .tex or .txt.

        Raises:
            InputError: The suffix is unknown, or the picture does not have this form.
        """
        path = Path(path)
        check_suffix(path)
        content = getattr(self, SUFFIXES[path.suffix.lower()])()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg()}</div>'
