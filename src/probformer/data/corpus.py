"""The splits of a corpus, from the built-in grammar or from files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from probformer.config import BuiltinData, DataSettings, FileData, VocabularySettings
from probformer.data.builtin import builtin_cogs, builtin_corpus
from probformer.data.readers import SentenceFile
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.errors import InputError, require

_OF_TEN_DOCUMENTS = {"train": range(8), "dev": range(8, 9), "test": range(9, 10)}


@dataclass(frozen=True)
class FileSplit:
    """The sentences of some files, read anew in each loop over them."""

    files: tuple[SentenceFile, ...]
    first: int | None = None
    """Only so many of them."""
    of_ten_documents: Sequence[int] = ()
    """Only those of so many documents in ten."""

    def __iter__(self) -> Iterator[Sentence]:
        sentences: Iterable[Sentence] = chain.from_iterable(self.files)
        if self.of_ten_documents:
            sentences = _of_documents(sentences, self.of_ten_documents)
        return islice(sentences, self.first)


@dataclass(frozen=True)
class Corpus:
    splits: dict[str, Iterable[Sentence]]
    """ "train", "dev", "test", and perhaps "gen"; each can be read many times."""
    counted: Iterable[Sentence]
    """Where the vocabulary is counted."""

    def digests(self) -> dict[str, str]:
        """By name, of all sentences, wherever they lie: others have other ones.

        Of texts, where an `EncodedSplit` has one of numbers, which change with the vocabulary.
        """
        counted = {} if self.counted is self.splits["train"] else {"vocabulary": self.counted}
        return {name: _digest(found) for name, found in (self.splits | counted).items()}


def _digest(sentences: Iterable[Sentence]) -> str:
    found = hashlib.sha256()
    for sentence in sentences:
        found.update(repr(replace(sentence, path="", line=0)).encode())
    return found.hexdigest()


def load_corpus(settings: DataSettings, folder: Path) -> Corpus:
    """The corpus that settings describe; files are looked for below `folder`."""
    match settings:
        case BuiltinData(size=size, seed=seed):
            build = builtin_cogs if settings.corpus == "cogs" else builtin_corpus
            splits = dict[str, Iterable[Sentence]](build(size, seed))
            return Corpus(splits, splits["train"])
        case FileData():
            return _from_files(settings, folder / settings.folder)


def load_split(settings: DataSettings, folder: Path, name: str) -> Iterable[Sentence]:
    """One split of the corpus, whether or not the files of the others are there."""
    files = isinstance(settings, FileData)
    splits = {} if files else load_corpus(settings, folder).splits
    names = _names(settings) if files else [*splits]
    require(name in names, f"split must be one of {', '.join(names)}, got {name!r}")
    return _of_files(settings, folder / settings.folder, name) if files else splits[name]


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
    """A file of that name, or all that match the patterns in it, in the order of their names."""
    paths = [root / given]
    if not paths[0].exists() and paths[0].with_name(paths[0].name + ".gz").is_file():
        paths = [paths[0].with_name(paths[0].name + ".gz")]
    if not paths[0].exists() and any(sign in given for sign in "*?[ "):
        paths = [path for pattern in given.split() for path in _matches(root, pattern)]
    for path in paths or [root / given]:
        require(path.exists(), f"{path}: there is no such file; --data says where the data is")
        message = "is no file that can be read several times"
        require(path.is_file(), f"{path}: {message}")
    named = settings.format in ("columns", "tsv")
    return tuple(
        SentenceFile(
            path,
            settings.format,
            settings.columns.split() if named else (),
            settings.skip_bad_lines,
            settings.prepare,
        )
        for path in paths
    )


def _matches(root: Path, pattern: str) -> list[Path]:
    try:
        found = sorted(root.glob(pattern))
    except (NotImplementedError, ValueError) as error:
        raise InputError(f"{pattern}: is no pattern of files: {error}") from None
    return found or [root / pattern]  # which is then said not to be there


def _of_documents(sentences: Iterable[Sentence], chosen: Sequence[int]) -> Iterator[Sentence]:
    number, document = -1, None
    for sentence in sentences:
        if sentence.document != document:
            number, document = number + 1, sentence.document
        if number % 10 in chosen:
            yield sentence


def build_vocabulary(settings: VocabularySettings, sentences: Iterable[Sentence]) -> Vocabulary:
    words = (sentence.words for sentence in sentences)
    if settings.kind == "subwords":
        assert settings.size is not None
        return Vocabulary.from_subwords(words, settings.size, settings.lower)
    return Vocabulary.from_sentences(words, settings.min_frequency, settings.size, settings.lower)
