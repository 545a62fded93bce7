"""How long the explorer takes to answer: a sentence per HTTP request, one request after another.

    python benchmarks/explore.py runs/quickstart/mlm-builtin-pt

The server is that of `probformer explore`, in a separate process. Time is measured from the first
byte sent to the last byte received, without parsing the response.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_WARM_UP = 10
_READY = "the explorer is at http://"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", nargs="?", default="runs/quickstart/mlm-builtin-pt")
    parser.add_argument("--words", type=int, default=30)
    parser.add_argument("--requests", type=int, default=300)
    options = parser.parse_args()
    with serving(options.run) as address:
        seconds, size = measure(address, options.words, options.requests)
    print(f"{options.run}: {options.words} words, {options.requests} requests, {size:,} bytes each")
    for name, value in figures(seconds).items():
        print(f"{name:>16} {value:7.1f} ms")


@contextmanager
def serving(run: str) -> Iterator[str]:
    """Start a server; its host and port."""
    command = [sys.executable, "-m", "probformer", "explore", run, "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        if not line.startswith(_READY):
            sys.exit("the explorer did not start")
        try:
            yield line.removeprefix(_READY).split()[0]
        finally:
            server.terminate()


def measure(address: str, words: int, requests: int) -> tuple[list[float], int]:
    """Seconds of each request, and the number of bytes of a response."""
    connection = http.client.HTTPConnection(address)

    def ask(method: str, path: str, body: str | None = None) -> bytes:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            sys.exit(f"the explorer refused: {content.decode()}")
        return content

    (run,) = json.loads(ask("GET", "/api/v1/runs"))["runs"]
    sentence = (run["example"].split() * words)[:words]
    question = json.dumps({"run": run["name"], "sentences": [sentence]})
    seconds, size = [], 0
    for number in range(_WARM_UP + requests):
        begun = time.perf_counter()
        size = len(ask("POST", "/api/v1/infer", question))
        if number >= _WARM_UP:
            seconds.append(time.perf_counter() - begun)
    connection.close()
    return seconds, size


def figures(seconds: list[float]) -> dict[str, float]:
    """In milliseconds."""
    ordered = sorted(seconds)
    return {
        "median": 1000 * statistics.median(ordered),
        "99th percentile": 1000 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
        "slowest": 1000 * ordered[-1],
    }


if __name__ == "__main__":
    main()
