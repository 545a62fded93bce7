"""From words to ids and back, on the Hugging Face `tokenizers` library.

A vocabulary is saved as a `tokenizer.json`, which `tokenizers.Tokenizer.from_file` loads too, and
`PreTrainedTokenizerFast` of transformers. It has one entry for each word, or is a byte-level BPE,
for which no word is unknown. In both the first entry is "<unk>" and the last is "<mask>".
"""

from __future__ import annotations

import json
import operator
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from probformer.errors import InputError, require, require_kind, require_whole

UNKNOWN = "<unk>"
MASK = "<mask>"

_BYTES = pre_tokenizers.ByteLevel.alphabet()
_WORD_START = "Ġ"  # how byte-level BPE writes the space before a word
_LOWERCASE = normalizers.Lowercase()
_REMEMBERED_WORDS = 2**16


class Encoded(NamedTuple):
    """A sentence of n words as m ≥ n ids."""

    ids: list[int]
    """m ids."""
    word_of: list[int]
    """m positions: that of the word each id belongs to, in order."""


class Vocabulary:
    """Maps the words of sentences to ids and back. Made by `from_sentences` or `from_subwords`.

    Words are encoded as they are given. The saved tokenizer, which splits text at white space,
    finds the same words unless a word has white space in it.

    Args:
        tokenizer: A tokenizer that an instance of this class has saved.

    Attributes:
        words: The entries by id.
        lower: Whether words are turned into lower case.
        subwords: Whether it is a byte-level BPE.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        pipeline = _pipeline(tokenizer)
        self.lower: bool = tokenizer.normalizer is not None
        self.subwords: bool = pipeline == _pipeline(_byte_tokenizer(self.lower))
        if not self.subwords:
            whole_words = _pipeline(_word_tokenizer({UNKNOWN: 0}, self.lower))
            expected = "have whole words, split at white space, or be a byte-level BPE"
            require(pipeline == whole_words, f"the tokenizer must {expected}")
        self._tokenizer = tokenizer
        self._ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
        self.words: list[str] = sorted(self._ids, key=self._ids.__getitem__)
        for entry, place, wanted in ((UNKNOWN, "first", 0), (MASK, "last", len(self) - 1)):
            found = self._ids.get(entry)
            got = "it has none" if found is None else f"its id is {found} of {len(self)}"
            require(found == wanted, f"the tokenizer must have {entry!r} as {place} entry, {got}")
        self._pieces: Callable[[str], list[int]] = lru_cache(_REMEMBERED_WORDS)(self._split_word)

    @classmethod
    def from_sentences(
        cls,
        sentences: Iterable[Sequence[str]],
        min_frequency: int = 1,
        size: int | None = None,
        lower: bool = False,
    ) -> Vocabulary:
        """One entry for each word, by decreasing frequency; equally frequent words by code points.

        Args:
            sentences: The words of each sentence. "<unk>" and "<mask>" among them are the special
                entries, so text in which rare words are replaced already can be used as it is.
            min_frequency: Words that are rarer get no entry.
            size: The maximum number of entries, "<unk>" and "<mask>" included; at least 3.
            lower: Turn all words into lower case.

        Raises:
            InputError: There are no words, or an argument is out of range.
        """
        require_whole("min_frequency", min_frequency)
        if size is not None:
            require_whole("size", size, 3)
        counts = Counter(chain.from_iterable(_checked(sentences)))
        for word in counts:
            _check_word(word)
        if lower:
            given, counts = counts, Counter()
            for word, count in given.items():
                counts[_lowercase(word)] += count
        require(bool(counts), "the sentences must have words to make a vocabulary of, got none")
        for special in (UNKNOWN, MASK):
            counts.pop(special, None)
        frequent = [word for word, count in counts.items() if count >= min_frequency]
        frequent.sort(key=lambda word: (-counts[word], word))
        kept = frequent if size is None else frequent[: size - 2]
        ids = {word: index for index, word in enumerate([UNKNOWN, *kept, MASK])}
        return cls(_word_tokenizer(ids, lower))

    @classmethod
    def from_subwords(
        cls, sentences: Iterable[Sequence[str]], size: int, lower: bool = False
    ) -> Vocabulary:
        """A byte-level BPE, learned from the sentences.

        Args:
            sentences: The words of each sentence.
            size: The maximum number of entries, at least 258: all bytes, "<unk>" and "<mask>".
            lower: Turn all words into lower case.

        Raises:
            InputError: There are no words, or `size` is too small.
        """
        require_whole("size", size, len(_BYTES) + 2)
        seen = 0

        def batches() -> Iterator[list[str]]:
            nonlocal seen
            for sentence in _checked(sentences):
                for word in sentence:
                    _check_word(word)
                seen += len(sentence)
                yield [word for word in sentence if word not in (UNKNOWN, MASK)]

        tokenizer = _byte_tokenizer(lower)
        trainer = trainers.BpeTrainer(
            vocab_size=size - 1,  # the mask comes last
            special_tokens=[UNKNOWN],
            initial_alphabet=_BYTES,
            show_progress=False,
        )
        tokenizer.train_from_iterator(batches(), trainer)
        require(seen > 0, "the sentences must have words to make a vocabulary of, got none")
        tokenizer.add_special_tokens([MASK])
        return cls(tokenizer)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """From a `tokenizer.json` that `save` wrote."""
        require_kind("path", path, str, os.PathLike)
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{os.fspath(path)}: there is no such file") from None
        except InputError as error:
            raise InputError(f"{os.fspath(path)}: {error}") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{os.fspath(path)}: the file cannot be read: {error}") from None

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """From the text of a `tokenizer.json`."""
        try:
            tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # the library raises no other class
            raise InputError(f"not a tokenizer of the library `tokenizers`: {error}") from None
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return cls(tokenizer)

    def to_json(self) -> str:
        """The text of a `tokenizer.json`."""
        return self._tokenizer.to_str(pretty=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `tokenizer.json`."""
        require_kind("path", path, str, os.PathLike)
        try:
            Path(path).write_text(self.to_json() + "\n", encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{os.fspath(path)}: the file cannot be written: {error}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as JSON: the cache of pieces is not copied."""
        return Vocabulary.from_json, (self.to_json(),)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def unk(self) -> int:
        """The id of the unknown word."""
        return 0

    @property
    def mask(self) -> int:
        """The id of the mask."""
        return len(self) - 1

    def __contains__(self, entry: object) -> bool:
        return isinstance(entry, str) and self._entry(entry) in self._ids

    def id_of(self, entry: str) -> int:
        """The id of an entry, `unk` if there is none; subword entries are pieces of words."""
        return self._ids.get(self._entry(entry), self.unk)

    def encode(self, words: Sequence[str]) -> Encoded:
        """The ids of the words of one sentence.

        Args:
            words: n words.

        Returns:
            m ≥ n ids, and the position of the word that each belongs to.
        """
        require(not isinstance(words, str), f"words must be a sequence of words, got {words!r}")
        if self.subwords:
            pieces = [(at, piece) for at, word in enumerate(words) for piece in self._pieces(word)]
            return Encoded([piece for _, piece in pieces], [at for at, _ in pieces])
        if self.lower:
            words = [_lowercase(word) for word in words]
        ids = self._ids
        return Encoded([ids.get(word, 0) for word in words], list(range(len(words))))

    def count_unknown(self, words: Sequence[str]) -> int:
        """The number of words with the id `unk` among their ids."""
        ids, word_of = self.encode(words)
        return len({at for index, at in zip(ids, word_of, strict=True) if index == self.unk})

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The words with these ids; pieces of a word are joined."""
        ids = [operator.index(index) for index in ids]
        for index in ids:
            allowed = f"numbers from 0 to {len(self) - 1}"
            require(0 <= index < len(self), f"ids must be {allowed}, got {index}")
        if not self.subwords:
            return [self.words[index] for index in ids]
        groups: list[list[int]] = []
        for index in ids:
            special = index in (self.unk, self.mask)
            after_special = not groups or groups[-1][0] in (self.unk, self.mask)
            if special or after_special or self.words[index].startswith(_WORD_START):
                groups.append([])
            groups[-1].append(index)
        texts = [self._tokenizer.decode(group, skip_special_tokens=False) for group in groups]
        return [text.removeprefix(" ") for text in texts]

    def _entry(self, entry: str) -> str:
        return _lowercase(entry) if self.lower and not self.subwords else entry

    def _split_word(self, word: str) -> list[int]:
        _check_word(word)
        return self._tokenizer.encode(word, add_special_tokens=False).ids or [self.unk]


def _word_tokenizer(ids: dict[str, int], lower: bool) -> Tokenizer:
    """Special entries are plain words here, so that they are not found inside longer words."""
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if lower:
        tokenizer.normalizer = _LOWERCASE
    return tokenizer


def _byte_tokenizer(lower: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    if lower:
        tokenizer.normalizer = _LOWERCASE
    return tokenizer


def _pipeline(tokenizer: Tokenizer) -> tuple[Any, ...]:
    """What determines how text is split: tokenizers with equal pipelines differ in entries only."""
    parts = json.loads(tokenizer.to_str())
    return parts["normalizer"], parts["pre_tokenizer"], parts["model"]["type"]


def _lowercase(word: str) -> str:
    """As the saved tokenizer does it, letter by letter: a final Σ becomes σ, as any other."""
    if word.isascii():
        return word.lower()
    _check_word(word)
    return _LOWERCASE.normalize_str(word)


def _checked(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    for sentence in sentences:
        if isinstance(sentence, str) or not isinstance(sentence, Sequence):
            raise InputError(f"each sentence must be a sequence of words, got {sentence!r}")
        yield sentence


def _check_word(word: str) -> None:
    require_kind("a word", word, str)
    if not word.isascii():
        try:
            word.encode()
        except UnicodeEncodeError:
            raise InputError(f"a word must be valid Unicode, got {word!r}") from None
