"""The notebooks run from top to bottom, and are kept without what running leaves behind."""

import os
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from helpers.places import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PICTURES = {"1-inference": 8, "2-training": 4, "3-hugging-face": 1}


def test_these_are_all_notebooks():
    assert {path.stem for path in NOTEBOOKS} == set(PICTURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_of_a_run_is_kept(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.language_info == {"name": "python"}
    for cell in notebook.cells:
        assert not cell.metadata
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_runs_and_shows_pictures(path, tmp_path, monkeypatch):
    """In this environment's Python, with the sources that are tested, and offline."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # other tests may be at work beside it
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(path, as_version=4)
    asked = nbformat.v4.new_code_cell("import sys\nprint(sys.executable)")
    notebook.cells.append(asked)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}})
    client.execute()
    assert asked.outputs[0].text.strip() == sys.executable
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    pages = [out.data.get("text/html", "") for out in outputs if "data" in out]
    assert sum("<svg" in page for page in pages) == PICTURES[path.stem]
