"""Which sentences form a batch, in training and in evaluation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from probformer.data.randomness import Purpose, derive_seed

Indices = NDArray[np.int64]


def training_batches(
    lengths: NDArray[np.int64], batch: int, epoch: int, seed: int, by_length: bool
) -> list[Indices]:
    """The batches of an epoch. Epoch 0 keeps the order of the corpus, as in the authors' code.

    Args:
        lengths: (S,): the number of tokens of each sentence.
        batch: The number of sentences in a batch; the last one may have fewer.
        epoch: The number of the epoch, from 0.
        seed: The seed of the run.
        by_length: Whether sentences of similar length form a batch. The order of batches is then
            random in all epochs, also in epoch 0.

    Returns:
        The indices of the sentences of each batch.
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
    """All sentences, sorted by length, in batches of at most `tokens` tokens, padding included.

    A longer sentence is a batch of its own.
    """
    order = np.argsort(lengths, kind="stable")
    batches, start = [], 0
    for end in range(1, len(order) + 1):
        full = end == len(order) or (end + 1 - start) * lengths[order[end]] > tokens
        if full:
            batches.append(order[start:end])
            start = end
    return batches
