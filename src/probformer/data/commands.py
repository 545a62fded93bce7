"""The commands `probformer data list`, `fetch` and `check`."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from probformer.data.fetch import check_corpus, fetch_corpus
from probformer.data.registry import find_corpus, list_corpora
from probformer.errors import InputError


def print_corpora() -> None:
    table = Table("name", "what", "size", "licence", "fetch")
    for corpus in list_corpora():
        size = sum(file.size for file in corpus.files)
        free = bool(corpus.files) and all(file.address for file in corpus.files)
        how = "yes" if free else corpus.home
        table.add_row(
            corpus.name, corpus.title, f"{size / 1e6:.1f} MB" if size else "", corpus.licence, how
        )
    Console().print(table)


def fetch_corpora(names: list[str], folder: Path, source: str | None) -> None:
    corpora = [find_corpus(name) for name in names]
    for corpus in corpora:
        print(f"{corpus.name}: {corpus.title}; licence: {corpus.licence}")
        fetched = fetch_corpus(corpus, folder, source, _progress if sys.stderr.isatty() else None)
        for path in fetched:
            print(f"  {path}")
        if not fetched:
            print("  all files are there already")


def _progress(name: str, done: int, total: int) -> None:
    of = f" of {total / 1e6:.1f}" if total else ""
    print(f"\r\033[K{name}: {done / 1e6:.1f}{of} MB", end="", file=sys.stderr, flush=True)
    if done == total:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def check_corpora(names: list[str], folder: Path) -> None:
    """Check the named corpora, or all in the folder; an error if a file is missing or differs."""
    corpora = [find_corpus(name) for name in names] or [
        corpus for corpus in list_corpora() if (folder / corpus.name).is_dir()
    ]
    if not corpora:
        raise InputError(
            f"{folder}: has no folder of a known corpus; `probformer data list` names them"
        )
    wrong = 0
    for corpus in corpora:
        states = check_corpus(corpus, folder)
        if not states:
            print(f"no checksums are known: {folder / corpus.name}")
        for state in states:
            print(state)
        wrong += sum(state.state != "ok" for state in states)
    if wrong:
        raise InputError(f"{folder}: {wrong} of the files are missing or not the expected ones")
