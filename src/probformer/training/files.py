"""Files that are either whole or not there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import load_file, save_file
from torch import Tensor

from probformer.errors import InputError

_SUMS = "sha256.json"


def write_text(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}") from None


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    temporary = path.with_name(path.name + ".part")
    try:
        save_file({name: t.detach().contiguous() for name, t in tensors.items()}, temporary)
    except safetensors.SafetensorError as error:  # a full disk, most likely
        raise InputError(f"{path}: cannot be written, what was there is kept: {error}") from None
    os.replace(temporary, path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: cannot be read as safetensors: {error}") from None


def seal(folder: Path, target: Path) -> None:
    """Make a folder of finished files appear as `target`, with their checksums."""
    write_json(folder / _SUMS, {p.name: _sha256(p) for p in sorted(folder.iterdir())})
    if target.exists():
        shutil.rmtree(target)
    os.replace(folder, target)


def is_sealed(folder: Path) -> bool:
    """Whether all files of a sealed folder are there as they were written."""
    try:
        sums = read_json(folder / _SUMS)
        return all(_sha256(folder / name) == value for name, value in sums.items())
    except (InputError, OSError):
        return False


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
