"""Scores by label, distance and length, and confusions, beside counts by hand."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest

from probformer.data.attachment import attachment_scores, count_attachments, is_punctuation
from probformer.data.breakdown import breakdown, count_breakdown, count_confusions, group_names
from probformer.data.builtin import builtin_corpus
from probformer.sentinels import ROOT, UNOBSERVED

SEEN = {
    "gold_heads": (2, 2, ROOT, 2, 2),
    "gold_labels": ("nsubj:pass", "aux:pass", "root", "obl:tmod", "punct"),
    "heads": (2, 2, ROOT, 1, 2),
    "labels": ("nsubj", "aux", "root", "nmod", "punct"),
}
BARK = {  # the head of the second word is not known
    "gold_heads": np.array([ROOT, UNOBSERVED, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    "gold_labels": ("root", "nsubj", "_", *["obl"] * 8),
    "heads": (10, 0, 0, 0, 0, 0, 0, 0, 0, 0, ROOT),
    "labels": ("nsubj", "det", "obl", *["obl"] * 6, "nmod", "root"),
}


def added(*counts):
    total = Counter()
    for one in counts:
        total.update(one)
    return total


def tables(*counts):
    return {table.name: table.rows for table in breakdown(added(*counts))}


def row(of, name, gold, predicted, right):
    return {
        of: name,
        "gold": gold,
        "predicted": predicted,
        "precision": right / predicted if predicted else None,
        "recall": right / gold if gold else None,
        "f1": pytest.approx(2 * right / (gold + predicted)) if gold + predicted else None,
    }


def test_scores_are_those_counted_by_hand():
    found = tables(count_breakdown(**SEEN), count_breakdown(**BARK))
    assert found["by_label"] == [
        row("label", "obl", 9, 7, 6),  # of BARK; that of SEEN has another head
        row("label", "root", 2, 2, 1),
        row("label", "_", 1, 0, 0),
        row("label", "aux", 1, 1, 1),
        row("label", "nsubj", 1, 2, 1),
        row("label", "punct", 1, 1, 1),
        row("label", "nmod", 0, 2, 0),
    ]
    assert found["by_distance"] == [
        row("distance", "ROOT", 2, 2, 1),
        row("distance", "1", 2, 1, 1),
        row("distance", "2", 3, 4, 3),
        row("distance", "3–6", 4, 4, 4),
        row("distance", "7–", 4, 4, 3),
    ]
    assert found["by_length"] == [
        {"length": "1–10", "sentences": 1, "words": 5, "uas": 4 / 5, "las": 4 / 5},
        {"length": "11–20", "sentences": 1, "words": 10, "uas": 8 / 10, "las": 6 / 10},
    ]
    assert found["confusions_of_labels"] == [
        {"gold": "obl", "predicted": "nmod", "count": 2},
        {"gold": "obl", "predicted": "root", "count": 1},
        {"gold": "root", "predicted": "nsubj", "count": 1},
    ]


def test_the_ten_most_frequent_confusions_of_tags():
    tags = [f"T{i:02}" for i in range(12)]
    counts = [count_confusions("upos", [tag] * 2, ["X", "_"]) for tag in tags]
    counts.append(count_confusions("upos", ["T11", "_", "X"], ["X", "Y", "X"]))
    rows = tables(*counts)["confusions_of_upos"]
    assert rows[0] == {"gold": "T11", "predicted": "X", "count": 2}
    assert [(x["gold"], x["predicted"]) for x in rows[1:5]] == [
        ("T00", "X"),
        ("T00", "_"),
        ("T01", "X"),
        ("T01", "_"),
    ]
    assert len(rows) == 10


@pytest.mark.parametrize("missing", ["gold_labels", "labels"])
def test_without_labels_there_are_those_of_heads(missing):
    found = tables(count_breakdown(**{**SEEN, missing: None}))
    assert [*found] == ["by_distance", "by_length"]
    assert found["by_length"] == [{"length": "1–10", "sentences": 1, "words": 5, "uas": 4 / 5}]


def test_nothing_to_count():
    unknown = count_breakdown((UNOBSERVED,), ("root",), (ROOT,), ("root",))
    for counts in ({}, unknown, count_breakdown((), (), (), ()), {"uas_right": 3.0}):
        found = tables(counts)
        assert found["by_distance"][0] == row("distance", "ROOT", 0, 0, 0)
        assert found["by_length"] == []


def test_names_of_groups():
    assert group_names((1, 2, 6)) == ["1", "2", "3–6", "7–"]
    assert group_names((10, 20)) == ["1–10", "11–20", "21–"]
    lengths = [
        tables(count_breakdown((UNOBSERVED,) * (n - 1) + (ROOT,), None, (ROOT,) * n, None))
        for n in (1, 10, 11, 40, 41)
    ]
    groups = [found["by_length"][0]["length"] for found in lengths]
    assert groups == ["1–10", "1–10", "11–20", "31–40", "41–"]


def test_totals_are_the_attachment_scores():
    chance = np.random.default_rng(0)
    attachments, counts = Counter(), Counter()
    names = ["nsubj", "nsubj:pass", "obj", "root", "_"]
    for sentence in islice(builtin_corpus(200)["train"], 100):
        n = len(sentence)
        gold_heads, heads = chance.integers(-2, n, n), chance.integers(-1, n, n)
        heads = np.where(chance.random(n) < 0.5, np.maximum(gold_heads, ROOT), heads)
        gold_labels, labels = chance.choice(names, n), chance.choice(names, n)
        given = (gold_heads, [*gold_labels], heads, [*labels])
        attachments.update(count_attachments(*given, is_punctuation(sentence.words)))
        counts.update(count_breakdown(*given))
    scores, found = attachment_scores(attachments), tables(counts)
    words = attachments["uas_words"]
    for name, table in (("las", "by_label"), ("uas", "by_distance")):
        rows = found[table]
        assert sum(x["gold"] for x in rows) == sum(x["predicted"] for x in rows) == words
        right = sum(x["recall"] * x["gold"] for x in rows if x["gold"])
        assert right / words == pytest.approx(scores[name])
    for name in ("uas", "las"):
        total = sum(x[name] * x["words"] for x in found["by_length"])
        assert total / words == pytest.approx(scores[name])
    assert sum(x["words"] for x in found["by_length"]) == words
