"""Metrics as text."""

from __future__ import annotations

from collections.abc import Mapping


def format_metric(value: float) -> str:
    """With four digits after the point, or three significant digits from a million on."""
    return f"{value:.4f}" if abs(value) < 1e6 else f"{value:.3g}"


def format_metrics(metrics: Mapping[str, float]) -> str:
    """All metrics of a whole split on one line, the loss last."""
    names = [name for name in metrics if "/" not in name and name not in ("score", "loss")]
    return ", ".join(f"{name} {metrics[name]:.6g}" for name in (*names, "loss"))
