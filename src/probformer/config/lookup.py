"""Run settings from a bundled config or from a file, with changes from the command line."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any

from probformer.config.reading import from_dict
from probformer.config.run_settings import RunSettings
from probformer.errors import InputError, require


def read_settings(config: str, changes: list[str]) -> RunSettings:
    """The settings of a TOML file or of a bundled config, with changes.

    Args:
        config: The path of the file, or the name of the bundled config.
        changes: Settings to change, such as "training.epochs=3".

    Raises:
        InputError: There is no such config, or a setting is wrong; the message names it.
    """
    values = read_values(config, changes)
    try:
        return from_dict(RunSettings, values)
    except InputError as error:
        changed = f" with {', '.join(changes)}" if changes else ""
        raise InputError(f"{find_config(config)}{changed}: {error}") from None


def read_values(config: str, changes: list[str]) -> dict[str, Any]:
    """The same as nested dictionaries, before they are checked."""
    path = find_config(config)
    values = read_toml(path)
    values.setdefault("name", path.stem)
    for change in sorted(changes, key=_kinds_first):
        apply_change(values, change)
    return values


def _kinds_first(change: str) -> tuple[bool, int]:
    """A sort key: changing `kind` clears its table, so it is applied before other changes."""
    *tables, name = change.partition("=")[0].strip().split(".")
    return name != "kind", len(tables) if name == "kind" else 0


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as TOML: {error}") from None


def shipped_configs(folder: str = ".") -> dict[str, Path]:
    """The bundled configs, by name."""
    bundled = Path(__file__).parent / "bundled"
    return {path.stem: path for path in sorted((bundled / folder).glob("*.toml"))}


def find_config(config: str, folder: str = ".", what: str = "config") -> Path:
    path = Path(config)
    if path.is_file():
        return path
    shipped = shipped_configs(folder)
    if config not in shipped:
        close = difflib.get_close_matches(config, shipped, n=3) or list(shipped)
        listed = f"is neither a file nor a bundled {what}, such as {', '.join(close)}"
        raise InputError(f"{config}: {listed}")
    return shipped[config]


def apply_change(values: dict[str, Any], change: str) -> None:
    key, sign, text = change.partition("=")
    require(bool(sign and key), f"--set must be like training.epochs=3, got {change!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word is a text
    put_value(values, key.strip(), value, f"--set {change}")


def put_value(values: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set a.b.c in nested dictionaries; messages begin with `where`."""
    *tables, name = key.split(".")
    for table in tables:
        values = values.setdefault(table, {})
        require(isinstance(values, dict), f"{where}: {table} is no table of settings")
    if name == "kind" and values.get("kind") != value:
        values.clear()  # the other settings belong to the previous kind
    values.pop(name, None)
    values[name] = value  # last: it counts more than an old name of the setting
