"""Folders that do not hold what they should: one sentence, and nothing of theirs is run."""

import json
import pickle
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from helpers.messages import refused
from helpers.runs import PT, TRANSFORMER, saved
from probformer.config import VocabularySettings
from probformer.errors import InputError
from probformer.runs.run_folder import load_run

transformers = pytest.importorskip("transformers", reason="needs the package transformers")
import probformer.hf as hf  # noqa: E402

LABELS = {"id2label": {0: "A", 1: "B", 2: "C"}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("bad_input")
    return {
        "mlm": saved(base / "mlm", "mlm"),
        "tied": saved(base / "tied", "mlm", TRANSFORMER),
        "tagging": saved(base / "tagging", "tagging"),
        "classification": saved(base / "classification", "classification"),
        "cogs": saved(base / "cogs", "cogs"),
    }


@pytest.fixture
def copy_of(made, tmp_path):
    """A run folder to be damaged."""

    def copied(name):
        return shutil.copytree(made[name], tmp_path / name)

    return copied


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def load_refused(folder, *named, cls=hf.ProbformerForMaskedLM, **options):
    with refused(*named):
        cls.from_pretrained(folder, **options)


def test_no_run(tmp_path):
    load_refused(tmp_path, "config.json")
    with pytest.raises((OSError, ValueError), match=r"config\.json"):
        transformers.AutoModel.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors").write_bytes(b"")
    load_refused(tmp_path, "'bert'")


def test_a_version_to_come(copy_of):
    folder = copy_of("mlm")
    change_config(folder, format_version=2)
    load_refused(folder, "format version 2")
    with refused("format version 2"):
        transformers.AutoModel.from_pretrained(folder)


def test_settings_that_do_not_exist(copy_of):
    folder = copy_of("mlm")
    encoder = json.loads((folder / "config.json").read_text())["encoder"]
    change_config(folder, encoder={**encoder, "lables": 3})
    load_refused(folder, "lables", "'labels'")
    change_config(folder, encoder={"kind": "rnn"})
    load_refused(folder, "kind", "rnn")


def test_weights_that_are_missing(copy_of):
    folder = copy_of("mlm")
    change_weights(folder, lambda weights: weights.pop("encoder.potentials.words.U"))
    missing = "missing encoder.potentials.words.U"
    load_refused(folder, missing)
    load_refused(folder, missing, cls=hf.ProbformerModel)
    load_refused(folder, missing, cls=hf.ProbformerForTokenClassification, **LABELS)


@pytest.mark.parametrize("name", ["mlm", "tied"])
def test_a_head_that_is_missing(copy_of, name):
    folder = copy_of(name)
    change_weights(folder, lambda weights: weights.pop("head.bias"))
    load_refused(folder, "missing head.bias")
    hf.ProbformerModel.from_pretrained(folder)  # which has none


def test_weights_too_many(copy_of):
    folder = copy_of("mlm")
    change_weights(folder, lambda weights: weights.update({"encoder.extra": torch.ones(2)}))
    load_refused(folder, "unknown encoder.extra")
    load_refused(folder, "unknown encoder.extra", cls=hf.ProbformerModel)
    change_weights(folder, lambda weights: weights.pop("encoder.extra"))
    change_weights(folder, lambda weights: weights.update({"head.extra": torch.ones(2)}))
    load_refused(folder, "unknown head.extra")


def test_weights_of_another_shape(copy_of):
    folder = copy_of("tagging")
    change_weights(folder, lambda weights: weights.update({"head.bias": torch.ones(2)}))
    load_refused(folder, "head.bias", cls=hf.ProbformerForTokenClassification)


def test_weights_cut_off(copy_of):
    folder = copy_of("mlm")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:100])
    with pytest.raises(InputError, match="as safetensors: "):  # the rest is the library's
        hf.ProbformerForMaskedLM.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    load_refused(folder, "model.safetensors")


def test_weights_from_memory(made):
    model = hf.ProbformerForMaskedLM.from_pretrained(made["mlm"])
    weights = model.state_dict()
    given = {"config": model.config, "state_dict": weights}
    same = hf.ProbformerForMaskedLM.from_pretrained(None, **given)
    assert torch.equal(same.head.weight, weights["head.weight"])
    del weights["head.bias"]
    load_refused(None, "state_dict", "missing head.bias", **given)


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('the pickle ran')",)


