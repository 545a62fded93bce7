"""What a release is checked for, as far as it can be seen at once."""

import ast
import re
import subprocess
import sys
import tomllib
from itertools import chain

import pytest

import probformer
from helpers.places import ROOT


def test_the_changelog_begins_with_this_version_or_with_what_comes_next():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    first = re.findall(r"^## (\S+)", changelog, re.M)[0]
    assert first in ("Unreleased", probformer.__version__)
    assert re.fullmatch(r"\d+\.\d+\.\d+", probformer.__version__)


def test_the_metadata_invents_no_addresses():
    """Links on an index would last longer than a guess."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["readme"] == "README.md"
    assert project["license"] == "MIT"
    assert all(" :: " in name for name in project["classifiers"])
    for address in project.get("urls", {}).values():
        assert address in (ROOT / "CITATION.cff").read_text("utf-8")


def imported(path):
    """The packages that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_every_package_that_is_imported_is_asked_for():
    """By its name, but for what the packages of extras show of what they are made of."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    known = {*re.findall(r"([a-z]+)>=", " ".join(asked)), *sys.stdlib_module_names, "probformer"}
    known |= {"pydantic", "starlette", "sqlalchemy"}  # of fastapi, and of optuna
    for path in (ROOT / "src").rglob("*.py"):
        assert set(imported(path)) <= known, path


def test_the_script_can_be_run():
    script = ROOT / ".ci/release-check"
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.parametrize("name", ["lint", "test-all", "release-check"])
def test_make_knows_the_target(name):
    subprocess.run(["make", "--dry-run", name], cwd=ROOT, check=True, capture_output=True)
