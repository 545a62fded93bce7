"""Exported files: they answer as the model does, for all lengths, and tell what they mean."""

import itertools
import json
import logging
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from tokenizers import Tokenizer

from helpers.messages import check_wording, refused
from helpers.models import WORDS, D
from helpers.runs import PT, TRANSFORMER, TREES, saved
from probformer.crf.potentials.all_pairs import AllPairs
from probformer.errors import InputError
from probformer.export import as_program, export_run
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run

GAMMA_3 = {**PT, "potential": {"kind": "uv", "rank": 4, "gamma": 3}}
LEARNED = {**TRANSFORMER, "positions": "learned", "relative": "none", "max_length": 60}
ENCODERS = {
    kind: {**PT, "potential": {"kind": kind, "rank": 4}}
    for kind in ("uv", "uvw", "shared-uv", "rotary")
}
ENCODERS |= {
    "full": {**PT, "potential": {"kind": "full"}},
    "blind": {**PT, "potential": {"kind": "uv", "rank": 4, "gamma": "none"}},
    "direction": {**PT, "potential": {"kind": "uv", "rank": 4, "gamma": 0}},
    "root": {**GAMMA_3, "root": {"labels": 5}},
    "all-dep": {**GAMMA_3, "globals": {"mode": "all-dep", "count": 3}},
    "dep-split": {**GAMMA_3, "root": {"labels": 5}, "globals": {"mode": "dep-split", "count": 3}},
    "single-split": {**GAMMA_3, "globals": {"mode": "single-split", "count": 3}},
    "tolerance": {**GAMMA_3, "inference": {"iterations": 4, "tolerance": 1e-2}},
    "synchronous": {**GAMMA_3, "inference": {"iterations": 2, "asynchronous": False}},
    "relative": TRANSFORMER,
    "learned": LEARNED,
    "sinusoidal": {**TRANSFORMER, "positions": "sinusoidal", "relative_values": True},
    "universal": {**LEARNED, "universal": True, "layers": 2, "norm": "pre", "tied": True},
}


def batches(vocabulary, lengths=range(1, 61), sizes=(1, 4)):
    random = torch.Generator().manual_seed(1)
    for n, size in itertools.product(lengths, sizes):
        words = torch.randint(vocabulary, (size, n), generator=random)
        yield words, torch.arange(n) < torch.randint(1, n + 1, (size, 1), generator=random)


def onnx_answers(path):
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]

    def answers(words, mask):
        found = session.run(names, {"words": words.numpy(), "mask": mask.numpy()})
        return dict(zip(names, found, strict=True))

    return answers


def program_answers(path):
    module = torch.export.load(path).module()
    return lambda words, mask: {key: x.numpy() for key, x in module(words, mask).items()}


