"""The order of the house: imports point down only, and importing the package costs nothing."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import probformer
from probformer.old_paths import MOVED

SOURCE = Path(probformer.__file__).parent
TOP_DOWN = [
    "__main__",
    "cli",
    "web",
    "hf",
    "tuning",
    "export",
    "analysis",
    "training",
    "runs",
    "tasks",
    "data",
    "testing",
    "models",
    "potentials",
    "trees",
    "crf",
    "kernels",
    "packing",
    "viz",
    "config",
    "old_paths",
    "sentinels",
    "errors",
]


def imports_of(path: Path) -> set[str]:
    """The parts of probformer that a file imports, however it says so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return {name.split(".")[1] for name in found if name.startswith("probformer.")}


def test_imports_point_down():
    parts = {path.stem for path in SOURCE.glob("*.py")} | {
        p.parent.name for p in SOURCE.glob("*/*.py")
    }
    assert parts - {"__init__"} - {"probformer"} == set(TOP_DOWN), (
        "a part has no place in the house"
    )
    for path in SOURCE.rglob("*.py"):
        relative = path.relative_to(SOURCE)
        part = relative.parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for other in imports_of(path) - {part}:
            assert TOP_DOWN.index(other) > TOP_DOWN.index(part), f"{relative} imports {other}"


@pytest.mark.parametrize("old", MOVED)
def test_old_import_paths_give_the_same_modules(old):
    code = f"""
import {old} as old, {MOVED[old]} as new
assert old is new and new.__name__ == new.__spec__.name == {MOVED[old]!r}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_does_not_import_torch():
    code = """
import sys
import probformer
assert "torch" not in sys.modules
probformer.mean_field
assert "torch" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    for name in probformer.__all__:
        assert getattr(probformer, name).__name__ == name
    assert set(probformer.__all__) <= set(dir(probformer))


def test_the_readme_shows_the_house_in_this_order():
    readme = (SOURCE.parent.parent / "README.md").read_text(encoding="utf-8")
    plan = readme.split("src/probformer/\n")[1].split("```")[0]
    shown = [line.split()[0].rstrip("/").removesuffix(".py") for line in plan.splitlines()]
    assert shown == TOP_DOWN


def test_no_class_has_the_name_of_another():
    found = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(SOURCE)))
    assert not {name: paths for name, paths in found.items() if len(paths) > 1}


ENCODERS = {"Encoder", "Transformer", "EncoderSettings", "TransformerSettings"}


def test_kinds_of_encoder_are_told_apart_in_models_and_config_alone():
    """Elsewhere attributes and methods that all encoders have must do."""
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in ("models", "config"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {getattr(part, "id", "") for part in ast.walk(node.args[1])}
                assert not names & ENCODERS, f"{path}:{node.lineno}"


def test_no_file_is_long():
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
