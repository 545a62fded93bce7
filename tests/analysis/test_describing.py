"""What labels and channels mean: against counts by hand, and a model set by hand."""

from collections import Counter
from itertools import product
from math import log2
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.messages import refused
from helpers.runs import TRANSFORMER, ready, settings
from probformer.analysis.describe.associations import (
    entropy,
    excess,
    lift,
    mutual_information,
    numbered,
)
from probformer.analysis.describe.channel_statistics import (
    ROOT_NAME,
    LinkCounts,
    SpreadCounts,
    uniform_heads,
)
from probformer.analysis.describe.description import describe
from probformer.analysis.marginals import infer_sentences
from probformer.data.sentence import Sentence

TEXT = [
    Sentence(("the", "dog", "ran"), {"upos": ("D", "N", "V"), "same": ("_",) * 3}),
    Sentence(("the", "men", "like", "the", "dog"), {"upos": tuple("DNVDN"), "same": ("_",) * 5}),
    Sentence(("praised",), {"upos": ("V",), "same": ("_",)}),
]
LABEL_OF = {"the": 3, "dog": 5, "men": 5, "like": 7, "praised": 7, "ran": 7}


def bits(pairs) -> float:
    """Mutual information of the two sides of weighted pairs, as H(a) + H(b) − H(a, b)."""
    total = sum(weight for *_, weight in pairs)

    def uncertainty(key) -> float:
        shares = Counter()
        for a, b, weight in pairs:
            shares[key(a, b)] += weight / total
        return -sum(share * log2(share) for share in shares.values() if share)

    return uncertainty(lambda a, b: a) + uncertainty(lambda a, b: b) - uncertainty(lambda *ab: ab)


def by_hand(tmp_path: Path):
    """A run with a strong label for each word of `LABEL_OF`, and no potentials."""
    run = ready(settings("tagging", size=60), tmp_path).run
    with torch.no_grad():
        run.model.encoder.word_scores.weight.zero_()
        for parameter in run.model.encoder.potentials.parameters():
            parameter.zero_()
        for word, label in LABEL_OF.items():
            assert word in run.vocabulary
            run.model.encoder.word_scores.weight[run.vocabulary.id_of(word), label] = 9
    return run


# Tables


def test_information_of_tables_known_by_heart():
    assert mutual_information(np.eye(4)) == pytest.approx(2)
    assert mutual_information(np.outer([1.0, 2, 3], [4.0, 5])) == pytest.approx(0, abs=1e-12)
    assert mutual_information(np.zeros((2, 3))) == 0
    assert entropy(np.array([1.0, 1, 2, 0])) == pytest.approx(1.5)
    assert entropy(np.zeros(3)) == 0


def test_information_lift_and_excess_by_counting():
    joint = np.random.default_rng(1).integers(0, 4, (4, 5)).astype(float)
    assert (joint == 0).any()
    pairs = [(a, b, joint[a, b]) for a, b in np.ndindex(*joint.shape)]
    assert mutual_information(joint) == pytest.approx(bits(pairs))
    total = joint.sum()
    for a, b in np.ndindex(*joint.shape):
        ratio = joint[a, b] * total / (joint[a].sum() * joint[:, b].sum())
        assert lift(joint)[a, b] == pytest.approx(ratio)
        gain = joint[a, b] / total * log2(ratio) if ratio else 0
        assert excess(joint)[a, b] == pytest.approx(gain)


def test_numbers_go_by_frequency_and_the_rest_is_one():
    names, numbers = numbered([["b", "a", "c"], ["c", "b", "c"]], most=2)
    assert names == ["c", "b"]
    assert [list(text) for text in numbers] == [[1, 2, 0], [0, 1, 0]]


# Channels


def random_heads(rooted=True, itself=False):
    """Heads of sentences of several lengths, some of whose probability is nowhere."""
    random = np.random.default_rng(2)
    for n in (1, 2, 6, 3):
        scores = random.random((2, n, n + 2)) ** 3
        if not itself:
            scores[:, :, :n] *= 1 - np.eye(n)
        shares = scores / scores.sum(-1, keepdims=True)
        yield shares[:, :, :n], shares[:, :, n] if rooted else None


