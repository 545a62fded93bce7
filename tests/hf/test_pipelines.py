"""Pipelines of transformers answer from a run folder as `probformer predict` does, offline."""

import socket

import pytest
import torch

from helpers.runs import PT, TRANSFORMER, saved
from probformer.config import VocabularySettings
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run

transformers = pytest.importorskip("transformers", reason="needs the package transformers")
import probformer.hf  # noqa: E402, F401

LINES = ["the dogs like her .", "Alice watched him in the zzz .", "she sleeps"]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the network was used")

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def pipeline(task, folder, **options):
    return transformers.pipeline(task, model=str(folder), device="cpu", **options)


def answers(folder, lines):
    return predict(load_run(folder), [line.split() for line in lines])


@pytest.mark.parametrize("kind", ["pt", "transformer"])
def test_fill_mask(hf_run, kind):
    folder = hf_run("mlm", kind)
    lines = ["the <mask> like her .", "she <mask>"]
    for found, own in zip(
        pipeline("fill-mask", folder)(lines, batch_size=2), answers(folder, lines), strict=True
    ):
        (expected,) = own["masks"]
        assert [guess["token_str"] for guess in found] == list(expected)
        scores = [guess["score"] for guess in found]
        assert scores == pytest.approx(list(expected.values()), abs=1e-4)
        assert found[0]["sequence"].split().count("<mask>") == 0


@pytest.mark.parametrize(("task", "kind"), [("ner", "pt"), ("tagging", "transformer")])
def test_token_classification(hf_run, task, kind):
    folder = hf_run(task, kind)
    found = pipeline("token-classification", folder, ignore_labels=[])(LINES)
    for line, tags, own in zip(LINES, found, answers(folder, LINES), strict=True):
        assert [tag["entity"] for tag in tags] == own["tags"]
        assert [line[tag["start"] : tag["end"]] for tag in tags] == own["words"]


def test_token_classification_of_pieces(tmp_path):
    """A word's tag is at its first piece, whose text begins with Ġ."""
    pieces = VocabularySettings(kind="subwords", size=300)
    folder = saved(tmp_path, "tagging", PT, pieces)
    own = answers(folder, LINES)
    plain = pipeline("token-classification", folder, ignore_labels=[])(LINES)
    for tags, answer in zip(plain, own, strict=True):
        assert len(tags) > len(answer["words"])
        first = [tag["entity"] for tag in tags if tag["word"].startswith("Ġ")]
        assert first == answer["tags"]


@pytest.mark.parametrize("kind", ["pt", "transformer"])
def test_text_classification(hf_run, kind):
    folder = hf_run("classification", kind)
    found = pipeline("text-classification", folder, top_k=None)(LINES, batch_size=3)
    for scores, own in zip(found, answers(folder, LINES), strict=True):
        assert scores[0]["label"] == own["label"]
        by_label = {score["label"]: score["score"] for score in scores}
        assert by_label == pytest.approx(own["probabilities"], abs=1e-4)


@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
def test_feature_extraction(tmp_path, encoder):
    folder = saved(tmp_path, "cogs", encoder)
    (found,) = pipeline("feature-extraction", folder)("a cat saw Emma .")
    run = load_run(folder)
    ids = torch.tensor([run.vocabulary.encode(["a", "cat", "saw", "Emma", "."]).ids])
    with torch.no_grad():
        expected = run.model.encoder(ids, torch.ones_like(ids).bool(), attention=False).z_scores[0]
    assert torch.equal(torch.tensor(found), expected)
