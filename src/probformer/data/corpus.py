"""The splits of a corpus, from the built-in grammar or from files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from probformer.config import BuiltinData, DataSettings, FileData, VocabularySettings
from probformer.data.builtin import builtin_cogs, builtin_corpus
from probformer.data.formats import find_format
from probformer.data.formats.format import settings_of
from probformer.data.readers import SentenceFile
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.errors import InputError, require

_OF_TEN_DOCUMENTS = {"train": range(8), "dev": range(8, 9), "test": range(9, 10)}


@dataclass(frozen=True)
class FileSplit:
    """The sentences of several files, one file after the other; each loop reads them again."""

    files: tuple[SentenceFile, ...]
    first: int | None = None
    """The maximum number of sentences."""
    of_ten_documents: Sequence[int] = ()
    """Which documents of every ten, from 0 to 9; all if empty."""

    def __iter__(self) -> Iterator[Sentence]:
        sentences: Iterable[Sentence] = chain.from_iterable(self.files)
        if self.of_ten_documents:
            sentences = _of_documents(sentences, self.of_ten_documents)
        return islice(sentences, self.first)


@dataclass(frozen=True)
class Corpus:
    """The splits of a corpus, and the sentences whose words make the vocabulary."""

    splits: dict[str, Iterable[Sentence]]
    """ "train", "dev", "test", and "gen" where there is one; each can be read several times."""
    counted: Iterable[Sentence]
    """The sentences in which words are counted for the vocabulary."""

    def digests(self) -> dict[str, str]:
        """A SHA-256 for each split, of its sentences without their paths and lines.

        It does not depend on the vocabulary, as the digest of an `EncodedSplit` does.
        """
        counted = {} if self.counted is self.splits["train"] else {"vocabulary": self.counted}
        return {name: _digest(found) for name, found in (self.splits | counted).items()}


def _digest(sentences: Iterable[Sentence]) -> str:
    found = hashlib.sha256()
    for sentence in sentences:
        found.update(repr(replace(sentence, path="", line=0)).encode())
    return found.hexdigest()


def load_corpus(settings: DataSettings, folder: Path) -> Corpus:
    """The corpus that settings describe.

    Args:
        settings: `BuiltinData` or `FileData`, as in `RunSettings.data`.
        folder: The folder that `FileData.folder` is relative to, as given with --data.

    Returns:
        Its splits. Files are opened only when a split is iterated.

    Raises:
        InputError: A file is missing, or the format is not registered.
    """
    match settings:
        case BuiltinData(size=size, seed=seed):
            build = builtin_cogs if settings.corpus == "cogs" else builtin_corpus
            splits = dict[str, Iterable[Sentence]](build(size, seed))
            return Corpus(splits, splits["train"])
        case FileData():
            return _from_files(settings, folder / settings.folder)


def load_split(settings: DataSettings, folder: Path, name: str) -> Iterable[Sentence]:
    """One split of a corpus; the files of the other splits may be missing.

    Args:
        settings: As for `load_corpus`.
        folder: As for `load_corpus`.
        name: "train", "dev", "test" or "gen".

    Returns:
        The sentences of the split, which can be iterated several times.

    Raises:
        InputError: There is no such split, a file of it is missing, or the format is not
            registered.
    """
    files = isinstance(settings, FileData)
    splits = {} if files else load_corpus(settings, folder).splits
    names = _names(settings) if files else [*splits]
    require(name in names, f"split must be one of {', '.join(names)}, got {name!r}")
    return _of_files(settings, folder / settings.folder, name) if files else splits[name]


def sentence_file(settings: FileData, path: Path) -> SentenceFile:
    """One file, in the format of the settings, with `columns` if the format takes them."""
    takes_columns = "columns" in settings_of(find_format(settings.format, "data.format"))
    columns = settings.columns.split() if takes_columns else ()
    return SentenceFile(path, settings.format, columns, settings.skip_bad_lines, settings.prepare)


def _names(settings: FileData) -> list[str]:
    return [name for name in ("train", "dev", "test", "gen") if getattr(settings, name)]


def _of_files(settings: FileData, root: Path, name: str) -> FileSplit:
    return FileSplit(
        _files(settings, root, getattr(settings, name)),
        first=settings.first if name == "train" else None,
        of_ten_documents=_OF_TEN_DOCUMENTS[name] if settings.by_document else (),
    )


def _from_files(settings: FileData, root: Path) -> Corpus:
    splits: dict[str, Iterable[Sentence]] = {
        name: _of_files(settings, root, name) for name in _names(settings)
    }
    counted = splits["train"]
    if settings.vocabulary:
        counted = FileSplit(_files(settings, root, settings.vocabulary))
    return Corpus(splits, counted)


def _files(settings: FileData, root: Path, given: str) -> tuple[SentenceFile, ...]:
    """The file of that name, or all that match the patterns in it, sorted by name."""
    paths = [root / given]
    if not paths[0].exists() and paths[0].with_name(paths[0].name + ".gz").is_file():
        paths = [paths[0].with_name(paths[0].name + ".gz")]
    if not paths[0].exists() and any(sign in given for sign in "*?[ "):
        paths = [path for pattern in given.split() for path in _matches(root, pattern)]
    for path in paths or [root / given]:
        require(path.exists(), f"{path}: there is no such file; --data names the data folder")
        require(path.is_file(), f"{path}: expected a regular file, which can be read several times")
    return tuple(sentence_file(settings, path) for path in paths)


def _matches(root: Path, pattern: str) -> list[Path]:
    try:
        found = sorted(root.glob(pattern))
    except (NotImplementedError, ValueError) as error:
        raise InputError(f"{pattern}: not a valid pattern of file names: {error}") from None
    return found or [root / pattern]  # the caller reports that it does not exist


def _of_documents(sentences: Iterable[Sentence], chosen: Sequence[int]) -> Iterator[Sentence]:
    number, document = -1, None
    for sentence in sentences:
        if sentence.document != document:
            number, document = number + 1, sentence.document
        if number % 10 in chosen:
            yield sentence


def build_vocabulary(settings: VocabularySettings, sentences: Iterable[Sentence]) -> Vocabulary:
    """The vocabulary of the words in `sentences`, as the settings describe it."""
    words = (sentence.words for sentence in sentences)
    if settings.kind == "subwords":
        assert settings.size is not None
        return Vocabulary.from_subwords(words, settings.size, settings.lower)
    return Vocabulary.from_sentences(words, settings.min_frequency, settings.size, settings.lower)
