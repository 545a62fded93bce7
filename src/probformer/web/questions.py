"""What may be asked of the explorer: the bodies of its requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MOST_SENTENCES = 64

Word = Annotated[str, StringConstraints(min_length=1)]
Sentence = str | list[Word]
"""Words with spaces between them, or already split; "<mask>" is a word to be guessed."""


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class HeadClamp(_Question):
    """Word `head`, or ROOT, heads the word, in one channel or in all of them."""

    word: int
    head: int | Literal["root"]
    channel: int | Literal["all"] = "all"


class LabelClamp(_Question):
    word: int
    label: int


class Clamps(_Question):
    """Variables that are observed: "what if this word had that head, or that label?"."""

    heads: list[HeadClamp] = []
    labels: list[LabelClamp] = []


class InferQuestion(_Question):
    run: str
    sentences: Annotated[list[Sentence], Field(min_length=1, max_length=MOST_SENTENCES)]
    clamps: Clamps = Clamps()


class DrawQuestion(_Question):
    run: str
    sentence: Sentence
    kind: Literal["arcs", "heat", "iterations", "labels"] = "arcs"
    channel: int | Literal["average", "all"] | None = None
    iteration: int | None = None
    threshold: float | None = None
    format: Literal["svg", "html", "tex"] = "svg"
    clamps: Clamps = Clamps()


class Problem(BaseModel):
    """The answer to a question that is wrong."""

    error: str


FIELDS = {
    name
    for kind in (HeadClamp, LabelClamp, Clamps, InferQuestion, DrawQuestion)
    for name in kind.model_fields
}
