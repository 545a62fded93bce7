"""Splits of the built-in corpora: sentences drawn again in each loop, the same each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random
from zlib import crc32

from probformer.data.sentence import Sentence

LONGEST = 40
"""The maximum number of words in a sentence."""
KEPT = 20_000
"""Splits of up to this number of sentences are drawn once and kept in memory."""
QUARTERS = (0, 1, 2, 3)
REDRAWN = 200
"""The maximum number of draws to replace a sentence that is in the split already."""


@dataclass(frozen=True)
class BuiltinSplit:
    """`size` sentences; a larger split of the same name begins with them."""

    size: int
    name: str
    """The seed of the random numbers."""
    draw: Callable[[Random, int], Sentence]
    """Draws a sentence, from random numbers and the position of the sentence in the split."""
    quarters: tuple[int, ...] = QUARTERS
    """The sentences that this split may have: those whose checksum modulo 4 is one of these."""
    distinct: bool = False
    """Whether sentences are drawn again to avoid repetitions."""

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self._kept) if self.size <= KEPT else self._drawn()

    @cached_property
    def _kept(self) -> tuple[Sentence, ...]:
        return tuple(self._drawn())

    def _drawn(self) -> Iterator[Sentence]:
        random = Random(self.name)  # a string seeds by its digest, the same in every process
        seen: set[int] = set()
        for place in range(self.size):
            sentence, checksum = self._next(random, place)
            for _ in range(REDRAWN if self.distinct else 0):
                if checksum not in seen:
                    seen.add(checksum)
                    break
                sentence, checksum = self._next(random, place)
            yield sentence

    def _next(self, random: Random, place: int) -> tuple[Sentence, int]:
        while True:
            sentence = self.draw(random, place)
            checksum = crc32(" ".join(sentence.words).encode())
            if len(sentence) <= LONGEST and checksum % 4 in self.quarters:
                return sentence, checksum
