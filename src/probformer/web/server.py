"""`probformer explore`: the explorer as a server on a port of this machine."""

from __future__ import annotations

import errno
import socket
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import torch
import uvicorn

from probformer.errors import InputError
from probformer.web.app import build_app
from probformer.web.guard import Guard
from probformer.web.open_runs import OpenRuns

_PORTS_TRIED = 20


def serve(folders: Sequence[Path], data: Path, host: str, port: int, browser: bool) -> None:
    """Serve until a signal stops the process."""
    # One sentence is little work: more threads are no faster, and slower beside other processes.
    torch.set_num_threads(1)
    app = build_app(OpenRuns(folders, data), host)
    listening = listen(host, port)
    address = _address(host, listening.getsockname()[1])
    print(f"the explorer is at {address} until Ctrl-C", flush=True)
    if browser:  # in a thread, as some browsers return only when they are closed
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    build_server(app).run(sockets=[listening])


def build_server(app: Guard) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """A socket on that port or, if it is taken, on one of the next."""
    try:
        family, kind, protocol, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"host must be an address of this machine, got {host!r}: {error}"
        ) from None
    ports = range(port, min(port + _PORTS_TRIED, 2**16))
    for number in ports:
        # With the protocol given, asyncio turns on TCP_NODELAY, which saves 40 ms an answer.
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
            listening.listen()
        except OSError as error:
            listening.close()
            if error.errno != errno.EADDRINUSE:
                reason = error.strerror or str(error)
                raise InputError(f"cannot listen on {host}, port {number}: {reason}") from None
        else:
            return listening
    raise InputError(f"ports {ports[0]} to {ports[-1]} are all taken: --port chooses another")


def _address(host: str, port: int) -> str:
    if host in ("0.0.0.0", "::"):  # all addresses of this machine: not one to open
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
