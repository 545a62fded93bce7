"""Errors as answers: a status, and one sentence in JSON."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from probformer.errors import InputError, shortened
from probformer.web.open_runs import NotFound
from probformer.web.requests import FIELDS
from probformer.web.to_json import as_json

_STATUS_TEXTS = {
    400: "the body must be JSON in UTF-8",
    404: "there is nothing at this address",
    405: "this address does not support this method",
}


def add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(InputError)
    async def input_error(request: Request, error: InputError) -> Response:
        return _error(404 if isinstance(error, NotFound) else 422, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid_body(request: Request, error: RequestValidationError) -> Response:
        no_json = error.errors()[0]["type"] == "json_invalid"
        return _error(400 if no_json else 422, _first_mistake(error))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        return _error(error.status_code, _STATUS_TEXTS.get(error.status_code, error.detail))

    @app.exception_handler(Exception)
    async def internal_error(request: Request, error: Exception) -> Response:
        return _error(500, "internal error: the terminal of the explorer shows the traceback")


def _error(status: int, reason: str) -> Response:
    return Response(as_json({"error": reason}), status, media_type="application/json")


def _first_mistake(error: RequestValidationError) -> str:
    """Pydantic's first error, by field names, without names of classes and functions."""
    mistakes = error.errors()
    if mistakes[0]["type"] == "json_invalid":
        return f"{_STATUS_TEXTS[400]}: {mistakes[0]['ctx']['error']}"
    # A value of a union type gets an error for each alternative; the longest path belongs to the
    # alternative that was meant.
    place = max((_field_path(mistake) for mistake in mistakes), key=len)
    reasons = [_reason(mistake) for mistake in mistakes if _field_path(mistake) == place]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return f"{where.removeprefix('.') or 'the body'}: {' or '.join(reasons)}"


def _field_path(mistake: dict[str, Any]) -> tuple[int | str, ...]:
    return tuple(part for part in mistake["loc"][1:] if isinstance(part, int) or part in FIELDS)


def _reason(mistake: dict[str, Any]) -> str:
    if mistake["type"] == "extra_forbidden":
        return f"there is no field {shortened(mistake['loc'][-1])}"
    return mistake["msg"][0].lower() + mistake["msg"][1:]
