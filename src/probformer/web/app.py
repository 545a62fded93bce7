"""The explorer as a FastAPI app: the routes of its API, version 1, and the page.

A route calls one function of this package, and answers with its result as JSON or, of `draw`, as a
file; `web/errors.py` turns exceptions into answers.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

import probformer
from probformer.web.answers import InferAnswer
from probformer.web.draw import draw
from probformer.web.errors import add_error_handlers
from probformer.web.guard import Guard
from probformer.web.infer import infer
from probformer.web.meanings import Meanings, label_owners
from probformer.web.open_runs import NotFound, OpenRuns
from probformer.web.requests import DrawRequest, ErrorAnswer, InferRequest
from probformer.web.to_json import as_json

PAGE = Path(__file__).parent / "static"
_API = "/api/v1"
_MEDIA_TYPES = {"svg": "image/svg+xml", "html": "text/html", "tex": "application/x-tex"}


def build_app(runs: OpenRuns, host: str = "127.0.0.1", page: Path = PAGE) -> Guard:
    """`host` is the address to listen on, and one of the names that requests may address."""
    app = FastAPI(
        title="Probformer explorer",
        version=probformer.__version__,
        openapi_url=f"{_API}/openapi.json",
        docs_url=None,  # these pages load scripts from another host
        redoc_url=None,
        # off whatever environment variables say, so that nothing is sent to another host
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        responses={422: {"model": ErrorAnswer, "description": "What is wrong, in one sentence"}},
    )
    add_error_handlers(app)
    _add_api(app, runs)
    _add_page(app, page)
    return Guard(app, host)


def _add_api(app: FastAPI, runs: OpenRuns) -> None:
    # Work is bound by the processor: one thread is as fast as many, and fifty clients take no more
    # memory than one. Requests that take seconds have a thread of their own.
    quick, slow = ThreadPoolExecutor(1, "quick"), ThreadPoolExecutor(1, "slow")
    meanings = Meanings(runs)

    async def answer(worker: Executor, function: Callable[..., Any], *arguments: Any) -> Response:
        def content() -> str:
            return as_json(function(*arguments))

        body = await asyncio.get_running_loop().run_in_executor(worker, content)
        return Response(body, media_type="application/json")

    @app.get(f"{_API}/runs")
    async def get_runs() -> Response:
        return await answer(quick, runs.listed)

    @app.post(f"{_API}/infer", responses={200: {"model": InferAnswer}})
    async def post_infer(request: InferRequest) -> Response:
        return await answer(quick, infer, runs, request)

    @app.get(f"{_API}/runs/{{run}}/labels/{{label}}")
    async def get_label(run: str, label: int) -> Response:
        return await answer(quick, label_owners, runs, run, label)

    @app.get(f"{_API}/runs/{{run}}/meanings")
    async def get_meanings(run: str) -> Response:
        return await answer(slow, meanings.of, run)

    @app.post(f"{_API}/draw")
    async def post_draw(request: DrawRequest) -> Response:
        loop = asyncio.get_running_loop()
        file = await loop.run_in_executor(slow, draw, runs, request)
        name = f'attachment; filename="{request.kind}.{request.format}"'
        return Response(
            file,
            media_type=_MEDIA_TYPES[request.format],
            headers={"Content-Disposition": name},
        )


def _add_page(app: FastAPI, page: Path) -> None:
    for kind, suffix in (("text/javascript", ".js"), ("text/css", ".css")):
        mimetypes.add_type(kind, suffix)  # the registry of Windows may hold types browsers refuse

    @app.get("/", include_in_schema=False)
    def index() -> FileResponse:
        if not (page / "index.html").is_file():
            raise NotFound("the page was not built into this installation; the API is at /api/v1")
        return FileResponse(page / "index.html")

    if (page / "assets").is_dir():
        app.mount("/assets", StaticFiles(directory=page / "assets"))
