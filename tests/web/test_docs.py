"""What docs/api.md shows is what the explorer does."""

import json
import re
import shlex

import pytest

from helpers.blocks import ROOT, blocks_of
from helpers.runs import PT, saved
from helpers.serving import serving
from probformer.web import guard, limits, requests
from probformer.web.answers import LabelledArc
from probformer.web.open_runs import OpenRuns

TEXT = (ROOT / "docs/api.md").read_text(encoding="utf-8")
CODE = [(block.language, block.code) for block in blocks_of(TEXT)]
BLOCKS = [(kind, block) for kind, block in CODE if kind in ("http", "json")]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A run of the sizes that the page shows."""
    encoder = {**PT, "labels": 64, "channels": 4, "inference": {"iterations": 3}}
    folder = saved(tmp_path_factory.mktemp("runs") / "mlm-builtin-pt", "mlm", encoder)
    with serving(OpenRuns([folder], ROOT)) as client:
        yield client


def asked(client, block):
    line, _, body = block.partition("\n")
    method, path = line.split()
    if method == "GET":
        return client.get(path)
    return client.post(path, json=json.loads(body))


def assert_alike(shown, found, place="answer"):
    """The same fields of the same types, of lists the first elements."""
    if isinstance(shown, dict) and place.rpartition(".")[2] != "masks[0]":  # whose keys are words
        assert list(shown) == list(found), place
        for name in shown:
            assert_alike(shown[name], found[name], f"{place}.{name}")
    elif isinstance(shown, list):
        assert isinstance(found, list), place
        if shown and found:
            assert_alike(shown[0], found[0], f"{place}[0]")
    elif isinstance(shown, float):
        assert isinstance(found, int | float), place
    elif not isinstance(shown, dict):
        assert type(shown) is type(found), place


def test_every_request_has_the_answer_that_is_shown(client):
    shown = 0
    for (kind, block), following in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if kind != "http":
            continue
        response = asked(client, block)
        if following[0] == "json":
            expected = json.loads(following[1])
            assert response.status_code == (404 if "error" in expected else 200), response.text
            assert_alike(expected, response.json())
            shown += 1
        else:
            assert response.status_code == 200, response.text
    assert shown == 5


def test_the_line_for_curl(client):
    (line,) = [block for kind, block in CODE if kind == "sh" and block.startswith("curl")]
    words = shlex.split(line.replace("\\\n", ""))
    _, _, header, address, _, data = words
    path = address.removeprefix("http://127.0.0.1:8765")
    response = client.post(path, content=data, headers=dict([header.split(": ")]))
    assert response.json()["results"][0]["words"] == ["the", "<mask>", "sleeps", "."]


def test_errors_and_runs_are_shown_word_for_word(client):
    """But for the example, which depends on the data."""
    answers = [json.loads(block) for kind, block in BLOCKS if kind == "json"]
    answers = [answer for answer in answers if isinstance(answer, dict)]
    (run,) = client.get("/api/v1/runs").json()["runs"]
    assert {**answers[0]["runs"][0], "example": run["example"]} == run
    error = next(answer for answer in answers if "error" in answer)
    question = {"run": "../secrets", "sentences": ["the dog"]}
    assert client.post("/api/v1/infer", json=question).json() == error


def test_every_address_is_documented(client):
    documented = {block.split()[1] for kind, block in BLOCKS if kind == "http"}
    documented = {re.sub(r"mlm-builtin-pt", "{run}", path) for path in documented}
    documented = {re.sub(r"labels/\d+", "labels/{label}", path) for path in documented}
    assert documented == set(client.get("/api/v1/openapi.json").json()["paths"])


def test_limits_are_those_of_the_code():
    for number, what in (
        (requests.MAX_SENTENCES, "sentences"),
        (limits.MAX_WORDS, "words"),
        (limits.MAX_PIECES, "pieces"),
        (limits.MAX_CHARACTERS, "characters"),
        (limits.MAX_NUMBERS, "numbers"),
        (limits.MAX_ARCS, "arcs"),
        (limits.MAX_CELLS, "cells"),
        (guard.MAX_BYTES // 1024, "KB"),
    ):
        assert re.search(rf"\b{number:,}\s+{what}", TEXT), what
    assert f"at least {limits.SMALLEST_ARC}" in TEXT


def test_labels_of_arcs_are_shown_as_they_come():
    (shown,) = [block for kind, block in BLOCKS if kind == "json" and block.startswith("[")]
    for word in json.loads(shown):
        for arc in word:
            LabelledArc.model_validate(arc, strict=True)
