"""Words taken for unknown ones in training, so that a model learns what to make of those."""

from __future__ import annotations

import numpy as np

from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import uniform


def forget_words(split: EncodedSplit, unknown: int, strength: float, seed: int) -> EncodedSplit:
    """Each time it comes, a word seen f times becomes `unknown` with chance α / (α + f).

    So do Kiperwasser and Goldberg (2016); α is the strength, and the seed is that of an epoch.
    """
    words = split.fields["words"]
    chance = strength / (strength + np.bincount(words))
    draws = uniform(seed, np.arange(len(words)))
    return split.with_words(np.where(draws < chance[words], unknown, words).astype(words.dtype))
