"""What is released: a wheel that works where nothing else is, and the sources it is made of."""

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest
from packaging.metadata import Metadata

import probformer
from helpers.extras import EXTRAS, check_imports
from helpers.places import ROOT

pytestmark = pytest.mark.long

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
ENVIRONMENT["OMP_NUM_THREADS"] = "1"  # other tests may be at work beside these
RUNS = ("mlm-builtin-pt", "mlm-builtin-transformer", "tagging-builtin-pt", "parsing-builtin-pt")


def call(*command, cwd, status=0):
    """What a program printed."""
    line = [str(part) for part in command]
    done = subprocess.run(
        line, capture_output=True, text=True, cwd=cwd, check=False, env=ENVIRONMENT
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def environment(folder, *packages):
    """A new one with these packages; the program that runs in it."""
    call(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    python = folder / "bin/python"
    constraints = ROOT / "constraints.txt"
    call(python, "-m", "pip", "install", "--quiet", "-c", constraints, *packages, cwd=folder)
    return python


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the archive of sources."""
    folder = tmp_path_factory.mktemp("built")
    python = environment(folder / "builder", "hatchling")
    call(python, "-m", "hatchling", "build", "--directory", folder, cwd=ROOT)
    (wheel,) = folder.glob("probformer-*-py3-none-any.whl")
    (sources,) = folder.glob("probformer-*.tar.gz")
    return wheel, sources


@pytest.fixture(scope="module")
def empty(built, tmp_path_factory):
    """The program of an environment with the wheel and what it cannot do without."""
    return environment(tmp_path_factory.mktemp("installed") / "empty", built[0])


def files_under(folder, name):
    """All but what Python leaves behind, with names as in the wheel."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {f"{name}/{path.relative_to(folder).as_posix()}" for path in paths}


def test_the_wheel_has_the_package_the_configs_the_licence_and_nothing_else(built):
    names = set(zipfile.ZipFile(built[0]).namelist())
    about = f"probformer-{probformer.__version__}.dist-info"
    expected = files_under(ROOT / "src/probformer", "probformer")
    assert {"probformer/py.typed", "probformer/config/bundled/mlm-ptb-pt.toml"} <= expected
    assert "probformer/web/static/index.html" in expected
    facts = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    assert names == expected | {f"{about}/{name}" for name in facts}


def test_the_sources_make_the_same_wheel(built, tmp_path):
    wheel, sources = built
    with tarfile.open(sources) as archive:
        tops = {name.split("/")[1] for name in archive.getnames()}
    files = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert tops == files | {".gitignore", "src"}
    call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, sources, cwd="/")
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_what_the_wheel_says_of_itself(built):
    (name,) = [n for n in zipfile.ZipFile(built[0]).namelist() if n.endswith("/METADATA")]
    text = zipfile.ZipFile(built[0]).read(name)
    facts = Metadata.from_email(text, validate=True)  # raises where an index would refuse it
    assert str(facts.version) == probformer.__version__
    assert facts.license_expression == "MIT"
    assert facts.description_content_type == "text/markdown"
    assert facts.description.strip() == (ROOT / "README.md").read_text("utf-8").strip()
    assert 0 < len(facts.summary) <= 512
    assert set(email.message_from_bytes(text).get_all("Provides-Extra")) == {
        *("dev", "explore", "export", "hf", "plot", "track", "tune")
    }


def test_every_module_in_an_empty_environment(empty, tmp_path):
    installed = call(empty, "-m", "pip", "list", "--format", "freeze", cwd=tmp_path)
    names = {line.split("==")[0] for line in installed.splitlines()}
    assert not (set(EXTRAS.split()) - {"triton"}) & names
    # Triton comes with some builds of torch.
    check_imports(empty, "triton", cwd=tmp_path, env=ENVIRONMENT)


def test_commands_in_an_empty_environment(empty, tmp_path):
    def command(*words, status=0):
        return call(empty.parent / "probformer", *words, cwd=tmp_path, status=status)

    assert "quickstart" in command("--help")
    assert command("--version") == f"probformer {probformer.__version__}\n"
    small = ("--set", "data.size=64", "--set", "training.epochs=1")
    command("train", "tagging-builtin-pt", "--out", "run", *small)
    sentence = "they plan to visit her ."
    assert len(command("predict", "run", sentence).split()) >= 6
    assert "visit" in command("draw", "run", sentence)
    command("draw", "run", sentence, "--out", "arcs.svg")
    assert (tmp_path / "arcs.svg").read_text().startswith("<svg")
    assert "right chain" in command("parse", "run")
    assert "entropy" in command("describe", "run")
    assert "CC BY-SA 4.0" in command("data", "list")
    command("export", "run", "--torch")
    for words, extra in (
        (("explore", "run"), "explore"),
        (("export", "run", "--onnx"), "export"),
        (("tune", "mlm-builtin-pt", "--space", "mlm-builtin"), "tune"),
        (("describe", "run", "--out", "page"), "plot"),
        (("report", "run", "--curves", "x.svg"), "plot"),
        (("train", "mlm-builtin-pt", "--set", "training.tensorboard=true"), "track"),
    ):
        error = command(*words, status=2)
        assert re.fullmatch(rf"error: .* pip install 'probformer\[{extra}\]'\n", error), error


def test_the_quickstart_in_an_empty_environment(empty, tmp_path):
    """Smaller: a file in the working folder comes before the config of its name."""
    for name in RUNS:
        text = (ROOT / "src/probformer/config/bundled" / f"{name}.toml").read_text("utf-8")
        text, changed = re.subn(r"^(epochs|size) = \d+$", _smaller, text, flags=re.M)
        assert changed == 2
        (tmp_path / name).write_text(text, "utf-8")
    shown = call(empty.parent / "probformer", "quickstart", cwd=tmp_path)
    assert "masked perplexity, unigram" in shown
    assert {path.name for path in (tmp_path / "runs/quickstart").iterdir()} == set(RUNS)


def _smaller(found):
    return f"{found[1]} = {1 if found[1] == 'epochs' else 64}"
