"""Files that are either whole or absent, even after a crash of the machine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import safetensors
from safetensors.torch import load_file, save_file
from torch import Tensor

from probformer.errors import InputError

_SUMS = "sha256.json"


def require_writable(path: Path, folder: bool = False) -> None:
    """Check before long work that a file, or files in a folder, can be written there."""
    if path.is_dir() and not folder:
        raise InputError(f"{path}: is a folder, expected a file to write to")
    if path.exists() and not path.is_dir() and folder:
        raise InputError(f"{path}: is a file, expected a folder to write to")
    nearest = next(parent for parent in (path, *path.parents) if parent.exists())
    if nearest != path and not nearest.is_dir():
        raise InputError(f"{path}: cannot be written: {nearest} is not a folder")
    # Files are written beside their place and then renamed, so their folder must be writable too.
    for place in (nearest, nearest.parent) if nearest.is_file() else (nearest,):
        if not os.access(place, os.W_OK):
            raise InputError(f"{path}: cannot be written: no permission to write to {place}")


def write_text(path: Path, text: str) -> None:
    """Write or replace a file of text in UTF-8."""
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        bad = repr(text[error.start : error.end])
        raise InputError(f"{path}: cannot be written: {bad} is not valid in UTF-8") from None
    write_bytes(path, content)


def write_bytes(path: Path, content: bytes) -> None:
    """Write or replace a file."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces the one at `path` when the context ends without error."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected a file to write to")
    if path.exists() and not path.is_file():  # a terminal or a pipe
        with path.open("wb") as file:
            yield file
        return
    temporary = path.with_name(path.name + ".part")
    try:
        with temporary.open("wb") as file:
            yield file
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _put(temporary, path)


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}") from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    temporary = path.with_name(path.name + ".part")
    try:
        save_file({name: t.detach().contiguous() for name, t in tensors.items()}, temporary)
    except safetensors.SafetensorError as error:  # most likely a full disk
        temporary.unlink(missing_ok=True)
        raise InputError(
            f"{path}: cannot be written; the earlier file, if any, is kept: {error}"
        ) from None
    temporary.chmod(0o666 & ~_umask())  # safetensors makes files that only their owner can read
    _put(temporary, path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: cannot be read as safetensors: {error}") from None


def share(source: Path, target: Path) -> None:
    """Give a file a second name by a hard link, or by a copy where links are not possible."""
    if target.exists() and source.samefile(target):
        return  # renaming a link onto its own file does nothing
    temporary = target.with_name(target.name + ".part")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copyfile(source, temporary)
    _put(temporary, target)


def seal(folder: Path, target: Path) -> None:
    """Add checksums to a folder of finished files, and rename it to `target`.

    A folder with checksums is complete: they are written last.
    """
    write_json(folder / _SUMS, {p.name: _sha256(p) for p in sorted(folder.iterdir())})
    if target.exists():
        shutil.rmtree(target)
    _put(folder, target)


def is_sealed(folder: Path) -> bool:
    """Whether all files of a sealed folder agree with their checksums."""
    try:
        sums = read_json(folder / _SUMS)
        return bool(sums) and all(_sha256(folder / name) == sum_ for name, sum_ in sums.items())
    except (InputError, OSError, AttributeError):
        return False


def _put(temporary: Path, path: Path) -> None:
    """Rename a file; contents and name are on disk when this returns."""
    _to_disk(temporary)
    os.replace(temporary, path)
    _to_disk(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _to_disk(path: Path) -> None:
    if os.name != "posix":
        return  # on other systems folders cannot be opened
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
