"""The explorer as a server, for tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from probformer.web.app import PAGE, build_app
from probformer.web.open_runs import OpenRuns
from probformer.web.server import build_server, listen


@contextmanager
def serving(runs: OpenRuns, page=PAGE) -> Iterator[httpx.Client]:
    """A real server in a thread, and a client for it."""
    listening = listen("127.0.0.1", 0)
    server = build_server(build_app(runs, page=page))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    port = listening.getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
