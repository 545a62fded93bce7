"""Random numbers that depend on seed, purpose and position, not on what was drawn before.

So a run that is resumed, or split over processes, draws the same numbers as one that is not.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Purpose(IntEnum):
    """What random numbers are for; different purposes have independent numbers."""

    INITIALISATION = 0
    SHUFFLING = 1
    MASKING = 2
    DROPOUT = 3
    SEARCH = 4
    WORD_DROPOUT = 5


@lru_cache(maxsize=64)
def derive_seed(seed: int, purpose: Purpose, *place: int) -> int:
    """A seed from that of the run, for a purpose at a place in training, such as an epoch."""
    return int(
        np.random.SeedSequence([seed, purpose, *place]).generate_state(1, np.uint64)[0]
        >> np.uint64(1)
    )


def uniform(seed: int, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """One number in [0, 1) for each position: the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        x = np.uint64(seed) + (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(11)).astype(np.float64) / 2**53
