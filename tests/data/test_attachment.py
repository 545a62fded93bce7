"""Attachment scores, beside counts by hand and the script of the CoNLL 2018 shared task."""

import importlib.util
import io
import os
import subprocess
import sys
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from helpers.messages import refused
from probformer.data.attachment import attachment_scores, count_attachments, is_punctuation
from probformer.data.builtin import builtin_corpus
from probformer.sentinels import ROOT, UNOBSERVED

SEEN = {
    "gold_heads": (2, 2, ROOT, 2, 2),
    "gold_labels": ("nsubj:pass", "aux:pass", "root", "obl:tmod", "punct"),
    "heads": (2, 2, ROOT, 1, 2),
    "labels": ("nsubj", "aux:pass", "root", "advmod", "punct"),
    "punctuation": (False,) * 4 + (True,),
}
BARK = {
    "gold_heads": np.array([2, 2, ROOT]),
    "gold_labels": ("nsubj", "punct", "root"),
    "heads": np.array([2, 0, ROOT]),
    "labels": ("det", "case", "root"),
    "punctuation": (False, True, False),
}


def added(*counts):
    total = Counter()
    for one in counts:
        total.update(one)
    return total


def test_scores_are_those_counted_by_hand():
    assert attachment_scores(count_attachments(**SEEN)) == {
        "uas": 4 / 5,
        "las": 4 / 5,
        "uas_nopunct": 3 / 4,
        "las_nopunct": 3 / 4,
        "las_subtypes": 3 / 5,
        "clas": 2 / 3,  # of nsubj, root, obl and of nsubj, root, advmod
    }
    assert attachment_scores(count_attachments(**BARK)) == {
        "uas": 2 / 3,
        "las": 1 / 3,
        "uas_nopunct": 2 / 2,
        "las_nopunct": 1 / 2,
        "las_subtypes": 1 / 3,
        "clas": 2 * 1 / (1 + 2),  # precision 1/1, recall 1/2
    }
    assert attachment_scores(added(count_attachments(**SEEN), count_attachments(**BARK))) == {
        "uas": 6 / 8,
        "las": 5 / 8,
        "uas_nopunct": 5 / 6,
        "las_nopunct": 4 / 6,
        "las_subtypes": 4 / 8,
        "clas": 2 * 3 / (4 + 5),
    }


def test_words_without_a_gold_head_are_not_counted():
    counts = count_attachments(**{**SEEN, "gold_heads": (UNOBSERVED, 2, ROOT, 2, UNOBSERVED)})
    assert attachment_scores(counts) == {
        "uas": 2 / 3,
        "las": 2 / 3,
        "uas_nopunct": 2 / 3,
        "las_nopunct": 2 / 3,
        "las_subtypes": 2 / 3,
        "clas": 1 / 2,
    }
    unknown = {**SEEN, "gold_heads": (UNOBSERVED,) * 5, "heads": (UNOBSERVED,) * 5}
    assert set(count_attachments(**unknown).values()) == {0}
    assert set(attachment_scores(count_attachments(**unknown)).values()) == {0}


@pytest.mark.parametrize("missing", ["gold_labels", "labels"])
def test_without_labels_only_heads_are_counted(missing):
    counts = count_attachments(**{**SEEN, missing: None})
    assert attachment_scores(counts) == {"uas": 4 / 5, "uas_nopunct": 3 / 4}
    both = attachment_scores(added(counts, count_attachments(**BARK)))
    assert (both["uas"], both["las"]) == (6 / 8, 1 / 3)  # LAS of the sentence with labels


def test_nothing_to_count():
    assert attachment_scores(Counter()) == {"uas": 0, "uas_nopunct": 0}
    empty = attachment_scores(count_attachments((), (), (), (), ()))
    assert set(empty.values()) == {0}
    assert len(empty) == 6


def test_punctuation_without_tags():
    words = ("well", ",", "«", "e-mail", "$", "...")
    expected = [False, True, True, False, False, True]
    assert is_punctuation(words).tolist() == expected
    assert is_punctuation(words, ("_",) * 6).tolist() == expected
    assert is_punctuation(words[:2], ("PUNCT", "SYM")).tolist() == [True, False]


