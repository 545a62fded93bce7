"""The documents keep to their own rules; `test_blocks.py` runs all of their code."""

import re
from pathlib import Path

import pytest

from helpers.blocks import (
    REASONS,
    ROOT,
    RUN,
    SHOWN,
    Block,
    blocks_of,
    pages,
    run_page,
    run_python,
    to_run,
)
from probformer.data.formats import format

PAGE = """# Title
```python
x = 1
```
<!-- not run: needs a GPU -->
```sh
probformer … --out x
```

1. In a list:

   ~~~~sh title="a file"
   cat <<END
     ```python
   END
   ~~~~

<!-- not run: needs network -->

```text
a
```
"""


def test_blocks_are_found():
    assert blocks_of(PAGE) == [
        Block("python", 3, "x = 1\n", None),
        Block("sh", 7, "probformer … --out x\n", "needs a GPU"),
        Block("sh", 13, "cat <<END\n  ```python\nEND\n", None),
        Block("text", 21, "a\n", None),
    ]


@pytest.mark.parametrize(
    ("language", "code", "printed"),
    [
        ("sh", "echo here\nfalse\ntouch after", "here"),
        ("python", "assert x == 2", "line 6, in <mod"),
    ],
)
def test_a_block_that_fails_is_named(tmp_path, monkeypatch, capfd, language, code, printed):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        f"```python\nx = 1\n```\n\n```{language}\n{code}\n```\n\n```sh\ntouch after\n```\n"
    )
    with pytest.raises(SystemExit, match=r"page\.md:6 failed"):
        run_page(page)
    captured = capfd.readouterr()
    assert printed in captured.out + captured.err
    assert not Path("after").exists()


def wrong_with(text: str) -> list[str]:
    """What would keep code from being run, or cannot be run by a reader as it stands."""
    blocks = blocks_of(text)
    marked = [block for block in blocks if block.reason is not None]
    wrong = []
    if len(re.findall(r"^ *<!-- not run", text, re.M)) != len(marked):
        wrong.append("a marker is not directly before a block")
    for block in blocks:
        runs = block.language in RUN and block.reason is None
        if block.language not in RUN | SHOWN:
            wrong.append(f"{block.line}: a block of {block.language!r} is not run")
        if block.reason is not None and block.reason not in REASONS:
            wrong.append(f"{block.line}: {block.reason!r} is no reason")
        if block.reason is not None and block.language not in RUN:
            wrong.append(f"{block.line}: is not run anyway")
        if runs and "…" in block.code:
            wrong.append(f"{block.line}: … cannot be run")
    return wrong


@pytest.mark.parametrize("page", pages(), ids=str)
def test_markers_and_languages(page):
    assert wrong_with((ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "<!-- not run: needs network -->\n\n```sh\nx\n```",
        "<!-- not run: is slow -->\n```sh\nx\n```",
        "<!-- not run: needs network -->\n```text\nx\n```",
        "```bash\nx\n```",
        "```\nx\n```",
        "```sh\nprobformer draw … --kind heat\n```",
    ],
)
def test_what_breaks_the_rules_is_seen(text):
    assert len(wrong_with(text)) == 1


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/paper.md"])
def test_python_that_needs_no_trained_model(name, monkeypatch):
    """Here, unlike in `test_blocks.py`, warnings are errors."""
    monkeypatch.setattr(format, "_FORMATS", dict(format._FORMATS))  # a page registers one
    page, namespace = Path(name), {}
    blocks = [b for b in to_run(page) if b.language == "python" and "runs/" not in b.code]
    assert blocks
    for block in blocks:
        run_python(block, page, namespace)


@pytest.mark.parametrize("page", pages(), ids=str)
def test_make_targets_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    shell = "".join(block.code for block in blocks_of(text) if block.language == "sh")
    commands = re.findall(r"`make ([^`]+)`", text) + re.findall(r"^make ([^#\n]+)", shell, re.M)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in " ".join(commands).split():
        target, variable, _ = word.partition("=")
        assert (f"$({target})" if variable else f"\n{target}:") in makefile, word


@pytest.mark.parametrize("page", pages(), ids=str)
def test_links_lead_somewhere(page):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", (ROOT / page).read_text(encoding="utf-8")):
        assert (folder / target).exists(), target
