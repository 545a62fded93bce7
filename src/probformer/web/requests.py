"""The JSON bodies of the API's requests, version 1, and of its error answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_SENTENCES = 64

Word = Annotated[str, StringConstraints(min_length=1)]
SentenceText = str | list[Word]
"""Words separated by white space, or a list of words; "<mask>" is a word to predict."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class HeadClamp(_Body):
    """`head`, a word or ROOT, is the head of `word` in one channel or in all of them."""

    word: int
    head: int | Literal["root"]
    channel: int | Literal["all"] = "all"


class LabelClamp(_Body):
    """`word` has the latent label `label`."""

    word: int
    label: int


class Clamps(_Body):
    """Observed variables: "what if this word had that head, or that label?"."""

    heads: list[HeadClamp] = []
    labels: list[LabelClamp] = []


class InferRequest(_Body):
    """Body of `POST /api/v1/infer`."""

    run: str
    sentences: Annotated[list[SentenceText], Field(min_length=1, max_length=MAX_SENTENCES)]
    clamps: Clamps = Clamps()


class DrawRequest(_Body):
    """Body of `POST /api/v1/draw`."""

    run: str
    sentence: SentenceText
    kind: Literal["tree", "arcs", "heat", "iterations", "labels"] = "arcs"
    channel: int | Literal["average", "all"] | None = None
    iteration: int | None = None
    threshold: float | None = None
    format: Literal["svg", "html", "tex"] = "svg"
    clamps: Clamps = Clamps()


class ErrorAnswer(BaseModel):
    """Body of every answer with an error status."""

    error: str


FIELDS = {
    name
    for body in (HeadClamp, LabelClamp, Clamps, InferRequest, DrawRequest)
    for name in body.model_fields
}
