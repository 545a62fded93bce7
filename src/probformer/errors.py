"""InputError, the error for wrong input, and the checks that raise it.

Every message is one sentence: the argument, what is allowed, what was given.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any


class InputError(ValueError):
    """An argument, setting or file is wrong; the message says which, and what is allowed."""


class MissingPackage(InputError, ImportError):
    """Optional packages are not installed.

    Args:
        what: The feature that needs them.
        packages: Their names, separated by spaces.
        source: What to install with pip.
    """

    def __init__(self, what: str, packages: str, source: str) -> None:
        *others, last = packages.split()
        listed = f"packages {', '.join(others)} and {last}" if others else f"package {last}"
        super().__init__(f"{what} needs the {listed}: pip install '{source}'")


def require(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


def require_packages(what: str, packages: str, source: str) -> None:
    if any(find_spec(name) is None for name in packages.split()):
        raise MissingPackage(what, packages, source)


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 line", "2 lines"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory has run out: CUDA and the CPU allocator say so in different words."""
    words = ("out of memory", "allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(text in str(error) for text in words)


def shortened(text: str) -> str:
    """A text in quotes; the middle of one of more than 30 characters is replaced by dots."""
    return reprlib.repr(text)


def require_kind(name: str, value: Any, *kinds: type) -> None:
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        given = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise InputError(f"{name} must be of kind {wanted}, got {given}")


def is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def require_whole(name: str, value: Any, low: int = 1) -> None:
    if not (is_whole(value) and value >= low):
        raise InputError(f"{name} must be a whole number of at least {low}, got {value!r}")


def require_between(
    name: str,
    value: Any,
    low: float,
    high: float = math.inf,
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> None:
    """low ≤ value ≤ high, or strictly if an end is open; infinity is never allowed."""
    high_open = high_open or high == math.inf
    valid = isinstance(value, Real) and not isinstance(value, bool)
    if valid:
        number = float(value)
        above = number > low if low_open else number >= low
        valid = above and (number < high if high_open else number <= high)
    if not valid:
        interval = f"{'(' if low_open else '['}{low:g}, {high:g}{')' if high_open else ']'}"
        raise InputError(f"{name} must be a number in {interval}, got {value!r}")


def require_one_of(name: str, value: Any, allowed: Iterable[Any]) -> None:
    choices = list(allowed)
    if not any(
        value is choice or (isinstance(value, str) and value == choice) for choice in choices
    ):
        listed = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name} must be one of {listed}, got {value!r}")
