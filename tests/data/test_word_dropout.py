"""Rare words are taken for unknown ones in training, and nowhere else."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from helpers.runs import ready, settings
from probformer.config import VocabularySettings
from probformer.data.encoded import EncodedSplit
from probformer.data.word_dropout import drop_words

RARE, FREQUENT = 4000, 4000
UNKNOWN = 0


@pytest.fixture(scope="module")
def split():
    """Words seen once, and one that is seen often; their tags are their numbers."""
    rows = [[1, word] for word in range(2, 2 + RARE)]
    return EncodedSplit({"words": row, "tag": row} for row in rows)


@pytest.mark.parametrize("strength", [0.25, 1.0])
def test_a_word_that_occurs_f_times_is_dropped_with_its_probability(split, strength):
    dropped = drop_words(split, UNKNOWN, strength, seed=3).fields["words"] == UNKNOWN
    often, once = dropped[::2].mean(), dropped[1::2].mean()
    assert once == pytest.approx(strength / (strength + 1), abs=0.03)
    assert often == pytest.approx(strength / (strength + FREQUENT), abs=0.002)


def test_only_words_change_and_only_in_the_result(split):
    before = split.fields["words"].copy()
    first, again, other = (drop_words(split, UNKNOWN, 1.0, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.fields["words"], again.fields["words"])
    assert not np.array_equal(first.fields["words"], other.fields["words"])
    assert np.array_equal(split.fields["words"], before)
    assert np.array_equal(first.fields["tag"], before)
    kept = first.fields["words"] != UNKNOWN
    assert np.array_equal(first.fields["words"][kept], before[kept])
    assert first.gather([3, 5])["words"].tolist() == first.fields["words"][[6, 7, 10, 11]].tolist()


def test_every_epoch_drops_other_words(tmp_path):
    given = replace(settings("tagging"), vocabulary=VocabularySettings(word_dropout=2.0))
    training = ready(given, tmp_path)
    unknown, seen = training.run.vocabulary.unk, defaultdict(list)
    build = training.batches.build

    def watch(chunks, epoch):
        batch = build(chunks, epoch)
        seen[epoch].append(batch.words)
        return batch

    training.batches.build = watch
    training.train()
    first, second = (sum((words == unknown).sum().item() for words in seen[i]) for i in (0, 1))
    assert first != second
    assert min(first, second) > 0.05 * training.splits["train"].tokens
    assert (training.splits["train"].fields["words"] != unknown).all()
