"""The wheel, installed where nothing else is, works."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.long
def test_the_wheel_works_in_an_empty_environment(tmp_path):
    def run(*command):
        subprocess.run([str(part) for part in command], check=True, cwd=tmp_path)

    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("probformer-*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "probformer/py.typed" in names
    for source in (ROOT / "src/probformer").rglob("*.py"):
        assert source.relative_to(ROOT / "src").as_posix() in names
    for built in (ROOT / "src/probformer/web/static").rglob("*.*"):
        assert built.relative_to(ROOT / "src").as_posix() in names

    run(sys.executable, "-m", "venv", tmp_path / "empty")
    python = tmp_path / "empty/bin/python"
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    run(python, "-c", "import torch, probformer; print(probformer.Encoder(9).count_parameters())")
