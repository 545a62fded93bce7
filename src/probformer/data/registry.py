"""What is known of each corpus: its licence, where to get it, and how to tell its files apart.

The facts are in `registry.toml`; nothing is downloaded here, see `probformer.data.fetch`.
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
    """Where it may be downloaded, compressed or not, whatever its name says."""


@dataclass(frozen=True)
class Corpus:
    """A corpus, kept in a folder of its name."""

    name: str
    title: str
    licence: str
    home: str
    """Its home page or, where it cannot be downloaded, where to get it."""
    files: tuple[CorpusFile, ...] = ()
    """None where nothing but the place to get them is known."""


def list_corpora() -> list[Corpus]:
    """All that the registry knows."""
    return list(_registry().values())


def find_corpus(name: str) -> Corpus:
    """The corpus of that name; a wrong name is answered with those that come close."""
    known = _registry()
    if name in known:
        return known[name]
    listed = ", ".join(get_close_matches(name, known) or known)
    raise InputError(f"there is no corpus named {name!r}, expected one of {listed}")


@cache
def _registry() -> dict[str, Corpus]:
    text = resources.files("probformer.data").joinpath("registry.toml").read_text("utf-8")
    return {name: _corpus(name, **facts) for name, facts in tomllib.loads(text).items()}


def _corpus(
    name: str, title: str, licence: str, home: str, files: dict[str, dict] | None = None
) -> Corpus:
    found = tuple(CorpusFile(file, **facts) for file, facts in (files or {}).items())
    return Corpus(name, title, licence, home, found)
