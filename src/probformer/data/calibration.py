"""Calibration: whether predictions with a probability of p are right in a share p of all cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from probformer.errors import require

BINS = 15
"""The number of equal parts of [0, 1]. A limit belongs to the part above it, 1 to the last."""

_ROUNDING = 1e-3
"""How far above 1 a probability may be."""


def count_calibration(confidences: ArrayLike, right: ArrayLike) -> dict[str, float]:
    """The counts of some predictions; those of several calls add up.

    Args:
        confidences: (n,), the probability of each prediction.
        right: (n,), whether each prediction is right.

    Returns:
        For each bin, from "ece_00" to "ece_14": the number of predictions ("ece_00_count"), the sum
        of their confidences ("ece_00_confidence"), and how many are right ("ece_00_right").

    Raises:
        InputError: Shapes differ, or a confidence is not a probability.
    """
    p, hits = np.asarray(confidences, dtype=float), np.asarray(right, dtype=float)
    require(
        p.ndim == 1 and p.shape == hits.shape,
        f"confidences and right must be of the same shape (n,), got {p.shape} and {hits.shape}",
    )
    wrong = p[~((p >= 0) & (p <= 1 + _ROUNDING))]
    require(not len(wrong), f"confidences must be between 0 and 1, got {wrong[:1]}")
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    sums = {"count": None, "confidence": p, "right": hits}
    return {
        f"ece_{number:02}_{name}": float(total)
        for name, weights in sums.items()
        for number, total in enumerate(np.bincount(bins, weights, BINS))
    }


@dataclass(frozen=True)
class CalibrationBin:
    """The predictions with a confidence between two limits."""

    low: float
    high: float
    count: int
    confidence: float | None
    """Their mean confidence, None if there are none."""
    right: float | None
    """The share of right ones."""


def calibration_bins(counts: Mapping[str, float]) -> list[CalibrationBin]:
    """All bins in order; argument as for `calibration_error`."""
    found = []
    for number in range(BINS):
        names = (f"ece_{number:02}_{what}" for what in ("count", "confidence", "right"))
        count, *sums = (counts[name] for name in names)
        means = [x / count if count else None for x in sums]
        found.append(CalibrationBin(number / BINS, (number + 1) / BINS, int(count), *means))
    return found


def calibration_error(counts: Mapping[str, float]) -> float:
    """The expected calibration error.

    Args:
        counts: Sums of what `count_calibration` returns; zero for a name that is in none of them.

    Returns:
        The mean over predictions of |mean confidence − share of right ones| of their bin, 0 without
        predictions.
    """
    bins = [f"ece_{number:02}" for number in range(BINS)]
    gaps = sum(abs(counts[f"{name}_confidence"] - counts[f"{name}_right"]) for name in bins)
    return gaps / max(sum(counts[f"{name}_count"] for name in bins), 1)
