"""The sentences that commands read: of a file, of a split of the run's data, or just one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probformer.config import FileData
from probformer.data.corpus import FileSplit, load_split
from probformer.data.readers import Format, SentenceFile
from probformer.data.sentence import Sentence
from probformer.errors import counted, require
from probformer.runs.prediction import check_length
from probformer.runs.run_folder import Run
from probformer.training.progress import LineReporter
from probformer.training.splits import skipped_lines

_FORMATS: dict[str, Format] = {".conllu": "conllu", ".mrg": "mrg", ".txt": "text"}


def check_source(file: Path | None, split: str | None) -> None:
    require(file is None or split is None, "give a file or --split, not both")


def read_text(
    run: Run, file: Path | None, data: Path, split: str, format: Format | None = None
) -> list[Sentence]:
    """Of the file if there is one, by its name or in a format; otherwise of the split.

    What bad lines spoiled, where the run's settings leave that out, is said on standard error.
    """
    own = run.settings.data
    text = load_split(own, data, split) if file is None else _of_file(run, file, format)
    sentences = list(text)
    for warning in skipped_lines(text):
        LineReporter().warn(warning)
    for sentence in sentences:
        check_length(run, sentence.words, sentence.place())
    return sentences


def words_of(sentence: str) -> list[str]:
    """Of one that stands on the command line."""
    words = sentence.split()
    require(bool(words), "a sentence must have words, got none")
    return words


def count_unknown(run: Run, sentences: Iterable[Sentence]) -> int:
    return sum(run.vocabulary.count_unknown(sentence.words) for sentence in sentences)


def size_text(sentences: int, words: int, unknown: int) -> str:
    """The same for every command."""
    return f"{counted(sentences, 'sentence')}, {counted(words, 'word')} ({unknown:,} unknown)"


def _of_file(run: Run, file: Path, format: Format | None) -> FileSplit:
    """In the format of the run's own files if it is called like them, or in that of its name."""
    own, kind = run.settings.data, _kind(file)
    if format is not None:
        found = SentenceFile(file, format)
    elif isinstance(own, FileData) and (kind == _kind(Path(own.train)) or kind not in _FORMATS):
        columns = own.columns.split() if own.format in ("columns", "tsv") else ()
        found = SentenceFile(file, own.format, columns, own.skip_bad_lines, own.prepare)
    else:
        expected = f"expected one that ends in {', '.join(_FORMATS)}"
        require(kind in _FORMATS, f"{file}: the name says nothing about the format, {expected}")
        found = SentenceFile(file, _FORMATS[kind])
    return FileSplit((found,))


def _kind(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix
