"""Decoders against all trees there are, and against networkx."""

from functools import cache
from itertools import product

import networkx
import numpy as np
import pytest

from helpers.messages import refused
from probformer.crf.decoding import argmax_heads, decode, projective_tree, spanning_tree
from probformer.sentinels import ROOT


def is_tree(heads) -> bool:
    for word in range(len(heads)):
        for _ in heads:
            word = heads[word] if word != ROOT else ROOT
        if word != ROOT:
            return False
    return True


def is_projective(heads) -> bool:
    """The root stands before the first word."""
    arcs = [tuple(sorted(arc)) for arc in enumerate(heads)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


@cache
def all_trees(n: int, single_root: bool, projective: bool) -> np.ndarray:
    choices = [[head for head in range(-1, n) if head != word] for word in range(n)]
    found = [
        heads
        for heads in product(*choices)
        if (heads.count(ROOT) == 1 or not single_root) and is_tree(heads)
    ]
    return np.array([heads for heads in found if not projective or is_projective(heads)])


def arc_scores(heads, scores, root) -> np.ndarray:
    """Of each word's arc; `heads` may be many trees."""
    heads = np.asarray(heads)
    words = np.arange(heads.shape[-1])
    return np.where(heads == ROOT, root, scores[words, heads])


def best_by_enumeration(scores, root, single_root, projective) -> tuple[int, float]:
    """Of the trees with the fewest forbidden arcs: their number, and the best sum of the rest."""
    arcs = arc_scores(all_trees(len(scores), single_root, projective), scores, root)
    forbidden = np.isneginf(arcs).sum(1)
    sums = np.where(np.isneginf(arcs), 0, arcs).sum(1)
    return forbidden.min(), sums[forbidden == forbidden.min()].max()


def forbidden_and_sum(heads, scores, root) -> tuple[int, float]:
    arcs = arc_scores(heads, scores, root)
    return np.isneginf(arcs).sum(), arcs[arcs > -np.inf].sum()


def draw(chance: np.random.Generator, n: int):
    """Scores of every kind: log-probabilities, ties, and arcs that are forbidden."""
    scores = np.log(chance.dirichlet(np.full(n + 1, 0.3), size=n) + 1e-30)
    if chance.random() < 0.3:
        scores = -chance.integers(0, 3, size=(n, n + 1)).astype(float)
    if chance.random() < 0.4:
        scores[chance.random(scores.shape) < chance.random()] = -np.inf
    return scores[:, 1:], scores[:, 0]


OPTIONS = list(product([True, False], [True, False], [True, False]))


def compare_with_enumeration(chance, n, single_root, projective, with_root):
    scores, root = draw(chance, n)
    given = root if with_root else None
    root = root if with_root else np.full(n, -np.log(n))
    find = projective_tree if projective else spanning_tree
    heads = find(scores, given, single_root)
    assert is_tree(heads)
    assert not single_root or list(heads).count(ROOT) == 1
    assert not projective or is_projective(heads)
    count, best = best_by_enumeration(scores, root, single_root, projective)
    found_count, found = forbidden_and_sum(heads, scores, root)
    assert found_count == count
    assert found == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize(("single_root", "projective", "with_root"), OPTIONS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_trees_are_the_best_of_all(n, single_root, projective, with_root):
    chance = np.random.default_rng(n)
    for _ in range(40):
        compare_with_enumeration(chance, n, single_root, projective, with_root)


@pytest.mark.long
@pytest.mark.parametrize(("single_root", "projective", "with_root"), OPTIONS)
def test_trees_of_six_words_are_the_best_of_all(single_root, projective, with_root):
    chance = np.random.default_rng(6)
    for _ in range(1250):
        compare_with_enumeration(chance, 6, single_root, projective, with_root)


def best_by_networkx(scores, root, single_root) -> tuple[int, float]:
    """A forbidden arc, and a second root, at a price that networkx will not pay unless it must."""
    n = len(scores)
    graph = networkx.DiGraph()
    for word in range(n):
        for head in range(-1, n):
            if head != word:
                score = root[word] if head == ROOT else scores[word, head]
                weight = -1e4 if np.isneginf(score) else score
                graph.add_edge(head, word, weight=weight - 1e6 * (single_root and head == ROOT))
    tree = networkx.maximum_spanning_arborescence(graph)
    heads = np.full(n, ROOT)
    for head, word in tree.edges:
        heads[word] = head
    return forbidden_and_sum(heads, scores, root)


def compare_with_networkx(chance):
    n, single_root = int(chance.integers(1, 13)), bool(chance.integers(2))
    scores, root = draw(chance, n)
    heads = spanning_tree(scores, root, single_root)
    assert is_tree(heads)
    assert not single_root or list(heads).count(ROOT) == 1
    count, best = best_by_networkx(scores, root, single_root)
    found_count, found = forbidden_and_sum(heads, scores, root)
    assert found_count == count
    assert found == pytest.approx(best, abs=1e-6)


def test_trees_are_those_of_networkx():
    chance = np.random.default_rng(0)
    for _ in range(300):
        compare_with_networkx(chance)


@pytest.mark.long
def test_trees_are_those_of_networkx_on_many_scores():
    chance = np.random.default_rng(1)
    for _ in range(10_000):
        compare_with_networkx(chance)


def test_argmax_asks_each_word_alone():
    scores = np.log([[0.9, 0.1, 0.01], [0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])
    assert argmax_heads(scores).tolist() == [1, 2, 0]  # a cycle; no word heads itself
    assert argmax_heads(scores, np.log([0.05, 0.4, 0.1])).tolist() == [1, ROOT, 0]
    assert argmax_heads([[0.0]]).tolist() == [ROOT]


@pytest.mark.parametrize("decoder", ["argmax", "tree", "projective"])
def test_where_all_is_forbidden_heads_are_still_heads(decoder):
    nothing = np.full((7, 7), -np.inf)
    heads = decode(nothing, nothing[0], decoder)
    assert (heads != np.arange(7)).all()
    assert decoder == "argmax" or is_tree(heads)
    assert (heads == decode(nothing, nothing[0], decoder)).all()


def test_without_a_root_variable_roots_are_as_probable_as_words_of_no_opinion():
    scores = np.log(np.full((3, 3), 1e-3))
    assert spanning_tree(scores, single_root=False).tolist() == [ROOT] * 3
    assert spanning_tree(scores).tolist().count(ROOT) == 1
    scores[0, 1] = scores[1, 2] = np.log(0.9)
    assert spanning_tree(scores, single_root=False).tolist() == [1, 2, ROOT]


def test_long_sentences():
    n = 300
    scores = np.random.default_rng(0).normal(size=(n, n))
    scores[np.arange(1, n), np.arange(n - 1)] += 100
    chain = [ROOT, *range(n - 1)]
    assert spanning_tree(scores).tolist() == chain
    assert projective_tree(scores).tolist() == chain


@pytest.mark.parametrize("decoder", ["argmax", "tree", "projective"])
@pytest.mark.parametrize("single_root", [True, False])
def test_scores_as_large_as_floats_can_be(decoder, single_root):
    chance = np.random.default_rng(0)
    for _ in range(50):
        scores = chance.uniform(-1, 1, size=(6, 6))
        root = chance.uniform(-1, 1, size=6)
        heads = decode(scores, root, decoder, single_root).tolist()
        large = 2.0**1023  # a power of two keeps every digit
        assert decode(scores * large, root * large, decoder, single_root).tolist() == heads


@pytest.mark.parametrize("find", [spanning_tree, projective_tree])
@pytest.mark.parametrize("low", [np.finfo(np.float32).min, np.finfo(np.float64).min])
def test_a_score_that_is_very_low_forbids_and_leaves_the_others_as_they_are(find, low):
    chance, compared = np.random.default_rng(0), 0
    for _ in range(50):
        scores, root = draw(chance, 5)
        expected = find(scores, root)
        if forbidden_and_sum(expected, scores, root)[0] == 0:
            heads = find(np.maximum(scores, low), np.maximum(root, low))
            assert heads.tolist() == expected.tolist()
            compared += np.isneginf(scores).any()
    assert compared > 3


@pytest.mark.parametrize(
    ("scores", "root", "decoder", "named"),
    [
        (np.zeros((0, 0)), None, "tree", "words"),
        (np.zeros((2, 3)), None, "tree", "scores"),
        (np.zeros((2, 2)), np.zeros(3), "tree", "root"),
        (np.full((2, 2), np.nan), None, "projective", "scores"),
        (np.zeros((2, 2)), np.full(2, np.inf), "argmax", "scores"),
        (np.zeros((2, 2)), None, "best", "decoder"),
    ],
)
def test_wrong_scores_are_refused(scores, root, decoder, named):
    with refused(named):
        decode(scores, root, decoder)
