"""The distribution over heads and labels, against enumeration of all heads and labels."""

import itertools

import pytest
import torch

from probformer.crf.arc_distribution import ArcDistribution
from probformer.crf.structures import structure_named
from probformer.sentinels import ROOT, UNOBSERVED

STRUCTURES = ["independent", "tree", "projective"]
N, M = 4, 3


def distribution(name, lengths=(4, 2, 1), labels=M, single_root=True):
    """Random scores for sentences that are padded to four words."""
    torch.manual_seed(0)
    mask = torch.arange(N) < torch.tensor(lengths).unsqueeze(1)
    scores = 2 * torch.randn(len(lengths), labels, N, N + 1)
    return ArcDistribution.of(scores, mask, structure_named(name, single_root)), lengths


def assignments(arcs, row, length):
    """All heads and labels of a sentence, with their weights."""
    heads_of = [[j for j in (*range(length), ROOT) if j != i] for i in range(length)]
    for heads in itertools.product(*heads_of):
        if not arcs.structure.allows(heads):
            continue
        for labels in itertools.product(range(arcs.scores.shape[1]), repeat=length):
            parts = arcs.scores[row, list(labels), range(length), list(heads)]
            yield heads, labels, float(parts.double().sum().exp())


@pytest.mark.parametrize("name", STRUCTURES)
def test_partition_and_marginals(name):
    arcs, lengths = distribution(name)
    found, marginals = arcs.log_partition(), arcs.marginals()
    for row, length in enumerate(lengths):
        expected, total = torch.zeros(N, N + 1, dtype=torch.float64), 0.0
        for heads, _, weight in assignments(arcs, row, length):
            total += weight
            for word, head in enumerate(heads):
                expected[word, head] += weight
        assert found[row].exp() == pytest.approx(total)
        torch.testing.assert_close(marginals[row].double(), expected / total, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_is_known_restricts_the_sum(name):
    """The head of one word, the label of another, and of a third one both."""
    arcs, lengths = distribution(name)
    heads = torch.full((3, N), UNOBSERVED)
    labels = torch.full((3, N), -100)
    heads[0, 1], labels[0, 2], heads[0, 3], labels[0, 3] = 2, 1, 2, 0
    heads[1, 1], heads[2, 0] = ROOT, ROOT
    found = arcs.given(heads, labels).log_partition()
    for row, length in enumerate(lengths):
        total = sum(
            weight
            for words, own, weight in assignments(arcs, row, length)
            if all(heads[row, i] in (UNOBSERVED, j) for i, j in enumerate(words))
            and all(labels[row, i] in (-100, k) for i, k in enumerate(own))
        )
        assert found[row].exp() == pytest.approx(total)
    nothing = arcs.given(torch.full((3, N), UNOBSERVED), torch.full((3, N), -100))
    assert nothing.log_partition().tolist() == arcs.log_partition().tolist()


def test_labels_are_independent_given_their_arcs():
    arcs, _ = distribution("tree")
    heads = torch.tensor([[1, ROOT, 1, 0], [ROOT, 0, 0, 0], [ROOT, 0, 0, 0]])
    p = arcs.labels_of(heads)
    torch.testing.assert_close(p[0, 1], arcs.scores[0, :, 1, N].softmax(0))
    torch.testing.assert_close(p[0, 3], arcs.scores[0, :, 3, 0].softmax(0))
    known = arcs.given(torch.full((3, N), UNOBSERVED), torch.tensor([[2] * N] * 3))
    assert known.labels_of(heads)[0].tolist() == [[0, 0, 1]] * N


@pytest.mark.parametrize(
    ("name", "single_root", "labels", "known"),
    [
        *itertools.product(STRUCTURES, [True], [1, M], [()]),
        *itertools.product(["tree", "projective"], [False], [1], [()]),
        *itertools.product(STRUCTURES, [True, False], [1], [(1, 2), (2, ROOT)]),
    ],
)
def test_samples_are_as_frequent_as_they_are_probable(name, single_root, labels, known):
    """Also with one head that is given."""
    arcs, _ = distribution(name, (4, 1), labels, single_root)
    given = torch.full((2, N), UNOBSERVED)
    if known:
        given[0, known[0]] = known[1]
    count = 4000
    drawn = arcs.given(given).sample(count, torch.Generator().manual_seed(0))
    assert drawn.shape == (2, count, N)
    weights = {}
    for heads, _, weight in assignments(arcs, 0, 4):
        if not known or heads[known[0]] == known[1]:
            weights[heads] = weights.get(heads, 0) + weight
    total = sum(weights.values())
    found = [tuple(heads) for heads in drawn[0].tolist()]
    assert {*found} <= {*weights}
    for heads, weight in weights.items():
        p = weight / total
        spread = (p * (1 - p) / count) ** 0.5
        assert abs(found.count(heads) / count - p) <= 4.5 * spread + 1e-3
    assert (drawn[1, :, 0] == ROOT).all()
    assert (drawn[1, :, 1:] == 0).all()


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("name", ["tree", "projective"])
def test_samples_of_extreme_scores_are_trees(name, single_root):
    """Pairs of words claim each other with certainty; what is given is kept; padding is left."""
    torch.manual_seed(0)
    n, structure = 30, structure_named(name, single_root)
    scores = 60 * torch.randn(3, 2, n, n + 1)
    for word in range(0, n, 2):
        scores[:, :, word, word + 1] = scores[:, :, word + 1, word] = 400
    lengths = torch.tensor([30, 17, 30])
    given = torch.full((3, n), UNOBSERVED)
    given[:, 3], given[2, 9] = 9, ROOT
    arcs = ArcDistribution.of(scores, torch.arange(n) < lengths.unsqueeze(1), structure)
    drawn = arcs.given(given).sample(20, torch.Generator().manual_seed(0))
    for row, length in enumerate(lengths.tolist()):
        for heads in drawn[row].tolist():
            assert structure.allows(heads[:length])
            assert ROOT in heads[:length]
            assert max(heads) < length
            assert heads[3] == 9
            assert row < 2 or heads[9] == ROOT


@pytest.mark.parametrize("name", STRUCTURES)
def test_sentences_without_words_have_samples_without_heads(name):
    mask = torch.zeros(2, 0, dtype=torch.bool)
    arcs = ArcDistribution.of(torch.zeros(2, M, 0, 1), mask, structure_named(name))
    assert arcs.sample(3, torch.Generator()).shape == (2, 3, 0)
