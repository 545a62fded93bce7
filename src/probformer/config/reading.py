"""Settings from dictionaries and TOML, and back.

Unknown keys are refused by name; where a setting may be of several kinds, the key `kind` chooses.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from probformer.errors import InputError, require, require_one_of

Settings = TypeVar("Settings")


def from_toml(cls: type[Settings], path: str | Path) -> Settings:
    """Settings of class `cls` from a TOML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        return from_dict(cls, tomllib.loads(text))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read as TOML: {error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def from_dict(cls: type[Settings], values: Mapping[str, Any], where: str = "") -> Settings:
    """Settings of class `cls` from nested dictionaries; `where` names them in messages."""
    hints = typing.get_type_hints(cls)
    names = [item.name for item in dataclasses.fields(typing.cast(Any, cls))]
    for key in values:
        if key not in names:
            close = difflib.get_close_matches(str(key), names, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            listed = ", ".join(names)
            raise InputError(f"unknown setting {where}{key}{hint}; known here: {listed}")
    given = {key: _convert(hints[key], value, f"{where}{key}") for key, value in values.items()}
    try:
        return cls(**given)
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    except TypeError:
        required = [
            item.name
            for item in dataclasses.fields(typing.cast(Any, cls))
            if item.default is item.default_factory is dataclasses.MISSING
        ]
        missing = ", ".join(where + name for name in required if name not in given)
        raise InputError(f"missing setting {missing}") from None


def to_dict(settings: Any) -> dict[str, Any]:
    """The inverse of `from_dict`; what is None is left out, as TOML has no None."""
    values: dict[str, Any] = {}
    for item in dataclasses.fields(settings):
        value = getattr(settings, item.name)
        if dataclasses.is_dataclass(value):
            value = to_dict(value)
        if value is not None or item.default is not None:
            values[item.name] = "none" if value is None else value
    return values


def _convert(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type that `hint` asks for, or a sentence saying why not."""
    origin = typing.get_origin(hint)
    options = typing.get_args(hint) if origin in (typing.Union, types.UnionType) else (hint,)
    if type(None) in options and (value is None or value == "none"):
        return None
    classes = [option for option in options if dataclasses.is_dataclass(option)]
    if classes:
        if isinstance(value, tuple(typing.cast(Any, classes))):
            return value
        require(isinstance(value, Mapping), f"{where} must be a table of settings, got {value!r}")
        return from_dict(_choose(classes, value, where), value, f"{where}.")
    if any(typing.get_origin(option) is Literal for option in options):
        require_one_of(where, value, typing.get_args(options[0]))
        return value
    plain = tuple(option for option in options if option is not type(None))
    if float in plain and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    wanted = " or ".join(_NAMES[option] for option in plain)
    valid = isinstance(value, plain) and (bool in plain or not isinstance(value, bool))
    require(valid, f"{where} must be {wanted}, got {value!r}")
    return value


_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _choose(classes: list[Any], value: Mapping[str, Any], where: str) -> Any:
    """The one class, or the one that the key `kind` names."""
    if len(classes) == 1:
        return classes[0]
    kinds = {cls.kind: cls for cls in classes}
    require("kind" in value, f"{where}.kind is missing; it must be one of {', '.join(kinds)}")
    require_one_of(f"{where}.kind", value["kind"], kinds)
    return kinds[value["kind"]]
