"""Checked input: probabilities as lists, arrays or tensors, and words and titles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probformer.errors import InputError, counted, require, require_kind

Floats = NDArray[np.float64]


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
