"""The structures that the settings of inference name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from probformer.config import Inference
from probformer.crf.normalisers import NORMALISERS
from probformer.crf.structures.by_channel import ByChannel
from probformer.crf.structures.independent import Independent
from probformer.crf.structures.projective_trees import ProjectiveTrees
from probformer.crf.structures.spanning_trees import SpanningTrees
from probformer.crf.structures.structure import Structure
from probformer.errors import require, require_kind


def label_structure(inference: Inference) -> Structure:
    """The structure of Z, and that of each kind of label variables of factors."""
    return _as_structure(inference.normaliser_z)


def head_structure(inference: Inference) -> Structure:
    """The structure of H; that of the head variables of other factors is `row_structure`."""
    given = inference.heads
    if isinstance(given, Structure):
        message = "normaliser_h must be 'softmax' where heads is a Structure"
        require(inference.normaliser_h == "softmax", message)
        return given
    require_kind("heads", given, str, tuple, Structure)
    rows = _as_structure(inference.normaliser_h)
    named = {
        name: structure_named(name, inference.single_root, rows)
        for name in ((given,) if isinstance(given, str) else cast(tuple[str, ...], given))
    }
    if isinstance(given, str):
        return named[given]
    return ByChannel([named[name] for name in cast(tuple[str, ...], given)])


def structure_named(
    name: str, single_root: bool = True, rows: Structure | None = None
) -> Structure:
    """The structure of heads in one channel, by its name in settings.

    Args:
        name: "independent", "tree" or "projective".
        single_root: whether exactly one word of a tree has ROOT as its head, or one or more.
        rows: what "independent" means; by default the softmax of each row of scores.
    """
    match name:
        case "tree":
            return SpanningTrees(single_root)
        case "projective":
            return ProjectiveTrees(single_root)
        case _:
            return Independent() if rows is None else rows


def row_structure(inference: Inference) -> Structure:
    """The structure of the head variables of factors, such as split global features."""
    return _as_structure(inference.normaliser_h)


def _as_structure(given: str | Callable[..., Any]) -> Structure:
    """A normaliser, by its name or as a function, means independent rows."""
    if isinstance(given, Structure):
        return given
    return Independent(NORMALISERS[given] if isinstance(given, str) else given)
