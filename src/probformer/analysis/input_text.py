"""The sentences that a command works on: of a file, of a split, or from the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probformer.config import FileData
from probformer.data.corpus import FileSplit, load_split, sentence_file
from probformer.data.formats import formats_by_suffix
from probformer.data.readers import SentenceFile
from probformer.data.sentence import Sentence
from probformer.data.unparsed import suffix_of
from probformer.errors import counted, require
from probformer.runs.prediction import check_length
from probformer.runs.run_folder import Run
from probformer.training.progress import LineReporter
from probformer.training.splits import skipped_lines


def check_source(file: Path | None, split: str | None) -> None:
    require(file is None or split is None, "give a file or --split, not both")


def check_not_overwritten(out: Path, sources: Iterable[str]) -> None:
    """Check that the output does not take the place of a file that is read."""
    if out.exists():
        for path in sources:
            require(not out.samefile(path), f"{out}: --out would overwrite what is parsed")


def read_text(
    run: Run, file: Path | None, data: Path, split: str, format: str | None = None
) -> list[Sentence]:
    """Sentences of the file or, without one, of a split of the run's data.

    `format` overrides the format that the suffix of the file chooses. A warning on standard error
    counts the sentences with bad lines, if the run's settings skip them.
    """
    text = sentences_of(run, file, data, split, format)
    sentences = list(text)
    for warning in skipped_lines(text):
        LineReporter().warn(warning)
    for sentence in sentences:
        check_length(run, sentence.words, sentence.place())
    return sentences


def sentences_of(
    run: Run, file: Path | None, data: Path, split: str, format: str | None = None
) -> Iterable[Sentence]:
    """The same, read one by one, without checks of lengths."""
    if file is None:
        return load_split(run.settings.data, data, split)
    return _of_file(run, file, format)


def words_of(sentence: str) -> list[str]:
    """The words of a sentence on the command line."""
    words = sentence.split()
    require(bool(words), "a sentence must have words, got none")
    return words


def count_unknown(run: Run, sentences: Iterable[Sentence]) -> int:
    return sum(run.vocabulary.count_unknown(sentence.words) for sentence in sentences)


def size_text(sentences: int, words: int, unknown: int) -> str:
    """Size of a text, in the same form for every command."""
    return f"{counted(sentences, 'sentence')}, {counted(words, 'word')} ({unknown:,} unknown)"


def _of_file(run: Run, file: Path, format: str | None) -> FileSplit:
    """In the format of the run's data if the suffix is the same or unknown, else by the suffix."""
    own, kind, formats = run.settings.data, suffix_of(file.name), formats_by_suffix()
    if format is not None:
        found = SentenceFile(file, format)
    elif isinstance(own, FileData) and (kind == suffix_of(own.train) or kind not in formats):
        found = sentence_file(own, file)
    else:
        expected = f"expected one of {', '.join(sorted(formats))}"
        require(kind in formats, f"{file}: the file name has no known suffix, {expected}")
        found = SentenceFile(file, formats[kind])
    return FileSplit((found,))