@pytest.mark.parametrize("rooted", [True, False])
@pytest.mark.parametrize("itself", [True, False])
def test_where_heads_are_by_loops(rooted, itself):
    counts = SpreadCounts(2, longest=6)
    for heads, root in random_heads(rooted, itself):
        counts.add(heads, root)
    for channel, spread in enumerate(counts.spreads()):
        words, left, right, of_root, uncertainty = 0, 0.0, 0.0, 0.0, 0.0
        by_offset = Counter()
        for heads, root in random_heads(rooted, itself):
            n = heads.shape[-1]
            words += n
            for i in range(n):
                row = [heads[channel, i, j] for j in range(n)]
                left, right = left + sum(row[:i]), right + sum(row[i + 1 :])
                for j, share in enumerate(row):
                    by_offset[j - i] += share
                if root is not None:
                    of_root += root[channel, i]
                    row.append(root[channel, i])
                row.append(1 - sum(row))
                uncertainty -= sum(p * log2(p) for p in row if p > 0)
        assert spread.left == pytest.approx(left / words)
        assert spread.right == pytest.approx(right / words)
        assert spread.root == pytest.approx(of_root / words)
        assert spread.itself == pytest.approx(by_offset[0] / words)
        inside = left + by_offset[0] + right + of_root
        assert spread.elsewhere == pytest.approx(1 - inside / words)
        assert spread.entropy == pytest.approx(uncertainty / words)
        total = sum(by_offset.values())
        expected = {k: share / total for k, share in by_offset.items() if share}
        assert spread.offsets == pytest.approx(expected)
        mean = sum(abs(k) * share for k, share in expected.items())
        assert spread.distance == pytest.approx(mean)
        below = sum(s for k, s in expected.items() if abs(k) < spread.median_distance)
        up_to = sum(s for k, s in expected.items() if abs(k) <= spread.median_distance)
        assert below < 0.5 <= up_to


def test_what_is_linked_by_loops():
    classes = [np.array(c) for c in ([0], [1, 2], [0, 1, 2, 0, 1, 1], [2, 0, 0])]
    names = ["a", "b"]  # 2 is the rest
    counts = LinkCounts(2, names)
    weights = [Counter(), Counter()]
    for numbers, (heads, root) in zip(classes, random_heads(), strict=True):
        counts.add(numbers, heads, root)
        for channel, i in product(range(2), range(len(numbers))):
            weights[channel][numbers[i], ROOT_NAME] += root[channel, i]
            for j in range(len(numbers)):
                weights[channel][numbers[i], numbers[j]] += heads[channel, i, j]
    for channel in range(2):
        total = sum(weights[channel].values())
        found = {}
        for (a, b), weight in weights[channel].items():
            of_a = sum(w for (x, _), w in weights[channel].items() if x == a)
            of_b = sum(w for (_, x), w in weights[channel].items() if x == b)
            ratio = weight * total / (of_a * of_b)
            if a != 2 and b != 2 and ratio > 1.1:
                key = names[a], b if b == ROOT_NAME else names[b]
                found[key] = weight / 12, ratio
        expected = sorted(found, key=lambda key: -found[key][0] * log2(found[key][1]))
        links = counts.links(channel, most=10)
        assert len(links) >= 2
        assert [(link.dependent, link.head) for link in links] == expected
        for link in links:
            assert (link.share, link.lift) == pytest.approx(found[link.dependent, link.head])
        assert counts.links(channel, most=1) == links[:1]


def test_dust_and_chance_are_no_links():
    counts = LinkCounts(1, ["a", "b", "c"])
    counts.add(np.arange(3), np.array([[[0, 1, 0], [1, 0, 0], [1e-5, 0, 0]]]), None)
    assert [link.dependent for link in counts.links(0, most=9)] == ["a", "b"]
    counts = LinkCounts(1, ["a", "b"])
    counts.add(np.arange(40) % 2, *uniform_heads(40, itself=False, root=False))
    assert counts.links(0, most=9) == []  # a word heads others only: 1.03 times as often


