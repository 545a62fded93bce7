"""The code of docs/huggingface.md runs, in the order in which it stands there."""

import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="needs the package transformers")

PAGE = Path(__file__).parent.parent / "docs" / "huggingface.md"


@pytest.mark.filterwarnings("ignore:'pin_memory'")  # the Trainer's default, without a GPU
def test_python_blocks(hf_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    for name in set(re.findall(r"runs/quickstart/[\w-]+", text)):
        task, _, kind = name.removeprefix("runs/quickstart/").split("-")
        shutil.copytree(hf_run("ner" if task == "tagging" else task, kind), tmp_path / name)
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, PAGE.name, "exec"), namespace)
    assert len(namespace["tags"]) == 2
    assert (tmp_path / "mine" / "model.safetensors").is_file()
