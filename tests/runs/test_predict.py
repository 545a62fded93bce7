"""Answers for users: one a line, for every task, the same alone and in company."""

import json
from collections import Counter

import pytest
import torch

from helpers.messages import refused
from helpers.runs import PT, TRANSFORMER, saved, settings
from probformer.config import VocabularySettings
from probformer.runs.prediction import predict, predict_lines
from probformer.runs.run_folder import load_run
from probformer.training.commands import train_one

LINES = ["the dogs like her .", "", "Alice watched <mask> in the park .", "zzz"]


@pytest.fixture(scope="module", params=[PT, TRANSFORMER], ids=["pt", "transformer"])
def runs(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for task in ("mlm", "tagging", "ner", "classification", "cogs"):
        train_one(settings(task, request.param, epochs=1), folder / task)
    return folder


@pytest.mark.parametrize("task", ["mlm", "tagging", "ner", "classification", "cogs"])
def test_a_line_in_a_line_out(runs, task, capsys):
    answers = [json.loads(line) for line in predict_lines(runs / task, LINES, as_json=True)]
    assert [answer["words"] for answer in answers] == [line.split() for line in LINES]
    texts = list(predict_lines(runs / task, LINES))
    assert len(texts) == len(LINES)
    assert texts[1] == ""
    assert "zzz" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["mlm", "tagging", "ner", "classification", "cogs"])
def test_alone_and_in_company_answers_agree(runs, task):
    run = load_run(runs / task)
    sentences = [line.split() for line in LINES if line]
    together = predict(run, sentences)
    assert together == [predict(run, [words])[0] for words in sentences]
    assert predict(run, []) == []


KEYS = {
    "mlm": {"words", "masks"},
    "tagging": {"words", "tags"},
    "ner": {"words", "tags", "entities"},
    "classification": {"words", "label", "probabilities"},
    "cogs": {"words", "tags", "logical_form"},
}


@pytest.mark.parametrize("task", KEYS)
def test_what_an_answer_has(runs, task):
    (answer,) = predict(load_run(runs / task), [LINES[2].split()])
    assert set(answer) == KEYS[task]
    if task == "mlm":
        (fillers,) = answer["masks"]
        assert len(fillers) == 5
        assert sum(fillers.values()) <= 1.001
    if task == "classification":
        assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-3)
        assert answer["label"] in answer["probabilities"]


def test_pieces_that_read_the_same_are_one_filler(tmp_path):
    pieces = VocabularySettings(kind="subwords", size=300)
    run = load_run(saved(tmp_path, "mlm", vocabulary=pieces))
    texts = Counter(run.vocabulary.decode([i])[0] for i in range(run.task.classes))
    text = next(text for text, times in texts.items() if times == 2)
    likely, unlikely = (i for i in range(run.task.classes) if run.vocabulary.decode([i])[0] == text)
    with torch.no_grad():
        for parameter in run.model.readout.parameters():
            parameter.zero_()
        run.model.readout.bias[likely], run.model.readout.bias[unlikely] = 9, 8
    (fillers,) = predict(run, [["<mask>"]])[0]["masks"]
    probabilities = run.model.readout.bias.detach().softmax(0)
    assert next(iter(fillers.items())) == (text, round(float(probabilities[likely]), 4))
    assert len(fillers) == 5


def test_a_sentence_that_is_too_long_is_refused(tmp_path):
    positions = {**TRANSFORMER, "positions": "learned", "max_length": 45, "relative": "none"}
    train_one(settings("tagging", positions, epochs=1), tmp_path)
    with refused("45", "46 words"):
        predict(load_run(tmp_path), [["a"] * 46])
    with refused("line 3", "46 tokens", "45"):
        list(predict_lines(tmp_path, ["a", "", "a " * 46]))
