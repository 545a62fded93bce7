"""Sentences as numbers, end to end in temporary files.

Sentences are written one by one and read through a memory map: a split may be larger than memory.
"""

from __future__ import annotations

import hashlib
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probformer.data.layout import first_words
from probformer.errors import InputError

EncodedSentence = Mapping[str, Sequence[int]]
"""A sentence as numbers: fields of equal length by name, one of them "words"."""
_FLUSH_AT = 1_000_000


@dataclass(frozen=True)
class Tokens:
    """The tokens of a batch of sentences, end to end."""

    split: EncodedSplit
    lengths: NDArray[np.int64]
    """(S,): the number of tokens of each sentence."""
    sentences: NDArray[np.int64]
    """(tokens,): the index in the batch of each token's sentence."""
    positions: NDArray[np.int64]
    """(tokens,): the position of each token in the whole split."""

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        """(tokens,): the values of a field."""
        return self.split.fields[name][self.positions].astype(np.int64)


class EncodedSplit:
    """The sentences of a split as integers, with random access.

    Args:
        sentences: Encoded sentences, all with the same fields; each is taken once, in order.

    Attributes:
        fields: By name, (tokens,) int32: the values of all sentences end to end.
        offsets: (S + 1,): where each sentence starts, and where the last one ends.
        lengths: (S,): the number of tokens of each sentence.
    """

    def __init__(self, sentences: Iterable[EncodedSentence]) -> None:
        writers: defaultdict[str, _Column] = defaultdict(_Column)
        offsets = array("q", [0])
        try:
            for sentence in sentences:
                length = len(sentence["words"])
                for name, values in sentence.items():
                    found = f"{name} has {len(values)} values for {length} tokens"
                    assert len(values) == length, found
                    writers[name].extend(values)
                offsets.append(offsets[-1] + length)
            self.fields = {name: writer.finish() for name, writer in writers.items()}
        finally:
            for writer in writers.values():
                writer.file.close()  # a memory map keeps the data until it is deleted
        self.offsets = np.frombuffer(offsets, dtype=np.int64)
        self.lengths = np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        return int(self.offsets[-1])

    def digest(self) -> str:
        """A SHA-256 of all fields of all sentences, which changes with the vocabulary too."""
        found = hashlib.sha256(self.offsets.data)
        for name in sorted(self.fields):
            found.update(name.encode())
            found.update(self.fields[name].data)
        return found.hexdigest()

    def with_words(self, words: NDArray[np.int32]) -> EncodedSplit:
        """The same split with other values of the field "words", (tokens,)."""
        other = copy(self)
        other.fields = {**self.fields, "words": words}
        return other

    def gather(self, indices: Sequence[int] | NDArray[np.int64]) -> Tokens:
        """The tokens of the sentences at `indices`, in this order."""
        index = np.asarray(indices, dtype=np.int64)
        lengths = self.lengths[index]
        shift = self.offsets[index] - first_words(lengths)
        positions = np.arange(lengths.sum()) + np.repeat(shift, lengths)
        return Tokens(self, lengths, np.repeat(np.arange(len(index)), lengths), positions)


class _Column:
    def __init__(self) -> None:
        self.buffer = array("i")
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  EncodedSplit closes it

    def extend(self, values: Sequence[int]) -> None:
        self.buffer.extend(values)
        if len(self.buffer) >= _FLUSH_AT:
            self._flush()

    def _flush(self) -> None:
        try:
            self.buffer.tofile(self.file)
            self.file.flush()
        except OSError as error:
            place = f"{tempfile.gettempdir()}: the encoded sentences cannot be written here"
            raise InputError(f"{place} ({error.strerror}); TMPDIR chooses another place") from None
        self.buffer = array("i")

    def finish(self) -> NDArray[np.int32]:
        self._flush()
        if self.file.tell() == 0:
            return np.zeros(1, dtype=np.int32)
        return np.asarray(np.memmap(self.file, dtype=np.int32, mode="r"))  # quicker to index
