"""Without the extras, all that does not need them works, and the rest says what it needs.

`tests/project/test_wheel.py` asks the same where they are really not installed.
"""

import re
import subprocess
import sys
import tomllib

import pytest

from helpers.extras import EXTRAS, check_imports
from helpers.places import ROOT
from probformer.errors import InputError, MissingPackage, require_packages


def test_every_module_without_extras():
    check_imports(sys.executable, *EXTRAS.split(), "pydantic", "starlette")


def test_these_are_all_the_extras():
    """But for what only development needs, and Triton, which comes with torch where it works."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = " ".join(need for extra in extras.keys() - {"dev"} for need in extras[extra])
    assert set(re.findall(r"([a-z]+)>=", named)) | {"triton"} == set(EXTRAS.split())


def test_a_missing_package_is_both_an_import_error_and_one_for_users():
    with pytest.raises(ImportError, match=r"^it needs the packages json and no_such: pip"):
        require_packages("it", "json no_such", "x")
    assert issubclass(MissingPackage, InputError)
    require_packages("it", "json re", "x")


@pytest.mark.parametrize("start", ["import probformer", "from probformer import cli"])
def test_starting_imports_nothing_heavy(start):
    code = f"""
import sys
{start}
heavy = {{"torch", "numpy", "accelerate", "tokenizers", "safetensors"}} | set({EXTRAS.split()})
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
