"""Random choices, the vocabulary in which the rules of the grammar are written."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class RandomChoices:
    """The base of all rules: choices from one stream of random numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return self.random.choice(options)

    def weighted(self, *options: tuple[T, float]) -> T:
        """One of the options, by their weights."""
        values, weights = zip(*options, strict=True)
        return self.random.choices(values, weights)[0]
