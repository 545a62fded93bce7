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
    trees = {
        "independent": rows,
        "tree": SpanningTrees(inference.single_root),
        "projective": ProjectiveTrees(inference.single_root),
    }
    if isinstance(given, str):
        return trees[given]
    return ByChannel([trees[name] for name in cast(tuple[str, ...], given)])


def row_structure(inference: Inference) -> Structure:
    """The structure of the head variables of factors, such as split global features."""
    return _as_structure(inference.normaliser_h)


def _as_structure(given: str | Callable[..., Any]) -> Structure:
    """A normaliser, by its name or as a function, means independent rows."""
    if isinstance(given, Structure):
        return given
    return Independent(NORMALISERS[given] if isinstance(given, str) else given)
