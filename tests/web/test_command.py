"""`probformer explore` as a person starts it, and how it bears up under many clients."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from helpers.messages import check_wording
from helpers.runs import LARGER, saved

CLIENTS, SECONDS = 50, 60
FLAT = 20  # MB that a minute may add


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("explore") / "larger", "mlm", LARGER)


def command(*arguments):
    return [sys.executable, "-m", "probformer", "explore", *map(str, arguments)]


def explore(*arguments, **options):
    return running(command(*arguments), **options)


def _heed_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def running(line, **options):
    """A server in a process of its own, and its address."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    # As at a terminal, though these tests may run in the background, where Ctrl-C is ignored.
    process = subprocess.Popen(line, **options, preexec_fn=_heed_interrupts)
    try:
        line = process.stdout.readline()
        said = re.fullmatch(r"the explorer is at (http://\S+) until Ctrl-C\n", line)
        assert said, line + process.stderr.read()
        yield process, said[1]
    finally:
        process.kill()
        process.communicate()


def get(address):
    with urllib.request.urlopen(f"{address}/api/v1/runs", timeout=20) as response:
        return json.load(response)


@pytest.mark.parametrize(("sign", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_serves_until_it_is_stopped(run, sign, status):
    with explore(run, run, "--port", 0, "--no-browser") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        assert [one["name"] for one in get(address)["runs"]] == ["larger", "larger-2"]
        process.send_signal(sign)
        _, said = process.communicate(timeout=20)
        assert process.returncode == status
        assert "Traceback" not in said


def test_the_next_port_is_taken_if_one_is_not_free(run):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with explore(run, "--port", port, "--no-browser") as (_, address):
            assert port < int(address.rpartition(":")[2]) < port + 20
            assert get(address)["version"] == 1


def test_there_are_no_ports_beyond_the_last(run):
    with socket.create_server(("127.0.0.1", 65535)):
        line = command(run, "--port", 65535, "--no-browser")
        done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    check_wording(done.stderr, "65535", "--port")


def test_the_browser_is_opened(run, tmp_path: Path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    with explore(run, "--port", 0, env={**os.environ, "BROWSER": str(browser)}) as (_, address):
        for _ in range(100):
            if opened.exists() and opened.read_text():
                break
            time.sleep(0.1)
        assert opened.read_text().strip() == address


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nowhere"], "nowhere"),
        (["{run}", "--host", "no.such.host.invalid"], "host"),
        (["{run}", "--host", "192.0.2.1"], "192.0.2.1"),
    ],
)
def test_what_cannot_start_is_one_sentence(run, arguments, named):
    arguments = [argument.format(run=run) for argument in arguments]
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert named in done.stderr  # the rest is the system's
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_without_the_packages_it_says_what_to_install(run, missing):
    code = f"""
import sys
sys.modules[{missing!r}] = None
sys.argv = ["probformer", "explore", {str(run)!r}]
from probformer.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    check_wording(done.stderr, "fastapi and uvicorn", "probformer[explore]")


def test_it_asks_for_nothing_from_anywhere(run, tmp_path: Path):
    """Python tells of every connection that is opened, and of every name that is looked up."""
    contacted = tmp_path / "contacted"
    code = f"""
import sys
def hear(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen"):
        with open({str(contacted)!r}, "a") as file:
            print(event, arguments[-1] if event == "socket.connect" else arguments[0], file=file)
sys.addaudithook(hear)
sys.argv = ["probformer", "explore", {str(run)!r}, "--port", "0", "--no-browser"]
from probformer.cli import main
main()
"""
    exporting = {
        "FASTAPI_OTEL_AUTO_CONFIGURE": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    }
    line = [sys.executable, "-c", code]
    with (
        running(line, env={**os.environ, **exporting}) as (process, address),
        httpx.Client(base_url=address, trust_env=False) as client,
    ):
        assert client.get("/").status_code in (200, 404)
        question = {"run": "larger", "sentences": ["the dog"]}
        assert client.post("/api/v1/infer", json=question).status_code == 200
        assert client.get("/api/v1/runs/larger/meanings").status_code == 200
        process.terminate()
        process.communicate(timeout=20)
    assert set(contacted.read_text().splitlines()) <= {"socket.getaddrinfo 127.0.0.1"}


@pytest.mark.long
def test_fifty_clients_for_a_minute(run, capsys):
    with explore(run, "--port", 0, "--no-browser", stderr=subprocess.DEVNULL) as (process, address):
        (described,) = get(address)["runs"]
        seconds: list[float] = []
        mistakes: list[str] = []
        end = time.monotonic() + 10
        ask_from_many(address, described["example"].split(), end, seconds, mistakes)
        before, warm = memory(process.pid), len(seconds)
        end = time.monotonic() + SECONDS
        ask_from_many(address, described["example"].split(), end, seconds, mistakes)
        after = memory(process.pid)
        assert process.poll() is None
    with capsys.disabled():
        measured = sorted(seconds[warm:])
        print(
            f"\n{len(measured):,} answers to {CLIENTS} clients in {SECONDS} s, "
            f"median {1000 * measured[len(measured) // 2]:.0f} ms, slowest "
            f"{1000 * measured[-1]:.0f} ms; {before:.0f} MB before, {after:.0f} MB after"
        )
    assert not mistakes, mistakes[:5]
    assert len(measured) > 20 * CLIENTS
    assert after - before < FLAT


def memory(process: int) -> float:
    """Of a process, in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


def ask_from_many(address, words, end, seconds, mistakes):
    threads = [
        threading.Thread(target=ask_until, args=(end, address, words, number, seconds, mistakes))
        for number in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ask_until(end, address, words, number, seconds, mistakes):
    """Sentences of all lengths, masks and clamps, pictures, and questions that are refused."""
    draws = random.Random(number)
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        while time.monotonic() < end:
            sentence = draws.choices([*words, "<mask>", f"new{draws.random()}"], k=30)
            sentence = sentence[: draws.randint(2, 30)]
            clamps = {"heads": [{"word": 0, "head": 1}], "labels": [{"word": 1, "label": 3}]}
            path, question, expected = draws.choice(
                [
                    ("infer", {"sentences": [sentence]}, 200),
                    ("infer", {"sentences": [sentence], "clamps": clamps}, 200),
                    ("infer", {"sentences": [sentence[:9]] * 4}, 200),
                    ("infer", {"sentences": []}, 422),
                    ("draw", {"sentence": sentence, "threshold": 0.3}, 200),
                ]
            )
            begun = time.monotonic()
            try:
                answer = client.post(f"/api/v1/{path}", json={"run": "larger", **question})
            except httpx.HTTPError as error:
                mistakes.append(repr(error))
                continue
            seconds.append(time.monotonic() - begun)
            if answer.status_code != expected:
                mistakes.append(f"{answer.status_code}: {answer.text[:200]}")
