"""The splits of a corpus, from the built-in grammar or from files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probformer.config import BuiltinData, DataSettings, FileData, VocabularySettings
from probformer.data.builtin import builtin_corpus
from probformer.data.readers import SentenceFile
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary

Corpus = dict[str, Iterable[Sentence]]
"""Split by name: "train", "dev", "test"; each can be read again and again."""


def load_corpus(settings: DataSettings, folder: Path) -> Corpus:
    """The corpus that settings describe; files are looked for below `folder`."""
    match settings:
        case BuiltinData(size=size, seed=seed):
            return dict(builtin_corpus(size, seed))
        case FileData():
            root = folder / settings.folder
            return {
                split: SentenceFile(
                    root / getattr(settings, split),
                    format=settings.format,
                    columns=settings.columns.split() if settings.format == "columns" else (),
                    skip_bad_lines=settings.skip_bad_lines,
                )
                for split in ("train", "dev", "test")
            }


def build_vocabulary(settings: VocabularySettings, sentences: Iterable[Sentence]) -> Vocabulary:
    words = (sentence.words for sentence in sentences)
    if settings.kind == "subwords":
        assert settings.size is not None
        return Vocabulary.from_subwords(words, settings.size, settings.lower)
    return Vocabulary.from_sentences(words, settings.min_frequency, settings.size, settings.lower)
