"""Protection of the server: allowed hosts, content type, body size, and security headers."""

from __future__ import annotations

import ipaddress
import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES = 256 * 1024
_MAX_DRAINED = 16 * 2**20

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class Guard:
    """An ASGI middleware.

    Args:
        app: The app to protect.
        host: A host name that requests may address, beside localhost and IP addresses.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._hosts = {"localhost", host.lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_RAW_HEADERS]}
            await send(message)

        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if not self._is_allowed(headers.get(b"host", "")):
            reason = (
                "this host name is not the explorer's: open it as http://localhost and its port"
            )
            await _refuse(send_guarded, 400, reason)
            return
        kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json":
            await _refuse(send_guarded, 415, "the content type must be application/json")
            return
        body = await _read_body(receive)
        if body is None:
            reason = f"a request may have at most {MAX_BYTES // 1024} KB: send fewer sentences"
            await _refuse(send_guarded, 413, reason)
            return
        await self._app(scope, _replayed(body, receive), send_guarded)

    def _is_allowed(self, header: str) -> bool:
        """DNS-rebinding protection: whether a Host header names this server.

        A foreign host name that resolves to this machine would let its pages use the API; an IP
        address cannot be rebound.
        """
        host = _without_port(header).lower()
        return host in self._hosts or _is_ip_address(host)


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None if it is too large: counted, whatever Content-Length says."""
    body, size, more = b"", 0, True
    while more and size <= _MAX_DRAINED:  # a client that is still sending would not read the answer
        message = await receive()
        part = message.get("body", b"")
        size, more = size + len(part), message.get("more_body", False)
        body = body + part if size <= MAX_BYTES else b""
    return body if size <= MAX_BYTES else None


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def receive_again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


async def _refuse(send: Send, status: int, reason: str) -> None:
    content = json.dumps({"error": reason}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
