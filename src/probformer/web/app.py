"""The explorer as a FastAPI app: its API, version 1, and the page."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import probformer
from probformer.errors import InputError, shortened
from probformer.web.encoding import as_json
from probformer.web.guard import Guard
from probformer.web.questions import FIELDS, DrawQuestion, InferQuestion, Problem
from probformer.web.service import Explorer, NotFound

PAGE = Path(__file__).parent / "static"
_API = "/api/v1"
_MEDIA_TYPES = {"svg": "image/svg+xml", "html": "text/html", "tex": "application/x-tex"}
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
        # which the environment could otherwise have sent to another host
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        responses={422: {"model": Problem, "description": "What is wrong, in one sentence"}},
    )
    _add_errors(app)
    _add_api(app, explorer)
    _add_page(app, page)
    return Guard(app, host)


def _add_api(app: FastAPI, explorer: Explorer) -> None:
    # All of it is work for the processor: one at a time is as fast as many, and takes no more
    # memory for fifty clients than for one. What takes seconds must not hold up what takes none.
    quick, slow = ThreadPoolExecutor(1, "quick"), ThreadPoolExecutor(1, "slow")

    async def answer(worker: Executor, ask: Callable[..., Any], *arguments: Any) -> Response:
        def text() -> str:
            return as_json(ask(*arguments))

        content = await asyncio.get_running_loop().run_in_executor(worker, text)
        return Response(content, media_type="application/json")

    @app.get(f"{_API}/runs")
    async def runs() -> Response:
        return await answer(quick, explorer.runs)

    @app.post(f"{_API}/infer")
    async def infer(question: InferQuestion) -> Response:
        return await answer(quick, explorer.infer, question)

    @app.get(f"{_API}/runs/{{run}}/labels/{{label}}")
    async def label(run: str, label: int) -> Response:
        return await answer(quick, explorer.label, run, label)

    @app.get(f"{_API}/runs/{{run}}/meanings")
    async def meanings(run: str) -> Response:
        return await answer(slow, explorer.meanings, run)

    @app.post(f"{_API}/draw")
    async def draw(question: DrawQuestion) -> Response:
        loop = asyncio.get_running_loop()
        content = await loop.run_in_executor(slow, explorer.draw, question)
        name = f'attachment; filename="{question.kind}.{question.format}"'
        return Response(
            content,
            media_type=_MEDIA_TYPES[question.format],
            headers={"Content-Disposition": name},
        )


def _add_page(app: FastAPI, page: Path) -> None:
    for kind, suffix in (("text/javascript", ".js"), ("text/css", ".css")):
        mimetypes.add_type(kind, suffix)  # Windows may say otherwise, and browsers then refuse it

    @app.get("/", include_in_schema=False)
    def index() -> FileResponse:
        if not (page / "index.html").is_file():
            raise NotFound("the page was not built into this installation; the API is at /api/v1")
        return FileResponse(page / "index.html")

    if (page / "assets").is_dir():
        app.mount("/assets", StaticFiles(directory=page / "assets"))


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(InputError)
    async def refused(request: Request, error: InputError) -> Response:
        return _error(404 if isinstance(error, NotFound) else 422, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        no_json = error.errors()[0]["type"] == "json_invalid"
        return _error(400 if no_json else 422, _first_mistake(error))

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
    mistakes = error.errors()
    if mistakes[0]["type"] == "json_invalid":
        return f"{_STATUS_TEXTS[400]}: {mistakes[0]['ctx']['error']}"
    # What can be one thing or another is told with all that it is not; the most precise place is
    # that of the thing that was meant.
    place = max((_place(mistake) for mistake in mistakes), key=len)
    told = [_told(mistake) for mistake in mistakes if _place(mistake) == place]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return f"{where.removeprefix('.') or 'the body'}: {' or '.join(told)}"


def _place(mistake: dict[str, Any]) -> tuple[int | str, ...]:
    """The fields that lead to it."""
    return tuple(part for part in mistake["loc"][1:] if isinstance(part, int) or part in FIELDS)


def _told(mistake: dict[str, Any]) -> str:
    if mistake["type"] == "extra_forbidden":
        return f"there is no field {shortened(mistake['loc'][-1])}"
    return mistake["msg"][0].lower() + mistake["msg"][1:]
