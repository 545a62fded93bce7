"""The code in the documents runs, in the order in which it stands there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_python_blocks(name):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.S)
    assert blocks
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, name, "exec"), namespace)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.S))
    commands = re.findall(r"`make ([^`]+)`", text) + re.findall(r"^make ([^#\n]+)", shell, re.M)
    assert commands
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in " ".join(commands).split():
        target, variable, _ = word.partition("=")
        assert (f"$({target})" if variable else f"\n{target}:") in makefile, word


def test_links_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), target
