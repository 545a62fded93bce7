"""Random choices, for rules to be written in."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    def __init__(self, random: Random) -> None:
        self.random = random

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def weighted(self, *options: tuple[T, float]) -> T:
        values, weights = zip(*options, strict=True)
        return self.random.choices(values, weights)[0]