@pytest.mark.parametrize("name", ["gold_labels", "heads", "labels", "punctuation"])
def test_values_for_other_words_are_refused(name):
    with refused(name, "3 values"):
        count_attachments(**{**BARK, name: BARK[name][:1]})


# The script of the shared task, on random parses.

OFFICIAL = ("uas", "las", "clas")
_LABELS = """
nsubj obj iobj csubj ccomp xcomp obl vocative expl dislocated advcl aux cop mark nmod appos nummod
acl amod det clf case conj cc fixed flat compound list parataxis orphan goeswith reparandum punct
root dep advmod discourse unheard-of _
"""
LABELS = _LABELS.split()
SUBTYPES = ["", "", ":pass", ":tmod", ":a:b"]


@pytest.fixture
def script(tmp_path):
    """The script, as stanza's package has it; nothing else of that package is imported."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path]
    command = [*pip, "--retries", "1", "stanza==1.10.1"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        pytest.skip(f"pip could not install stanza: {done.stderr.strip().splitlines()[-1]}")
    path = tmp_path / "stanza/utils/conll18_ud_eval.py"
    spec = importlib.util.spec_from_file_location("conll18_ud_eval", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_tree(chance, n, like=None):
    """The first word of an order is the root, and the head of each other is one before it.

    The order is random, or that of the depth in the tree `like`. Half of the heads of `like` are
    kept where the order allows it.
    """
    order = chance.permutation(n)
    if like is not None and chance.random() < 0.7:
        order = np.argsort([depth(like, word) for word in range(n)], kind="stable")
    heads = np.full(n, ROOT)
    for place, word in enumerate(order[1:], start=1):
        heads[word] = chance.choice(order[:place])
        if like is not None and like[word] in order[:place] and chance.random() < 0.5:
            heads[word] = like[word]
    return heads


def depth(heads, word):
    return 0 if heads[word] == ROOT else 1 + depth(heads, heads[word])


def random_labels(chance, n, like=None):
    """Half of the labels are those of `like`, and a fifth differ from it in the subtype alone."""
    labels = [f"{chance.choice(LABELS)}{chance.choice(SUBTYPES)}" for _ in range(n)]
    for word in range(n if like else 0):
        kept = chance.random()
        if kept < 0.7:
            labels[word] = like[word] if kept < 0.5 else f"{like[word]}:other"
    return labels


def as_conllu(words, heads, labels):
    rows = zip(words, heads, labels, strict=True)
    lines = [
        f"{i}\t{word}\t_\t_\t_\t_\t{head + 1}\t{label}\t_\t_"
        for i, (word, head, label) in enumerate(rows, start=1)
    ]
    return "\n".join(lines) + "\n\n"


def evaluated(script, gold, predicted):
    """UAS, LAS and CLAS of two texts in CoNLL-U."""
    gold, predicted = (script.load_conllu(io.StringIO(x), "", {}) for x in (gold, predicted))
    found = script.evaluate(gold, predicted)
    return [found[name.upper()].f1 for name in OFFICIAL]


def scores_of(counts):
    scores = attachment_scores(counts)
    return [scores[name] for name in OFFICIAL]


@pytest.mark.long
def test_scores_are_those_of_the_script_of_conll_2018(script):
    chance = np.random.default_rng(0)
    total, gold_text, predicted_text = Counter(), "", ""
    sentences = list(islice(builtin_corpus(2000)["train"], 1000))
    assert len(sentences) == 1000
    for sentence in sentences:
        n = len(sentence)
        gold_heads, gold_labels = random_tree(chance, n), random_labels(chance, n)
        heads = random_tree(chance, n, gold_heads)
        labels = random_labels(chance, n, gold_labels)
        punctuation = is_punctuation(sentence.words)
        counts = count_attachments(gold_heads, gold_labels, heads, labels, punctuation)
        gold = as_conllu(sentence.words, gold_heads, gold_labels)
        predicted = as_conllu(sentence.words, heads, labels)
        expected = evaluated(script, gold, predicted)
        assert scores_of(counts) == pytest.approx(expected, rel=0, abs=1e-12)
        total.update(counts)
        gold_text += gold
        predicted_text += predicted
    expected = evaluated(script, gold_text, predicted_text)
    assert scores_of(total) == pytest.approx(expected, rel=0, abs=1e-12)
    assert 0.2 < min(expected) < max(expected) < 0.8
    assert len(set(expected)) == 3
