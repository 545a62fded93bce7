"""The explorer over HTTP: what it refuses, and what it tells browsers."""

import json
import socket
import time
from pathlib import Path

import pytest

from helpers.runs import PT, saved
from helpers.serving import serving
from probformer.web.open_runs import OpenRuns

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    folders = [
        saved(base / "mlm", "mlm"),
        saved(base / "rooted run", "tagging", {**PT, "root": {"labels": 5}}),
    ]
    (base / "secret.txt").write_text("a secret")
    with serving(OpenRuns(folders, Path("."))) as client:
        yield client


def refused(response, status):
    """The one sentence of a refusal."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    body = response.json()
    assert list(body) == ["error"]
    assert "Traceback" not in body["error"]
    assert "\n" not in body["error"]
    assert len(body["error"]) < 300
    return body["error"]


def infer(client, *sentences, run="mlm", **more):
    return client.post("/api/v1/infer", json={"run": run, "sentences": sentences, **more})


def test_the_api_answers(client):
    runs = client.get("/api/v1/runs")
    assert [run["name"] for run in runs.json()["runs"]] == ["mlm", "rooted run"]
    answer = infer(client, "the dog", ["dogs", "<mask>", "."]).json()
    assert [result["words"] for result in answer["results"]] == [
        ["the", "dog"],
        ["dogs", "<mask>", "."],
    ]
    assert client.get("/api/v1/runs/mlm/labels/3").json()["label"] == 3
    assert client.get("/api/v1/runs/rooted%20run/meanings").json()["text"].startswith("dev: ")
    for response in (runs, client.get("/api/v1/openapi.json")):
        assert response.status_code == 200
        for name, value in HEADERS.items():
            assert response.headers[name] == value
        assert "server" not in response.headers


def test_pictures_come_as_files(client):
    kinds = {"svg": "image/svg+xml", "html": "text/html", "tex": "application/x-tex"}
    for form, kind in kinds.items():
        question = {"run": "mlm", "sentence": "the <b>dog</b> .", "format": form}
        response = client.post("/api/v1/draw", json=question)
        assert response.headers["content-type"].partition(";")[0] == kind
        assert response.headers["content-disposition"] == f'attachment; filename="arcs.{form}"'
        assert response.headers["content-security-policy"] == HEADERS["content-security-policy"]
        if form != "tex":
            assert "<b>" not in response.text
            assert "&lt;b&gt;" in response.text


def test_openapi_describes_what_is_there(client):
    described = client.get("/api/v1/openapi.json").json()
    arc = described["components"]["schemas"]["LabelledArc"]
    assert set(arc["properties"]) == {"head", "label", "p"}
    inferred = described["components"]["schemas"]["InferredSentence"]["properties"]
    assert list(inferred) == list(infer(client, "the dog").json()["results"][0])
    paths = described["paths"]
    assert set(paths) == {
        "/api/v1/runs",
        "/api/v1/infer",
        "/api/v1/draw",
        "/api/v1/runs/{run}/labels/{label}",
        "/api/v1/runs/{run}/meanings",
    }


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/api/v1/docs", "/openapi.json", "/x"])
def test_nothing_else_is_there(client, path):
    assert refused(client.get(path), 404) == "there is nothing at this address"


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../secret.txt",
        "/etc/passwd",
        "%2e%2e%2fsecret.txt",
        "mlm/../../secret.txt",
        "",
        "MLM",
    ],
)
def test_only_names_of_runs_lead_anywhere(client, name):
    assert "there is no run" in refused(infer(client, "a", run=name), 404)
    refused(client.get(f"/api/v1/runs/{name}/labels/0"), 404)
    refused(client.get(f"/api/v1/runs/{name}/meanings"), 404)


@pytest.mark.parametrize(
    "path",
    ["/../secret.txt", "/..%2f..%2fsecret.txt", "/assets/%2e%2e/%2e%2e/app.py", "//etc/passwd"],
)
def test_files_outside_of_the_page_are_not_served(client, path):
    """As bytes on the wire, since clients tidy addresses up."""
    answer = on_the_wire(client, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"secret" not in answer


def on_the_wire(client, request, parts=()):
    """What comes back for these bytes."""
    with socket.create_connection((client.base_url.host, client.base_url.port), 10) as wire:
        wire.sendall(request)
        for part in parts:
            wire.sendall(part)
        answer = b""
        while b"}" not in answer and (more := wire.recv(65536)):
            answer += more
        return answer


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8765", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8765", 200),
        ("evil.example", 400),
        ("evil.example:8765", 400),
        ("localhost.evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("", 400),
        ("[evil]", 400),
    ],
)
def test_a_page_of_another_name_is_not_ours(client, host, status):
    response = client.get("/api/v1/runs", headers={"host": host})
    assert response.status_code == status
    if status != 200:
        assert "is not the explorer's" in refused(response, 400)


def test_another_site_may_read_nothing(client):
    """No answer allows it, and the question beforehand is not answered either."""
    origin = {"origin": "https://evil.example"}
    asked = client.request(
        "OPTIONS",
        "/api/v1/infer",
        headers={**origin, "access-control-request-method": "POST"},
    )
    for response in (asked, client.get("/api/v1/runs", headers=origin)):
        assert not [name for name in response.headers if name.startswith("access-control")]
    assert asked.status_code == 405


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
def test_only_json_is_taken(client, kind):
    body = json.dumps({"run": "mlm", "sentences": ["a"]})
    response = client.post("/api/v1/infer", content=body, headers={"content-type": kind})
    assert refused(response, 415) == "the content type must be application/json"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body: field required"),
        (b"{", "the body must be JSON in UTF-8: "),
        (b"\xff\xfe\x00", "the body must be JSON in UTF-8"),
        (b'{"run": "\xe9"}', "the body must be JSON in UTF-8"),
        (b"[" * 100_000, "the body must be JSON in UTF-8"),
        (b'{"a":' * 20_000, "the body must be JSON in UTF-8"),
        (b"9" * 10_000, "the body must be JSON in UTF-8"),
        (b"null", "the body: "),
        (b'"text"', "the body: input should be a valid dictionary"),
        (b"NaN", "the body: input should be a valid dictionary"),
        (b"[]", "the body: input should be a valid dictionary"),
        (b"{}", "run: field required"),
        (b'{"run": 1, "sentences": ["a"]}', "run: input should be a valid string"),
        (b'{"run": "mlm", "sentences": "a"}', "sentences: input should be a valid list"),
        (b'{"run": "mlm", "sentences": []}', "sentences: list should have at least 1 item"),
        (b'{"run": "mlm", "sentences": [NaN]}', "sentences[0]: input should be a valid string or"),
        (b'{"run": "mlm", "sentences": [[1]]}', "sentences[0][0]: input should be a valid string"),
        (b'{"run": "mlm", "sentences": [["a", ""]]}', "sentences[0][1]: string should have at"),
        (b'{"run": "mlm", "sentences": [" "]}', "a sentence must have words, got none"),
        (b'{"run": "mlm", "sentences": ["a"], "x": 1}', "the body: there is no field 'x'"),
        (b'{"run": "mlm", "sentences": ["\\ud800"]}', "a word must be valid Unicode"),
    ],
)
def test_wrong_bodies_are_told_apart(client, body, message):
    response = client.post("/api/v1/infer", content=body, headers=JSON)
    assert response.status_code == (400 if message.startswith("the body must be JSON") else 422)
    assert refused(response, response.status_code).startswith(message)


@pytest.mark.parametrize("label", ["16", "-1", "9" * 50, "9" * 5000, "1.5", "x", "%00", "NaN"])
def test_labels_that_are_not_there(client, label):
    response = client.get(f"/api/v1/runs/mlm/labels/{label}")
    assert response.status_code in (404, 422)
    refused(response, response.status_code)


@pytest.mark.parametrize(
    ("clamps", "message"),
    [
        ({"heads": [{"word": 0, "head": 0}]}, "no word heads itself: word 0 must have another"),
        ({"heads": [{"word": 0, "head": 3}]}, "there is no word 3: the sentence has 2 words, 0 to"),
        ({"heads": [{"word": -1, "head": 0}]}, "there is no word -1"),
        ({"heads": [{"word": 0, "head": 10**30}]}, "there is no word 1000"),
        ({"heads": [{"word": True, "head": 1}]}, "clamps.heads[0].word: input should be a valid"),
        (
            {"heads": [{"word": 0, "head": "top"}]},
            "clamps.heads[0].head: input should be a valid integer or input should be 'root'",
        ),
        ({"heads": [{"word": 0, "head": 1.5}]}, "clamps.heads[0].head: input should be a valid"),
        ({"labels": [{"word": 0, "label": 16}]}, "there is no label 16"),
        ({"labels": [{"word": 0}]}, "clamps.labels[0].label: field required"),
        ({"labels": None}, "clamps.labels: input should be a valid list"),
    ],
)
def test_wrong_clamps_are_named(client, clamps, message):
    assert refused(infer(client, "the dog", clamps=clamps), 422).startswith(message)


def test_sentences_have_limits(client):
    assert "at most 64 items" in refused(infer(client, *["a"] * 65), 422)
    assert "200 words, got 201 words" in refused(infer(client, "a " * 201), 422)
    assert "200 words, got 201 words" in refused(infer(client, ["a"] * 201), 422)
    for sentence in ("a" * 10_000, ["a" * 10_000]):
        assert "100 characters, got 10,000: 'aaa" in refused(infer(client, sentence), 422)
    assert infer(client, *["a b c"] * 64).status_code == 200


def test_a_large_body_is_refused(client):
    refusal = "a request may have at most 256 KB: send fewer sentences"
    assert refused(infer(client, "a" * 1_000_000), 413) == refusal
    most = b'{"run": "mlm", "sentences": ["a"]}'.ljust(256 * 1024)
    assert client.post("/api/v1/infer", content=most, headers=JSON).status_code == 200
    assert refused(client.post("/api/v1/infer", content=most + b" ", headers=JSON), 413) == refusal


def test_a_large_body_in_chunks_is_refused_as_it_comes(client):
    """Nothing says how large it will be."""

    def parts():
        for _ in range(100):
            yield b" " * 10_000

    response = client.post("/api/v1/infer", content=parts(), headers=JSON)
    assert "256 KB" in refused(response, 413)


def test_a_body_without_an_end_is_cut_off(client):
    """The connection ends though the body does not."""
    head = b"POST /api/v1/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunk = b"100000\r\n" + b" " * 2**20 + b"\r\n"
    answer = on_the_wire(client, head + b"Transfer-Encoding: chunked\r\n\r\n", [chunk] * 17)
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_client_that_goes_away_is_forgotten(client, caplog):
    head = b"POST /api/v1/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((client.base_url.host, client.base_url.port)) as wire:
        wire.sendall(head + b"Content-Length: 100\r\n\r\n{")
    assert client.get("/api/v1/runs").status_code == 200
    assert not caplog.records


@pytest.mark.parametrize(
    "word",
    [
        "<script>alert(1)</script>",
        "<img/src=x/onerror=alert(1)>",
        "\x1b[2J",
        "\x00",
        "\u202eevil",
        "\u2066\u2069",
        "a\u0301\u0302\u0303",
        "\U0001f600",
        "__proto__",
        "'\"`${x}",
    ],
)
def test_odd_words_come_back_as_they_are(client, word):
    response = infer(client, ["the", word, "."])
    assert response.headers["content-type"] == "application/json"
    (result,) = response.json()["results"]
    assert result["words"] == ["the", word, "."]
    assert result["unknown"] == [1]
    for form in ("svg", "html", "tex"):
        question = {"run": "mlm", "sentence": ["the", word, "."], "format": form}
        text = client.post("/api/v1/draw", json=question).text
        assert "alert(1)<" not in text
        assert not any(sign in text for sign in "\x00\x1b\u202e\u2066")


def test_a_mistake_of_ours_shows_nothing(client, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("a secret of the machine")

    monkeypatch.setattr("probformer.web.infer._result", broken)
    error = refused(infer(client, "the dog"), 500)
    assert error == "internal error: the terminal of the explorer shows the traceback"
    for _ in range(100):  # it is written down after the answer is sent
        if "a secret of the machine" in caplog.text:
            break
        time.sleep(0.05)
    assert "a secret of the machine" in caplog.text


def test_a_method_that_does_not_fit(client):
    assert refused(client.get("/api/v1/infer"), 405) == "this address does not support this method"


def test_the_page_and_its_files(tmp_path: Path):
    with serving(OpenRuns([], Path(".")), tmp_path) as client:
        error = refused(client.get("/"), 404)
        assert error.startswith("the page was not built into this installation")
        assert refused(client.get("/assets/index.js"), 404) == "there is nothing at this address"
    page = tmp_path / "static"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>x</title>")
    (page / "assets/index.js").write_text("export {}")
    (tmp_path / "secret.txt").write_text("a secret")
    with serving(OpenRuns([], Path(".")), page) as client:
        response = client.get("/")
        assert "<title>" in response.text
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        for name, value in HEADERS.items():
            assert response.headers[name] == value
        script = client.get("/assets/index.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert refused(client.get("/assets/none.js"), 404) == "there is nothing at this address"
        answer = on_the_wire(client, b"GET /../secret.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 404")
        refused(client.get("/static/index.html"), 404)
        refused(client.get("/api/v1/infer"), 405)
        assert client.get("/api/v1/runs").json()["runs"] == []