@torch.no_grad()
def assert_same_answers(folder, answers):
    run = load_run(folder)
    for words, mask in batches(len(run.vocabulary)):
        output = run.model(words, mask, attention=True)
        if run.settings.task.kind == "cogs":
            logits = output.readout(output.representation, mask)
            expected = {f"{name}_logits": x for name, x in logits.items()}
        else:
            expected = {"logits": output.readout(output.representation)}
        expected["head_marginals"] = output.posterior.head_marginals
        found = answers(words, mask)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert np.abs(found[key] - value.numpy()).max() < 1e-4, (key, tuple(words.shape))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("export") / "run", encoder=GAMMA_3)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_all_pairs_say_what_pairs_say(words, n):
    potential, q = WORDS[words]().double(), torch.randn(2, n, D, dtype=torch.float64)
    others = ~torch.eye(n, dtype=torch.bool)
    p = torch.rand(2, potential.channels, n, n, dtype=torch.float64) * others
    expected = potential.prepare(q)
    potential.pair_implementation = AllPairs
    actual = potential.prepare(q)
    torch.testing.assert_close(actual.scores * others, expected.scores * others)
    for found, wanted in zip(actual.contexts(p), expected.contexts(p), strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_tagger_without_probformer(run, tmp_path, capfd):
    """The file and tokenizer.json are all that is needed."""
    target = tmp_path / "new/tagger.onnx"
    export_run(run, onnx=True, torch_program=False, out=target)
    said = capfd.readouterr()
    assert said.err == ""
    assert said.out.startswith(f"{target}: differs from PyTorch by ")
    assert said.out.count("\n") == 1
    assert_same_answers(run, onnx_answers(target))

    model = onnx.load(target)
    onnx.checker.check_model(model)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert metadata["task"] == "tagging"
    sizes = [dim.dim_param for dim in model.graph.input[0].type.tensor_type.shape.dim]
    assert sizes == ["batch", "length"]
    assert str(Path(torch.__file__).parent.parent).encode() not in target.read_bytes()

    sentence = "Lincoln bored her and cut harm ."
    ids = Tokenizer.from_file(str(run / "tokenizer.json")).encode(sentence).ids
    words = torch.tensor([ids])
    logits = onnx_answers(target)(words, torch.ones_like(words, dtype=torch.bool))["logits"]
    names = json.loads(metadata["classes"])["logits"]
    tags = [names[i] for i in logits[0].argmax(-1)]
    assert tags == predict(load_run(run), [sentence.split()])[0]["tags"]


def test_a_wrong_file_is_not_written(run, tmp_path, monkeypatch):
    of = AllPairs.of.__func__

    def wrong(cls, dependents, heads, buckets):
        return of(cls, 1.01 * dependents, heads, buckets)

    monkeypatch.setattr(AllPairs, "of", classmethod(wrong))
    with pytest.raises(
        InputError, match=r"model\.pt2: .* would differ from PyTorch by .* not written"
    ):
        export_run(run, onnx=False, torch_program=True, out=tmp_path / "model.pt2")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_stays_as_it_is(run, monkeypatch, fails):
    """Its mode, its potentials and the log level of the process, also if comparing fails."""
    loaded = load_run(run)
    loaded.model.train()
    if fails:
        monkeypatch.setattr("probformer.export.comparison.TOLERANCE", -1.0)
    with pytest.raises(InputError) if fails else nullcontext():
        as_program(loaded)
    assert loaded.model.training
    assert loaded.model.encoder.potentials.words.pair_implementation is not AllPairs
    assert logging.root.manager.disable == logging.NOTSET


def test_what_cannot_be_exported(run, tmp_path):
    there = tmp_path / "there.onnx"
    there.write_text("mine")
    for folder, onnx_, program, out, named in (
        (run, False, False, None, "--onnx"),
        (run, True, True, tmp_path / "x", "--out"),
        (tmp_path, True, False, None, "config.json"),
        (run, True, False, there, "there.onnx"),
        (run, True, False, tmp_path, "exists"),
        (run, True, False, there / "x.onnx", "x.onnx"),
    ):
        with refused(named):
            export_run(folder, onnx_, program, out)
    assert there.read_text() == "mine"


@pytest.mark.parametrize(("task", "encoder"), [("parsing", PT), ("tagging", TREES)])
def test_trees_are_refused(tmp_path, task, encoder):
    folder = saved(tmp_path / "run", task, encoder)
    for onnx_ in (True, False):
        with refused(str(folder), "trees"):
            export_run(folder, onnx_, not onnx_, None)
    assert not list(folder.glob("model.[op]*"))


def test_a_missing_package_is_one_sentence(run):
    code = f"""
import sys
sys.modules["onnxruntime"] = None
sys.argv = ["probformer", "export", {str(run)!r}, "--onnx"]
from probformer.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    check_wording(done.stderr, "onnx, onnxruntime and onnxscript", "probformer[export]")


@pytest.mark.long
@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder(tmp_path, encoder):
    folder = saved(tmp_path / "run", encoder=ENCODERS[encoder])
    export_run(folder, onnx=True, torch_program=True, out=None)
    assert_same_answers(folder, onnx_answers(folder / "model.onnx"))
    assert_same_answers(folder, program_answers(folder / "model.pt2"))


@pytest.mark.long
@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
@pytest.mark.parametrize("task", ["mlm", "ner", "classification", "cogs"])
def test_every_task(tmp_path, task, encoder):
    folder = saved(tmp_path / "run", task, encoder)
    export_run(folder, onnx=True, torch_program=True, out=None)
    assert_same_answers(folder, onnx_answers(folder / "model.onnx"))
    assert_same_answers(folder, program_answers(folder / "model.pt2"))
    metadata = onnx.load(folder / "model.onnx").metadata_props
    classes = json.loads({entry.key: entry.value for entry in metadata}["classes"])
    words = torch.zeros(1, 2, dtype=torch.long)
    found = onnx_answers(folder / "model.onnx")(words, words == 0)
    sizes = {key: value.shape[-1] for key, value in found.items() if key != "head_marginals"}
    assert {key: len(names) for key, names in classes.items()} == sizes


@pytest.mark.long
@pytest.mark.parametrize("parent", ["attention", "relative-attention"])
def test_pointers(tmp_path, parent):
    folder = saved(tmp_path / "run", "cogs", parent=parent)
    export_run(folder, onnx=True, torch_program=True, out=None)
    assert_same_answers(folder, onnx_answers(folder / "model.onnx"))
    assert_same_answers(folder, program_answers(folder / "model.pt2"))
