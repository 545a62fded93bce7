"""Downloading corpora into their folders and checking their files, byte for byte.

A corpus is taken from the addresses in the registry, or from a folder or an archive that the user
names, as for licensed corpora. Training and evaluation download nothing.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from probformer.data.registry import CorpusEntry, CorpusFile
from probformer.data.sources import (
    DAMAGED,
    Offer,
    ProgressCallback,
    blocks,
    find_offers,
    local_file,
    raw_blocks,
    reason,
)
from probformer.errors import InputError, require


@dataclass(frozen=True)
class FileState:
    """Whether a file of a corpus is there and correct."""

    file: CorpusFile
    path: Path
    state: Literal["ok", "missing", "differs"]
    size: int | None = None
    sha256: str | None = None
    """Of the file that was found, uncompressed."""

    def __str__(self) -> str:
        if self.size is None or self.sha256 is None or self.state == "ok":
            return f"{self.state}: {self.path}"
        return f"{self.state}: {self.path}: {_difference(self.file, self.size, self.sha256)}"


def check_corpus(corpus: CorpusEntry, folder: Path) -> list[FileState]:
    """The state of each file of a corpus.

    Args:
        corpus: The corpus, with the expected size and checksum of each file.
        folder: The data folder; files are in its subfolder with the corpus's name.
    """
    return [_state_of(file, folder / corpus.name / file.name) for file in corpus.files]


def fetch_corpus(
    corpus: CorpusEntry,
    folder: Path,
    source: str | None = None,
    progress: ProgressCallback | None = None,
) -> list[Path]:
    """Put the files of a corpus into its folder; those that are there and correct are kept.

    Args:
        corpus: The corpus to fetch.
        folder: The data folder; files go to its subfolder with the corpus's name.
        source: A folder, an archive (zip or tar, gzipped or not) or the address of an archive, in
            which files are found by name in any subfolder; None for the addresses in the registry.
        progress: Called with the name of a file, its bytes so far and all its bytes.

    Returns:
        The paths of the files that were written.

    Raises:
        InputError: A file is missing, differs from the registry or cannot be written. Nothing has
            been changed then.
    """
    place = folder / corpus.name
    where = f"{corpus.name} cannot be downloaded; where to get it: {corpus.home}; then"
    require(bool(corpus.files), f"{where} put its files into {place}")
    wanted = [state.file for state in check_corpus(corpus, folder) if state.state != "ok"]
    if not wanted:
        return []
    if source is None:
        known = all(file.address for file in wanted)
        how = "give its folder or archive with --from, or put its files into"
        require(known, f"{where} {how} {place}")
    paths = [place / file.name for file in wanted]
    tell = progress or (lambda name, done, total: None)
    with find_offers(wanted, source, tell) as offers, _all_or_nothing(paths) as parts:
        for file, offered, part in zip(wanted, offers, parts, strict=True):
            _take(file, offered, part, tell)
    return paths


def _difference(file: CorpusFile, size: int, digest: str) -> str:
    found = f"{size} bytes with sha256 {digest}"
    return f"not the expected file: {found}, expected {file.size} bytes with {file.sha256}"


def _state_of(file: CorpusFile, path: Path) -> FileState:
    digest, size, damaged = sha256(), 0, False
    try:
        for block in raw_blocks(local_file(path)):
            digest.update(block)
            size += len(block)
    except FileNotFoundError:
        return FileState(file, path, "missing")
    except DAMAGED:
        damaged = True  # possibly after the last byte of the text
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {reason(error)}") from None
    same = not damaged and (size, digest.hexdigest()) == (file.size, file.sha256)
    return FileState(file, path, "ok" if same else "differs", size, digest.hexdigest())


def _take(file: CorpusFile, offers: Sequence[Offer], part: Path, tell: ProgressCallback) -> None:
    """Write the first offer with the right checksum; others may have the same name."""
    problems = []
    for offer in offers:
        problem = _copy(file, offer, part, tell)
        if problem is None:
            return
        problems.append(f"{offer.where}: {problem}")
    raise InputError(problems[0])


def _copy(file: CorpusFile, offer: Offer, part: Path, tell: ProgressCallback) -> str | None:
    """Write the bytes on offer; the result is None, or why they are not the expected file."""
    digest, size = sha256(), 0
    try:
        with closing(blocks(offer)) as found, ExitStack() as opened:
            out = opened.enter_context(open(part, "wb"))
            if file.name.endswith(".gz"):
                out = opened.enter_context(gzip.GzipFile("", "wb", fileobj=out, mtime=0))
            for block in found:
                size += len(block)
                if size > file.size:
                    return f"not the expected file: more than {file.size} bytes"
                digest.update(block)
                out.write(block)
                tell(file.name, size, file.size)
    except OSError as error:
        raise InputError(f"{offer.where}: cannot be written to {part}: {reason(error)}") from None
    same = (size, digest.hexdigest()) == (file.size, file.sha256)
    return None if same else _difference(file, size, digest.hexdigest())


@contextmanager
def _all_or_nothing(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Temporary files beside the paths, renamed at the end; after an error, nothing is left."""
    place = paths[0].parent
    parts = [path.with_name(f"{path.name}.{os.getpid()}.part") for path in paths]
    new_folders = [path for path in (place, *place.parents) if not os.path.exists(path)]
    try:
        place.mkdir(parents=True, exist_ok=True)
        yield parts
        for part, path in zip(parts, paths, strict=True):
            os.replace(part, path)
    except BaseException as error:
        for remove in (*[part.unlink for part in parts], *[path.rmdir for path in new_folders]):
            with suppress(OSError):
                remove()
        if isinstance(error, OSError):
            raise InputError(f"{place}: cannot be written: {reason(error)}") from None
        raise
