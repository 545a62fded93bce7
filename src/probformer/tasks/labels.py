"""The names of a task's classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

IGNORE = -100
"""The target of a position that has none."""


class Labels:
    """Classes numbered from 0 in the order given.

    A name that does not occur in the training data gets a number below `IGNORE`, which is never
    predicted.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(dict.fromkeys(names))
        self.unseen: Counter[str] = Counter()
        """How often each name that the training data does not have was looked up."""
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._unseen_names: list[str] = []

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = IGNORE - 1 - len(self._unseen_names)
            self._unseen_names.append(name)
        number = self._numbers[name]
        if number < 0:
            self.unseen[name] += 1
        return number

    def take_warnings(self, what: str) -> list[str]:
        """A warning about the unseen names since the last call, if there were any."""
        if not self.unseen:
            return []
        found = ", ".join(f"{name!r} ({count})" for name, count in self.unseen.most_common(5))
        more = f" and {len(self.unseen) - 5} others" if len(self.unseen) > 5 else ""
        self.unseen.clear()
        return [f"{what} that are not in the training data count as wrong: {found}{more}"]

    def name(self, number: int) -> str:
        return self.names[number] if number >= 0 else self._unseen_names[IGNORE - 1 - number]
