"""Numbers as users have them, checked: lists, arrays or tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probformer.errors import InputError, counted, require

Floats = NDArray[np.float64]


def titles_of(panels: Sequence[Any], titles: Sequence[str]) -> Sequence[str]:
    """One for each panel, or none at all."""
    named = titles or [""] * len(panels)
    fits = len(named) == len(panels)
    require(fits, f"titles must be {counted(len(panels), 'text')}, got {len(named)}")
    return named


def distributions(
    words: Sequence[str], heads: Any, root: Any = None
) -> tuple[list[Floats], list[Floats] | list[None]]:
    """Heads and root as lists of matrices and vectors, checked."""
    n = len(words)
    require(n > 0, "a sentence must have words, got none")
    matrices = as_array(heads)
    given, single = matrices.shape, matrices.ndim == 2
    if single:
        matrices = matrices[None]
    if matrices.ndim != 3 or matrices.shape[1:] != (n, n) or not len(matrices):
        wanted = f"({n}, {n}) or (h, {n}, {n}) for {counted(n, 'word')}"
        raise InputError(f"heads must have the shape {wanted}, got {given}")
    _check_probabilities("heads", matrices)
    if root is None:
        return list(matrices), [None] * len(matrices)
    above = as_array(root)
    wanted = (n,) if single else (len(matrices), n)
    require(above.shape == wanted, f"root must have the shape {wanted}, got {above.shape}")
    _check_probabilities("root", above)
    return list(matrices), list(above.reshape(-1, n))


def as_array(values: Any) -> Floats:
    """Numbers of any kind; a tensor may be on any device and want gradients."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values, dtype=float)


def _check_probabilities(name: str, values: Floats) -> None:
    fine = np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1 + 1e-6
    require(bool(fine), f"{name} must be probabilities, numbers from 0 to 1")
