"""Settings that check themselves, from Python, dictionaries and TOML, and back.

Unknown keys are refused by name. The key `kind` chooses the class where there are several.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from probformer.errors import InputError, is_whole, require, require_kind, require_one_of


class Settings:
    """The base of all settings: a frozen dataclass whose values have the declared types."""

    def __post_init__(self) -> None:
        for name, hint in typing.get_type_hints(type(self)).items():
            object.__setattr__(self, name, _convert(hint, getattr(self, name), name))
        self.check()

    def check(self) -> None:
        """What types cannot say: ranges, and settings that need each other."""

    @classmethod
    def current_name(cls, key: str) -> str:
        """The name of a setting that had the name `key` in an earlier version, or has it now."""
        return key


AnySettings = TypeVar("AnySettings", bound=Settings)


def from_toml(cls: type[AnySettings], path: str | Path) -> AnySettings:
    """Settings of class `cls` from a TOML file.

    Raises:
        InputError: The file cannot be read, or a setting is unknown, missing or wrong.
    """
    require_kind("path", path, str, Path)
    try:
        return from_dict(cls, tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (OSError, ValueError) as error:  # TOML and Unicode errors are ValueErrors
        raise InputError(f"{path}: cannot be read as TOML: {error}") from None


def from_dict(cls: type[AnySettings], values: Mapping[str, Any], where: str = "") -> AnySettings:
    """Settings of class `cls` from nested dictionaries.

    Args:
        cls: The class, such as `RunSettings`.
        values: Settings by name. If one is given under an old and its new name, the last counts.
        where: A prefix of names in messages, such as "encoder.".

    Raises:
        InputError: A setting is unknown, missing or wrong; the message names it.
    """
    require_kind(where.removesuffix(".") or "values", values, Mapping)
    values = {cls.current_name(key): value for key, value in values.items()}
    fields = {item.name: item for item in dataclasses.fields(typing.cast(Any, cls))}
    for key in values:
        if key not in fields:
            close = difflib.get_close_matches(str(key), fields, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            known = ", ".join(fields)
            raise InputError(f"unknown setting {where}{key}{hint}; known here: {known}")
    for name, item in fields.items():
        needed = item.default is item.default_factory is dataclasses.MISSING
        require(name in values or not needed, f"missing setting {where}{name}")
    hints = typing.get_type_hints(cls)
    given = {key: _convert(hints[key], value, f"{where}{key}") for key, value in values.items()}
    try:
        return cls(**given)
    except InputError as error:
        raise InputError(f"{where}{error}") from None


def to_dict(settings: Settings) -> dict[str, Any]:
    """The inverse of `from_dict`; None becomes "none", as TOML has no None."""
    values: dict[str, Any] = {}
    for item in dataclasses.fields(typing.cast(Any, settings)):
        value = getattr(settings, item.name)
        if isinstance(value, Settings):
            value = to_dict(value)
        if value is not None or item.default is not None:
            values[item.name] = "none" if value is None else value
    return values


def to_toml(settings: Settings) -> str:
    """Settings as a TOML document that `from_toml` reads back.

    Raises:
        InputError: A setting is a function or an object of Python, such as a `Structure`.
    """
    values = to_dict(settings)
    for name, value in flat(values).items():
        kind = getattr(value, "__name__", type(value).__name__)
        message = f"{name} is an object of Python, {kind}, which cannot be written to a file"
        require(not callable(value), message)
    return _table(values, "").lstrip("\n")


def differences(first: Settings, second: Settings) -> dict[str, tuple[Any, Any]]:
    """The settings in which two differ, by their full names, with both values."""
    before, after = flat(to_dict(first)), flat(to_dict(second))
    names = [*before, *(name for name in after if name not in before)]
    pairs = {name: (before.get(name, "none"), after.get(name, "none")) for name in names}
    return {name: (old, new) for name, (old, new) in pairs.items() if old != new}


def changes_between(first: Settings, second: Settings) -> list[str]:
    """The --set changes, a.b=c, that turn the first settings into the second, in order.

    Changing `kind` clears its table, so all settings of the new kind follow that change.
    """
    before, after = flat(to_dict(first)), flat(to_dict(second))
    kinds = [name for name in after if name.endswith(".kind") and before.get(name) != after[name]]
    forgotten = tuple(name.removesuffix("kind") for name in kinds)
    changes = {name: after[name] for name in kinds}
    for name in before:
        table, _, _ = name.rpartition(".")
        if name not in after and not name.startswith(forgotten):
            left = any(other.startswith(f"{table}.") for other in after)
            changes[name if left else table] = "none"
    for name, value in after.items():
        if before.get(name) != value or name.startswith(forgotten):
            changes[name] = value
    return [f"{name}={v if isinstance(v, str) else json.dumps(v)}" for name, v in changes.items()]


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of nested dictionaries by their full names, such as a.b.c."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found


def _table(values: Mapping[str, Any], name: str) -> str:
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    lines = [f"\n[{name}]"] if name else []
    # JSON's texts, numbers and booleans are TOML's too.
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]
    tables = [
        _table(value, f"{name}.{key}" if name else key)
        for key, value in values.items()
        if isinstance(value, Mapping)
    ]
    return "\n".join([*lines, *(table.rstrip("\n") for table in tables)]) + "\n"


def _convert(hint: Any, value: Any, where: str) -> Any:
    """`value` converted to the type `hint`; an `InputError` says why it cannot be."""
    origin = typing.get_origin(hint)
    options = typing.get_args(hint) if origin in (typing.Union, types.UnionType) else (hint,)
    if type(None) in options and (value is None or (isinstance(value, str) and value == "none")):
        return None
    classes = [option for option in options if dataclasses.is_dataclass(option)]
    if classes:
        if isinstance(value, tuple(typing.cast(Any, classes))):
            return value
        if not isinstance(value, Mapping):
            raise InputError(f"{where} must be a table of settings, got {value!r}")
        return from_dict(_choose(classes, value, where), value, f"{where}.")
    origins = [typing.get_origin(option) for option in options]
    if tuple in origins and isinstance(value, (list, tuple)):
        item, _ = typing.get_args(options[origins.index(tuple)])  # tuple[item, ...]
        return tuple(_convert(item, one, f"{where}[{i}]") for i, one in enumerate(value))
    if Literal in origins:
        if not (callable(value) and Callable in origins):
            require_one_of(where, value, typing.get_args(options[origins.index(Literal)]))
        return value
    plain = [option for option in options if option is not type(None)]
    for option in plain:
        if _fits(option, value):
            return option(value)
    wanted = " or ".join(_NAMES[option] for option in plain)
    raise InputError(f"{where} must be {wanted}, got {value!r}")


_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    list: "a list",
}


def _fits(kind: type, value: Any) -> bool:
    if kind is int:
        return is_whole(value)
    if kind is float:
        return isinstance(value, float) or (is_whole(value) and abs(value) < 2**53)
    if kind is str:  # surrogates stand for arguments of a shell that are not UTF-8
        return isinstance(value, str) and not any("\ud800" <= sign <= "\udfff" for sign in value)
    return isinstance(value, kind)


def _choose(classes: list[Any], value: Mapping[str, Any], where: str) -> Any:
    """The one class, or the one that the key `kind` names."""
    if len(classes) == 1:
        return classes[0]
    kinds = {cls.kind: cls for cls in classes}
    require("kind" in value, f"{where}.kind is missing; it must be one of {', '.join(kinds)}")
    require_one_of(f"{where}.kind", value["kind"], kinds)
    return kinds[value["kind"]]
