"""Search spaces: a TOML file with a table for each setting, named as for `--set`.

["training.learning_rate"]
low = 1e-4
high = 1e-2
log = true

["encoder.potential.rank"]
choices = [16, 32, 64]
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from probformer.config import RunSettings, from_dict
from probformer.config.lookup import find_config, put_value, read_toml
from probformer.config.reading import Settings
from probformer.errors import InputError, is_whole, require, require_whole


@dataclass(frozen=True)
class Range(Settings):
    """The values of one setting: an interval, or choices."""

    low: int | float | None = None
    """The lowest value, included."""
    high: int | float | None = None
    """The highest value, included. If both ends are integers, so are all values."""
    log: bool = False
    """Whether values are drawn uniformly on a logarithmic scale."""
    step: int | None = None
    """For integers: values are low, low + step, …, high."""
    choices: list | None = None
    """The values to choose from, in place of an interval."""

    def check(self) -> None:
        if self.choices is not None:
            alone = self.low is self.high is self.step is None and not self.log
            require(alone, "choices exclude low, high, log and step")
            require(bool(self.choices), "choices must have a value, got none")
            for value in self.choices:
                plain = isinstance(value, bool | int | float | str)
                require(plain, f"choices must be numbers, texts or truth values, got {value!r}")
            distinct = len({repr(value) for value in self.choices}) == len(self.choices)
            require(distinct, f"choices must differ from each other, got {self.choices}")
            return
        low, high = self.low, self.high
        if low is None or high is None:
            raise InputError("low and high are needed, or choices")
        finite = math.isfinite(low) and math.isfinite(high)
        require(finite and low < high, f"low must be below high, got {low} and {high}")
        require(low > 0 or not self.log, f"low must be above 0 with log, got {low}")
        if self.step is not None:
            require_whole("step", self.step)
            require(self.is_whole, "step needs whole numbers as low and high")
            require(not self.log, "step cannot be combined with log")
            message = f"high must be low + k · step, got low {low}, high {high}, step {self.step}"
            require((high - low) % self.step == 0, message)

    @property
    def is_whole(self) -> bool:
        return is_whole(self.low) and is_whole(self.high)

    @property
    def extremes(self) -> list[Any]:
        """The values to check: if they are valid, all are."""
        return [self.low, self.high] if self.choices is None else self.choices


@dataclass(frozen=True)
class Space:
    """A config and the ranges of the settings to vary."""

    values: dict[str, Any]
    """The config, as nested dictionaries."""
    ranges: dict[str, Range]

    def settings(self, chosen: Mapping[str, Any]) -> RunSettings:
        """The config with these values."""
        values = copy.deepcopy(self.values)
        for name in sorted(chosen, key=_kinds_first):
            put_value(values, name, chosen[name], name)
        return from_dict(RunSettings, values)

    def check(self) -> None:
        """Check that the extremes of each range are valid, with all combinations of kinds.

        The other settings have the first value of their range.
        """
        kinds = {name: range for name, range in self.ranges.items() if _is_kind(name)}
        others = {name: range for name, range in self.ranges.items() if not _is_kind(name)}
        first = {name: range.extremes[0] for name, range in others.items()}
        for combination in itertools.product(*(range.extremes for range in kinds.values())):
            base = {**dict(zip(kinds, combination, strict=True)), **first}
            self._check(base, [*kinds] or [*others][:1])
            for name, range in others.items():
                for value in range.extremes:
                    self._check({**base, name: value}, [*kinds, name])

    def _check(self, chosen: Mapping[str, Any], named: list[str]) -> None:
        try:
            self.settings(chosen)
        except InputError as error:
            given = ", ".join(f"{name} = {chosen[name]!r}" for name in named)
            raise InputError(f"with {given}: {error}") from None


def read_space(space: str, values: dict[str, Any]) -> Space:
    """Read and check a search space.

    Args:
        space: A TOML file, or the name of a bundled space.
        values: The config whose settings are varied, as nested dictionaries.

    Raises:
        InputError: Some value of a range is not valid in the config.
    """
    path = find_config(space, "spaces", "space")
    try:
        tables = _tables(read_toml(path))
        require(bool(tables), "the space has no setting to search")
        ranges = {name: from_dict(Range, table, f"{name}.") for name, table in tables.items()}
        found = Space(values, ranges)
        found.check()
    except InputError as error:
        message = str(error)
        raise InputError(message if str(path) in message else f"{path}: {error}") from None
    return found


def _tables(values: Mapping[str, Any], prefix: str = "") -> dict[str, Mapping[str, Any]]:
    """Tables by full setting names: ["a.b"] and [a.b] are the same."""
    found: dict[str, Mapping[str, Any]] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        require(isinstance(value, Mapping), f"{name} must be a table of its own, got {value!r}")
        nested = value and all(isinstance(inner, Mapping) for inner in value.values())
        found |= _tables(value, f"{name}.") if nested else {name: value}
    return found


def _is_kind(name: str) -> bool:
    return name.rpartition(".")[2] == "kind"


def _kinds_first(name: str) -> tuple[bool, str]:
    """Changing `kind` clears its table, so it is applied first."""
    return not _is_kind(name), name
