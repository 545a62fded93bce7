"""The explorer as a FastAPI app: its API, version 1, and the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import probformer
from probformer.errors import InputError
from probformer.web.encoding import as_json
from probformer.web.guard import Guard
from probformer.web.questions import InferQuestion
from probformer.web.service import Explorer, NotFound

PAGE = Path(__file__).parent / "static"
_API = "/api/v1"
_STATUS_TEXTS = {
    400: "the body must be JSON in UTF-8",
    404: "there is nothing at this address",
    405: "this address does not take such requests",
}


def build_app(explorer: Explorer, host: str = "127.0.0.1", page: Path = PAGE) -> Guard:
    """`host` is what the server listens on, and one of the names it answers to."""
    app = FastAPI(
        title="Probformer explorer",
        version=probformer.__version__,
        openapi_url=f"{_API}/openapi.json",
        docs_url=None,  # these pages would load scripts from elsewhere
        redoc_url=None,
    )
    _add_errors(app)
    _add_api(app, explorer)
    if (page / "index.html").is_file():
        app.mount("/", StaticFiles(directory=page, html=True))
    else:
        app.add_api_route("/", _no_page, include_in_schema=False)
    return Guard(app, host)


def _add_api(app: FastAPI, explorer: Explorer) -> None:
    # Inference is a matter of the processor: one at a time is as fast as many, and takes no more
    # memory for fifty clients than for one.
    worker = ThreadPoolExecutor(1, "inference")

    async def answer(ask: Callable[..., Any], *arguments: Any) -> Response:
        def text() -> str:
            return as_json(ask(*arguments))

        content = await asyncio.get_running_loop().run_in_executor(worker, text)
        return Response(content, media_type="application/json")

    @app.get(f"{_API}/runs")
    async def runs() -> Response:
        return await answer(explorer.runs)

    @app.post(f"{_API}/infer")
    async def infer(question: InferQuestion) -> Response:
        return await answer(explorer.infer, question)


def _no_page() -> None:
    raise NotFound("the page was not built into this installation; the API is at /api/v1")


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(InputError)
    async def refused(request: Request, error: InputError) -> Response:
        return _error(404 if isinstance(error, NotFound) else 422, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return _error(422, _first_mistake(error))

    @app.exception_handler(HTTPException)
    async def elsewhere(request: Request, error: HTTPException) -> Response:
        return _error(error.status_code, _STATUS_TEXTS.get(error.status_code, error.detail))

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> Response:
        return _error(500, "something went wrong inside the explorer: its terminal says what")


def _error(status: int, reason: str) -> Response:
    return Response(as_json({"error": reason}), status, media_type="application/json")


def _first_mistake(error: RequestValidationError) -> str:
    """What a person can mend, without the names of classes and functions."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"{_STATUS_TEXTS[400]}: {first['ctx']['error']}"
    place = [str(part) for part in first["loc"][1:]]
    return f"{'.'.join(place) or 'the body'}: {first['msg'][0].lower()}{first['msg'][1:]}"
