"""Which sentences go together: batches of a training epoch, and batches for evaluation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from probformer.data.randomness import Purpose, derive_seed

Indices = NDArray[np.int64]


def training_batches(
    lengths: NDArray[np.int64], batch: int, epoch: int, seed: int, by_length: bool
) -> list[Indices]:
    """The batches of an epoch. The first epoch (0) keeps the order of the corpus, as published.

    By length: sentences of similar length together, batches in random order.
    """
    count = len(lengths)
    random = np.random.default_rng(derive_seed(seed, Purpose.SHUFFLING, epoch))
    order = np.arange(count) if epoch == 0 and not by_length else random.permutation(count)
    if by_length:
        order = order[np.argsort(lengths[order], kind="stable")]
    batches = [order[start : start + batch] for start in range(0, count, batch)]
    if by_length:
        batches = [batches[i] for i in random.permutation(len(batches))]
    return batches


def evaluation_batches(lengths: NDArray[np.int64], tokens: int) -> list[Indices]:
    """All sentences, sorted by length, in batches of about so many tokens with their padding."""
    order = np.argsort(lengths, kind="stable")
    batches, start = [], 0
    for end in range(1, len(order) + 1):
        full = end == len(order) or (end + 1 - start) * lengths[order[end]] > tokens
        if full:
            batches.append(order[start:end])
            start = end
    return batches
