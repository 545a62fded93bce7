"""The code of the documents: where it stands, and how a page's blocks are run.

`python blocks.py PAGE` runs those of a page in the working directory, in the order of the page.
Python blocks share a namespace, each shell block has a `bash -e` of its own.
"""

import re
import subprocess
import sys
import textwrap
import traceback
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]  # run as a script, this file cannot import `helpers.places`
RUN = {"python", "sh"}
SHOWN = {"http", "json", "text", "toml"}  # not meant to be run; any other name is a mistake
REASONS = {
    "needs network",
    "needs a GPU",
    "needs several nodes",
    "needs data of yours",
    "serves until it is stopped",
    "is what runs the tests",
}


@dataclass(frozen=True)
class Block:
    language: str
    line: int  # of its first line of code, from 1
    code: str
    reason: str | None  # why it is not run


def pages() -> list[Path]:
    """README, CONTRIBUTING and all of docs, from the root of the repository."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page.relative_to(ROOT) for page in found]


def blocks_of(text: str) -> list[Block]:
    """All fenced blocks, also those that are indented, as in a list."""
    found = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        fence = re.fullmatch(r" *(`{3,}|~{3,}) *([^`~ ]*)[^`]*", lines[at])
        at += 1
        if fence:
            marks, language = fence.groups()
            marker = re.fullmatch(r" *<!-- not run: (.*) -->", lines[at - 2]) if at > 1 else None
            rest = [line.strip() for line in lines[at:]]
            end = at + (rest.index(marks) if marks in rest else len(rest))
            code = textwrap.dedent("\n".join(lines[at:end])) + "\n"
            found.append(Block(language, at + 1, code, marker[1] if marker else None))
            at = end + 1
    return found


def to_run(page: Path) -> list[Block]:
    found = blocks_of((ROOT / page).read_text(encoding="utf-8"))
    return [block for block in found if block.language in RUN and block.reason is None]


def run_python(block: Block, page: Path, namespace: dict) -> None:
    """With the line numbers of the page in tracebacks."""
    code = "\n" * (block.line - 1) + block.code
    exec(compile(code, str(ROOT / page), "exec"), namespace)


def run_page(page: Path) -> None:
    namespace: dict = {"__name__": "__main__"}
    for block in to_run(page):
        print(f"--- {page}:{block.line} ({block.language})", flush=True)
        try:
            if block.language == "sh":
                subprocess.run(["bash", "-e", "-c", block.code], check=True)
            else:
                run_python(block, page, namespace)
        except (Exception, SystemExit) as error:
            if not isinstance(error, subprocess.CalledProcessError):
                traceback.print_exc()
            sys.exit(f"the block at {page}:{block.line} failed")


if __name__ == "__main__":
    sys.path[0] = ""  # as in a session of Python, where the working directory is first
    run_page(Path(sys.argv[1]))
