"""The one kind of error a user is meant to read, and the checks that raise it.

Every message is one sentence: the argument, what is allowed, what was given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """Something the user gave is wrong; the message says what, and what is allowed."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


def require_positive_int(name: str, value: Any) -> None:
    valid = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    require(valid, f"{name} must be a whole number of at least 1, got {value!r}")


def require_between(
    name: str,
    value: Any,
    low: float,
    high: float = float("inf"),
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> None:
    """low ≤ value ≤ high, or strictly where an end is open."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    valid = (
        number
        and (value > low if low_open else value >= low)
        and (value < high if high_open or high == float("inf") else value <= high)
    )
    open_, close = "(" if low_open else "[", ")" if high_open or high == float("inf") else "]"
    require(valid, f"{name} must be a number in {open_}{low:g}, {high:g}{close}, got {value!r}")


def require_one_of(name: str, value: Any, allowed: Iterable[Any]) -> None:
    choices = list(allowed)
    listed = ", ".join(repr(choice) for choice in choices)
    require(value in choices, f"{name} must be one of {listed}, got {value!r}")
