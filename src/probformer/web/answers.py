"""The JSON of answers, version 1, for the API's description in OpenAPI."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LikelyLabel(_Answer):
    """A latent label of a word, and its probability."""

    label: int
    p: float


class LabelledArc(_Answer):
    """The most probable label of the arc from a head, and P(label | head)."""

    head: int | Literal["root"]
    label: str
    p: float


class InferredSentence(_Answer):
    """Marginals of a sentence, and the task's answer."""

    words: list[str]
    unknown: list[int]
    """Places of words that the run does not know."""
    heads: list[list[list[list[float]]]]
    """Iterations × channels × words × heads."""
    root: list[list[list[float]]] | None
    """Iterations × channels × words."""
    labels: list[list[list[LikelyLabel]]] | None
    """Iterations × words × at most five labels."""
    arc_labels: list[list[list[LabelledArc]]] | None
    """Iterations × words × the heads with a probability of at least 0.01, in the channel whose arcs
    have labels; null where none have."""
    free_energy: list[float] | None
    answer: dict[str, Any]


class InferAnswer(_Answer):
    """Body of the answer to `POST /api/v1/infer`."""

    version: Literal[1]
    run: str
    step: Literal["iteration", "layer"]
    results: list[InferredSentence]