def test_uniform_heads_leave_nothing_out():
    for n, itself, root in product((1, 2, 5), (False, True), (False, True)):
        heads, of_root = uniform_heads(n, itself, root)
        total = heads.sum(-1) + (0 if of_root is None else of_root)
        np.testing.assert_allclose(total, 0 if n == 1 and not itself and not root else 1)
        assert bool(heads[0, 0, 0]) == itself


# Runs


def test_labels_of_a_model_set_by_hand(tmp_path: Path):
    found = describe(by_hand(tmp_path), TEXT)
    assert (found.sentences, found.words, found.iteration, found.iterations) == (3, 9, 2, 2)
    assert (found.column, found.tags) == ("upos", ["D", "N", "V"])
    assert found.labels is not None
    assert [label.number for label in found.labels[:3]] == [3, 5, 7]
    certain = np.exp(9) / (np.exp(9) + 15)
    share = (certain + 2 * (1 - certain) / 15) / 3
    for label, tag in zip(found.labels[:3], "DNV", strict=True):
        owned = {word for word, number in LABEL_OF.items() if number == label.number}
        assert label.words.keys() == owned & {w for s in TEXT for w in s.words}
        assert [*label.words.values()] == pytest.approx([certain] * len(label.words))
        assert label.strongest == pytest.approx(1 / 3)
        assert label.probability == pytest.approx(share)
        assert label.tags is not None
        assert (label.tags.most, label.tags.share) == (tag, 1)
        # A third of the words for sure, and nothing but one of two tags otherwise.
        assert label.tags.bits == pytest.approx(log2(3) - 2 / 3)
        assert label.tags.shares[tag] == pytest.approx(certain / 3 / share)
    assert all(not label.strongest and label.tags is None for label in found.labels[3:])
    by_probability, strongest = found.information
    assert (strongest.column, strongest.strongest) == ("upos", True)
    assert strongest.bits == pytest.approx(log2(3))
    assert (strongest.of_tags, strongest.of_labels) == pytest.approx((1, 1))
    assert 0 < strongest.by_chance < strongest.bits
    assert by_probability.bits < strongest.bits


def test_nobody_owns_what_all_have(tmp_path: Path):
    run = by_hand(tmp_path)
    with torch.no_grad():
        scores = run.model.encoder.word_scores.weight
        scores[:, 1] = 15
        scores[run.vocabulary.id_of("the"), 1] = 16
    labels = describe(run, TEXT).labels
    assert labels is not None
    assert (labels[0].number, labels[0].strongest, labels[0].words) == (1, 1, {})


def test_without_potentials_heads_are_uniform(tmp_path: Path):
    found = describe(by_hand(tmp_path), TEXT)
    for channel in found.channels:
        assert channel.spread.offsets == pytest.approx(found.uniform.offsets)
        assert channel.spread.entropy == pytest.approx(found.uniform.entropy)
        assert channel.spread.elsewhere == pytest.approx(1 / 9)  # the sentence of one word


def test_a_channel_that_looks_at_the_word_before(tmp_path: Path):
    run = by_hand(tmp_path)
    potential = run.model.encoder.potentials.words
    before = potential.buckets.of(1)
    with torch.no_grad():
        potential.U[before, 1], potential.V[before, 1] = 5, 5
    found = describe(run, TEXT)
    spread = found.channels[1].spread
    # Six words have one before them; two begin a sentence and choose among those behind them.
    assert spread.left == pytest.approx(6 / 9)
    assert spread.right == pytest.approx(2 / 9)
    assert spread.offsets[-1] == pytest.approx(6 / 8)
    assert spread.offsets[1] == pytest.approx((1 / 2 + 1 / 4) / 8)
    assert spread.median_distance == 1
    assert spread.entropy == pytest.approx((log2(2) + log2(4)) / 9)
    best = found.channels[1].tag_links[0]
    assert (best.dependent, best.head) == ("N", "D")
    assert best.share == pytest.approx(3 / 9)
    labels = found.channels[1].label_links[0]
    assert (labels.dependent, labels.head, labels.share) == ("5", "3", best.share)
    words = {(link.dependent, link.head): link.share for link in found.channels[1].word_links}
    assert words["dog", "the"] == pytest.approx(2 / 9)