def test_pickles_are_not_opened(copy_of):
    folder = copy_of("mlm")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
    load_refused(folder, "pytorch_model.bin", "pickle")
    with refused("pickle"):
        transformers.AutoModelForMaskedLM.from_pretrained(folder, trust_remote_code=True)
    load_refused(folder, "use_safetensors", use_safetensors=False)


def test_code_in_a_folder_is_not_run(copy_of):
    folder = copy_of("mlm")
    (folder / "evil.py").write_text("raise SystemExit('the code ran')")
    classes = {"AutoConfig": "evil.Config", "AutoModelForMaskedLM": "evil.Model"}
    change_config(folder, auto_map={**classes, "AutoTokenizer": ["evil.T", "evil.T"]})
    for trust in (None, False, True):
        options = {} if trust is None else {"trust_remote_code": trust}
        model = transformers.AutoModelForMaskedLM.from_pretrained(folder, **options)
        assert type(model) is hf.ProbformerForMaskedLM
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert type(tokenizer) is hf.ProbformerTokenizer
    model.save_pretrained(folder / "out")
    assert not list((folder / "out").glob("*.py"))


def test_a_tokenizer_of_another_model(copy_of, tmp_path):
    folder = copy_of("mlm")
    other = saved(tmp_path / "other", "mlm", PT, VocabularySettings(size=50))
    shutil.copy(other / "tokenizer.json", folder)
    with refused("tokenizer.json", "50 entries"):
        transformers.AutoTokenizer.from_pretrained(folder)
    with refused("vocabulary"):
        load_run(folder)
    (folder / "tokenizer.json").unlink()
    with refused("tokenizer.json"):
        transformers.AutoTokenizer.from_pretrained(folder)


HEADS = (
    hf.ProbformerForMaskedLM,
    hf.ProbformerForTokenClassification,
    hf.ProbformerForSequenceClassification,
)


@pytest.mark.parametrize("task", ["mlm", "tagging", "classification", "cogs"])
def test_a_head_for_another_task_is_not_taken(made, task):
    for cls in HEADS:
        if task in cls.kinds:
            assert cls.from_pretrained(made[task]).config.task["kind"] == task
        else:
            with pytest.raises(InputError) as caught:
                cls.from_pretrained(made[task])
            text = str(caught.value)
            assert "\n" not in text
            assert f"the task '{task}'" in text or "needs encoder.readout" in text


def test_a_new_head_is_new(made):
    """Though the old one has its names, and may have its shapes."""
    names = load_run(made["tagging"]).task.tags.names
    task = {"kind": "mlm"}
    model = hf.ProbformerForMaskedLM.from_pretrained(made["tagging"], task=task)
    assert model.config.task["kind"] == "mlm"
    assert model.config.id2label == {}
    relabelled = {number: name.lower() + "!" for number, name in enumerate(names)}
    same = hf.ProbformerForTokenClassification.from_pretrained(made["tagging"], id2label=relabelled)
    stored = load_file(made["tagging"] / "model.safetensors")["head.weight"]
    assert torch.equal(same.head.weight, stored)  # other names for the same classes
    assert same.config.task["tags"] == list(relabelled.values())
    load_refused(
        made["tagging"], "another shape", cls=hf.ProbformerForTokenClassification, **LABELS
    )
    fewer = hf.ProbformerForTokenClassification.from_pretrained(
        made["tagging"], ignore_mismatched_sizes=True, **LABELS
    )
    assert fewer.head.weight.shape == (3, 16)
    assert torch.isfinite(fewer.head.weight).all()
    rooted = {**PT, "root": {"labels": 6}, "readout": "root"}
    classifier = hf.ProbformerForSequenceClassification.from_pretrained(
        made["mlm"], encoder=rooted, num_labels=2
    )
    words = load_file(made["mlm"] / "model.safetensors")["encoder.word_scores.weight"]
    assert torch.equal(classifier.encoder.word_scores.weight, words)
    assert 0.5 < classifier.encoder.potentials.root.T.std() < 2


def test_an_encoder_alone_has_no_answers(made, tmp_path):
    hf.ProbformerModel.from_pretrained(made["tagging"]).save_pretrained(tmp_path)
    shutil.copy(made["tagging"] / "tokenizer.json", tmp_path)
    with refused("task"):
        load_run(tmp_path)
    load_refused(tmp_path, "task", cls=hf.ProbformerForTokenClassification)


def test_without_transformers():
    code = """
import sys
sys.modules["transformers"] = None
try:
    import probformer.hf
except ImportError as error:
    assert "pip install 'probformer[hf]'" in str(error), error
else:
    raise AssertionError("imported")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
