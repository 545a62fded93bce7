"""Word dropout: training words become unknown at random, so that a model learns to handle those."""

from __future__ import annotations

import numpy as np

from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import uniform


def drop_words(split: EncodedSplit, unknown: int, strength: float, seed: int) -> EncodedSplit:
    """The split with words replaced as Kiperwasser and Goldberg (2016) do it.

    Args:
        split: A training split.
        unknown: The id of the unknown word.
        strength: α: each occurrence of a word that occurs f times is replaced with probability
            α / (α + f).
        seed: A different one for each epoch.
    """
    words = split.fields["words"]
    chance = strength / (strength + np.bincount(words))
    draws = uniform(seed, np.arange(len(words)))
    return split.with_words(np.where(draws < chance[words], unknown, words).astype(words.dtype))
