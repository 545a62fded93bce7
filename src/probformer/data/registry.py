"""Known corpora: their licences, where to get them, and the checksums of their files.

The entries are in `registry.toml`; `probformer.data.fetch` downloads them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources

from probformer.errors import InputError


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus; where its name ends in ".gz", size and sha256 are of the text inside."""

    name: str
    size: int
    sha256: str
    address: str | None = None
    """Where it can be downloaded, compressed or not, whether or not its name ends in ".gz"."""


@dataclass(frozen=True)
class CorpusEntry:
    """A corpus in the registry; its files are in a folder with its name."""

    name: str
    title: str
    licence: str
    home: str
    """Its home page or, if it cannot be downloaded, where to get it."""
    files: tuple[CorpusFile, ...] = ()
    """Empty if the registry has no checksums."""


def list_corpora() -> list[CorpusEntry]:
    """All corpora in the registry."""
    return list(_registry().values())


def find_corpus(name: str) -> CorpusEntry:
    """The corpus of that name; the error for an unknown name lists similar names."""
    known = _registry()
    if name in known:
        return known[name]
    listed = ", ".join(get_close_matches(name, known) or known)
    raise InputError(f"there is no corpus named {name!r}, expected one of {listed}")


@cache
def _registry() -> dict[str, CorpusEntry]:
    text = resources.files("probformer.data").joinpath("registry.toml").read_text("utf-8")
    return {name: _corpus(name, **facts) for name, facts in tomllib.loads(text).items()}


def _corpus(
    name: str, title: str, licence: str, home: str, files: dict[str, dict] | None = None
) -> CorpusEntry:
    found = tuple(CorpusFile(file, **facts) for file, facts in (files or {}).items())
    return CorpusEntry(name, title, licence, home, found)
