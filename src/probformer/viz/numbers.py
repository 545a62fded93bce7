"""Checked input: probabilities as lists, arrays or tensors, and words and titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probformer.errors import InputError, counted, require, require_kind

Floats = NDArray[np.float64]
LabelTable = Mapping[tuple[int, int | None], tuple[str, float | None]]
"""By dependent and head, None for ROOT: the label of the arc, and its probability if known."""


def titles_of(panels: Sequence[Any], titles: Sequence[str]) -> Sequence[str]:
    """One for each panel; empty ones by default."""
    named = titles or [""] * len(panels)
    fits = len(named) == len(panels)
    require(fits, f"titles must be {counted(len(panels), 'text')}, got {len(named)}")
    return named


def distributions(
    words: Sequence[str], heads: Any, root: Any = None
) -> tuple[list[Floats], list[Floats] | list[None]]:
    """Heads (n, n) and root (n,) of each panel, after checks; None for a root that is not given."""
    check_words(words)
    n = len(words)
    matrices = as_array("heads", heads)
    given, single = matrices.shape, matrices.ndim == 2
    if single:
        matrices = matrices[None]
    if matrices.ndim != 3 or matrices.shape[1:] != (n, n) or not len(matrices):
        wanted = f"({n}, {n}) or (h, {n}, {n}) for {counted(n, 'word')}"
        raise InputError(f"heads must have the shape {wanted}, got {given}")
    check_probabilities("heads", matrices)
    if root is None:
        return list(matrices), [None] * len(matrices)
    above = as_array("root", root)
    wanted = (n,) if single else (len(matrices), n)
    require(above.shape == wanted, f"root must have the shape {wanted}, got {above.shape}")
    check_probabilities("root", above)
    return list(matrices), list(above.reshape(-1, n))


def label_table(words: Sequence[str], labels: Any, probabilities: Any = None) -> LabelTable:
    """The labels of arcs, after checks; empty if none are given.

    Args:
        words: The n words of a sentence.
        labels: (n, n) texts, or (n, n+1) with ROOT in the last column; None for none.
        probabilities: Of the labels, numbers of the same shape; None if they are not known.
    """
    if labels is None:
        require(probabilities is None, "label_probabilities need labels, got none")
        return {}
    n, texts = len(words), np.asarray(labels, dtype=object)
    wanted = f"({n}, {n}) or, with ROOT in the last column, ({n}, {n + 1})"
    fits = texts.shape in ((n, n), (n, n + 1))
    require(fits, f"labels must have the shape {wanted}, got {texts.shape}")
    check_labels(texts.flat)
    known = None if probabilities is None else as_array("label_probabilities", probabilities)
    if known is not None:
        wanted = f"label_probabilities must have the shape {texts.shape} of labels"
        require(known.shape == texts.shape, f"{wanted}, got {known.shape}")
        check_probabilities("label_probabilities", known)
    return {
        (i, None if j == n else j): (text, None if known is None else float(known[i, j]))
        for (i, j), text in np.ndenumerate(texts)
    }


def for_panels(name: str, count: int, given: Any) -> Sequence[Any]:
    """What is given for each panel; None for all of them if nothing is."""
    found = [None] * count if given is None else given
    message = f"{name} must be a list for {counted(count, 'panel')}, with None for one without"
    require(len(found) == count, f"{message}, got {len(found)}")
    return found


def check_labels(labels: Iterable[Any]) -> None:
    for label in labels:
        require_kind("a label", label, str)


def check_words(words: Sequence[str]) -> None:
    require(len(words) > 0, "a sentence must have words, got none")
    for word in words:
        require_kind("a word", word, str)


def as_array(name: str, values: Any) -> Floats:
    """From nested lists, arrays, or tensors of any device and precision, with gradients or not."""
    try:
        return np.asarray(_without_tensors(values), dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, in rows of the same length") from None


def _without_tensors(values: Any) -> Any:
    if hasattr(values, "detach"):
        return values.detach().cpu().double().numpy()
    if isinstance(values, list | tuple):
        return [_without_tensors(value) for value in values]
    return values


def check_probabilities(name: str, values: Floats) -> None:
    fine = np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1 + 1e-6
    require(bool(fine), f"{name} must be probabilities, numbers from 0 to 1")
