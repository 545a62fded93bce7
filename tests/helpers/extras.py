"""The optional packages, and which modules can be imported without them."""

import json
import subprocess

from helpers.places import ROOT

MINIMAL = ROOT / "tests/helpers/minimal.py"
EXTRAS = "fastapi matplotlib onnx onnxruntime onnxscript optuna tensorboard transformers triton "
EXTRAS += "uvicorn"
NEEDS = {  # the subpackages that need optional packages, and their message without these
    "hf": "probformer.hf needs the package transformers: pip install 'probformer[hf]'",
    "kernels": "probformer.kernels needs the package triton: pip install 'triton'",
    "tuning": "tuning needs the package optuna: pip install 'probformer[tune]'",
    "web": "the explorer needs the packages fastapi and uvicorn: pip install 'probformer[explore]'",
}


def check_imports(python, *missing, cwd=None, env=None):
    """Every module can be imported, or raises the message of its subpackage."""
    line = [python, MINIMAL, *missing]
    done = subprocess.run(line, capture_output=True, text=True, cwd=cwd, env=env, check=False)
    assert done.returncode == 0, done.stderr
    source = ROOT / "src/probformer"
    expected = {}
    for part, sentence in NEEDS.items():
        for path in (source / part).rglob("*.py"):
            parts = path.relative_to(source).with_suffix("").parts
            expected[".".join(["probformer", *parts]).removesuffix(".__init__")] = sentence
    assert json.loads(done.stdout) == expected
