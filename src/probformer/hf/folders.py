"""Checks of a model folder, before its weights are loaded and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from probformer.errors import InputError, require
from probformer.runs.run_folder import FORMAT_VERSION, WEIGHTS

_MAX_NAMES = 3


def check_folder(folder: Path) -> None:
    """Refuse a folder without config.json, without weights, or with weights in a pickle."""
    require(
        (folder / "config.json").is_file(), f"{folder}: is no run folder: config.json is missing"
    )
    if (folder / WEIGHTS).is_file():
        return
    pickles = sorted(path.name for path in folder.glob("pytorch_model*.bin"))
    if pickles:
        reason = "is a pickle, which can execute code"
        raise InputError(f"{folder}: {pickles[0]} {reason}: weights are loaded from {WEIGHTS} only")
    raise InputError(f"{folder}: has no weights: {WEIGHTS} is missing")


def check_description(name: str, config: Mapping[str, Any]) -> None:
    kind, version = config.get("model_type"), config.get("format_version")
    require(
        kind == "probformer",
        f"{name}: is no run: config.json has the model type {kind!r}, expected 'probformer'",
    )
    known = f"this version reads {FORMAT_VERSION}"
    require(version == FORMAT_VERSION, f"{name}: has the format version {version!r}, {known}")


def refuse_misfits(name: str, weights: Mapping[str, Iterable[str]]) -> None:
    """Raise one sentence about weights that are missing, unknown or of another shape."""
    for what, names in weights.items():
        found = sorted(names)
        if found:
            more = f" and {len(found) - _MAX_NAMES} others" if len(found) > _MAX_NAMES else ""
            listed = ", ".join(found[:_MAX_NAMES]) + more
            raise InputError(f"{name}: the weights do not fit config.json: {what} {listed}")