def test_any_run_against_its_readings(tmp_path: Path):
    """With weights as they come, labels are spread out, and tags mixed."""
    run = ready(settings("tagging", size=60), tmp_path).run
    found = describe(run, TEXT, iteration=1)
    assert found.iteration == 1
    soft, strongest = [], []
    for sentence, marginals in zip(
        TEXT, infer_sentences(run, [s.words for s in TEXT]), strict=True
    ):
        assert marginals.labels is not None
        for tag, labels in zip(sentence.columns["upos"], marginals.labels[0], strict=True):
            soft += [(label, tag, share) for label, share in enumerate(labels)]
            strongest.append((int(labels.argmax()), tag, 1))
    assert found.information[0].bits == pytest.approx(bits(soft))
    assert found.information[1].bits == pytest.approx(bits(strongest))
    of_tags = bits([(tag, tag, weight) for _, tag, weight in strongest])
    of_labels = bits([(label, label, weight) for label, _, weight in strongest])
    assert of_tags != pytest.approx(of_labels)
    assert found.information[1].of_tags == pytest.approx(bits(strongest) / of_tags)
    assert found.information[1].of_labels == pytest.approx(bits(strongest) / of_labels)
    assert found.labels is not None
    for label in found.labels:
        weight = sum(share for number, _, share in soft if number == label.number)
        assert label.probability == pytest.approx(weight / 9)
        if label.tags:
            about = [(number == label.number, tag, 1) for number, tag, _ in strongest]
            assert label.tags.bits == pytest.approx(bits(about))


def test_the_root_is_a_head_too(tmp_path: Path):
    run = ready(settings("classification", size=60), tmp_path).run
    found = describe(run, TEXT)
    inferred = [*infer_sentences(run, [s.words for s in TEXT])]
    for channel in found.channels:
        root = sum(r.root[-1, channel.number].sum() for r in inferred if r.root is not None)
        assert channel.spread.root == pytest.approx(root / 9)
        assert channel.spread.elsewhere == pytest.approx(0, abs=1e-6)
    assert found.uniform.root == pytest.approx((1 + 1 + 1) / 9)


def test_a_transformer_has_channels_only(tmp_path: Path):
    run = ready(settings("tagging", TRANSFORMER, size=60), tmp_path).run
    found = describe(run, TEXT)
    assert found.labels is None
    assert found.information == []
    for channel in found.channels:
        assert channel.label_links == []
        assert channel.tag_links
        assert channel.spread.itself > 0
    assert found.uniform.itself == pytest.approx(3 / 9)


def test_which_tags(tmp_path: Path):
    run = by_hand(tmp_path)
    untagged = [Sentence(sentence.words) for sentence in TEXT]
    found = describe(run, untagged)
    assert (found.column, found.tags, found.information) == (None, [], [])
    assert all(not channel.tag_links and channel.word_links for channel in found.channels)
    with refused("column", "(upos)"):
        describe(run, TEXT, "same")
    with refused("column", "(none)"):
        describe(run, untagged, "upos")
    twice = [Sentence(("the",), {"lemma": ("a",), "any": ("Z",), "xpos": ("X",), "upos": ("U",)})]
    twice += [Sentence(("dog",), {"lemma": ("b",), "any": ("A",), "xpos": ("Y",), "upos": ("V",)})]
    found = describe(run, twice)
    assert found.column == "xpos"  # what the run was trained for
    assert [i.column for i in found.information[::2]] == ["upos", "xpos", "any"]


def test_what_cannot_be_described(tmp_path: Path):
    run = by_hand(tmp_path)
    with refused("sentences"):
        describe(run, [])
    with refused("iteration 9"):
        describe(run, TEXT, iteration=9)
