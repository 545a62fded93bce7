"""The explorer in a browser: a server with small trained runs, and a log of each page."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from helpers.runs import PT, TRANSFORMER, TREES, ready, settings

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [  # no connections of the browser itself
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]
RUNS = {
    "reader": settings("mlm", {**PT, "inference": {"iterations": 4}}, epochs=4),
    "layers": settings("mlm", {**TRANSFORMER, "layers": 2}),
    "tagger": settings("tagging"),
    "classifier": settings("classification"),
    "parser": settings("parsing", TREES, epochs=4),
}


@contextmanager
def explorer(folder: Path):
    """The address of `probformer explore` on freshly trained runs, until the block is left."""
    for name, given in RUNS.items():
        ready(given, folder / name).train()
    command = [sys.executable, "-m", "probformer", "explore", *RUNS, "--no-browser", "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert found, line
            yield found[0]
        finally:
            server.terminate()


class Watch:
    """Requests and errors of a page."""

    def __init__(self, page):
        self.requests, self.errors = [], []
        page.on("request", lambda request: self.requests.append(request))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note)

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def inferences(self) -> int:
        return sum(request.url.endswith("/infer") for request in self.requests)

    def refusals(self) -> list[str]:
        """Removes and returns the lines that browsers log for answers with an error status."""
        refused = [error for error in self.errors if "status of 4" in error]
        self.errors = [error for error in self.errors if error not in refused]
        return refused

    def check(self):
        hosts = {urlsplit(r.url).hostname for r in self.requests if not r.url.startswith("blob:")}
        assert hosts == {"127.0.0.1"}
        assert not self.errors


def settle(page):
    """Wait until no request is pending.

    With a locator, as `wait_for_function` polls with `eval`, which the page's policy forbids.
    """
    page.wait_for_timeout(300)
    page.locator("[aria-busy]").first.wait_for(state="detached")


def sentence(page):
    return page.get_by_role("textbox", name="Sentence")


def word(page, at):
    return page.locator(".picture:visible .word").nth(at)


def words(page) -> list[str]:
    return page.locator(".word > text:nth-of-type(1)").all_text_contents()


def arcs(page) -> list[str]:
    """Titles of the visible arcs: words and probabilities."""
    return page.locator(".arc:not(.absent) > title").all_text_contents()


def arc_labels(page) -> list[str]:
    """The texts at the visible arcs, in the same order."""
    return page.locator(".arc-label:not(.absent)").all_text_contents()
