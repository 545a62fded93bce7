"""JSON, fast for arrays of probabilities: those of every channel, word and iteration."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from probformer.errors import InputError

_DIGITS = 4
_STEPS = 10**_DIGITS
_TEXTS = [f"{k / _STEPS:.{_DIGITS}g}" if k else "0" for k in range(_STEPS + 1)]
"""Every rounded probability: looking a text up is faster than formatting a number."""


def as_json(value: Any) -> str:
    """Numbers are rounded to four decimals; an array must hold probabilities."""
    if isinstance(value, np.ndarray):
        return _probabilities(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(k))}:{as_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(as_json, value)) + "]"
    return json.dumps(round(value, _DIGITS) if isinstance(value, float) else value)


def _probabilities(array: np.ndarray) -> str:
    steps = np.rint(array * _STEPS)
    if not bool(((steps >= 0) & (steps <= _STEPS)).all()):  # false for NaN too
        raise InputError("the weights of this run are damaged: marginals are no probabilities")
    return _nested(steps.astype(np.int64))


def _nested(steps: np.ndarray) -> str:
    if steps.ndim > 1:
        return "[" + ",".join(map(_nested, steps)) + "]"
    return "[" + ",".join(map(_TEXTS.__getitem__, steps.tolist())) + "]"
