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


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for targets in re.findall(r"`?make ([a-z][a-z -]*)", text):
            for target in targets.split():
                if re.fullmatch(r"[a-z-]+", target) and f"make {target}`" in text:
                    assert f"\n{target}:" in makefile, target


def test_links_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), target
