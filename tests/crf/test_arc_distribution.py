"""The distribution over heads and labels, against enumeration of all heads and labels."""

import itertools

import pytest
import torch

from probformer.crf.arc_distribution import ArcDistribution
from probformer.crf.structures import structure_named
from probformer.sentinels import ROOT, UNOBSERVED

STRUCTURES = ["independent", "tree", "projective"]
N, M = 4, 3


def distribution(name, lengths=(4, 2, 1), labels=M):
    """Random scores for sentences that are padded to four words."""
    torch.manual_seed(0)
    mask = torch.arange(N) < torch.tensor(lengths).unsqueeze(1)
    scores = 2 * torch.randn(len(lengths), labels, N, N + 1)
    return ArcDistribution.of(scores, mask, structure_named(name)), lengths


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


@pytest.mark.parametrize("labels", [1, M])
@pytest.mark.parametrize("name", STRUCTURES)
def test_samples_are_as_frequent_as_they_are_probable(name, labels):
    arcs, _ = distribution(name, (3, 1), labels)
    count = 4000
    drawn = arcs.sample(count, torch.Generator().manual_seed(0))
    assert drawn.shape == (2, count, N)
    weights = {}
    for heads, _, weight in assignments(arcs, 0, 3):
        weights[heads] = weights.get(heads, 0) + weight
    total = sum(weights.values())
    found = [tuple(heads[:3]) for heads in drawn[0].tolist()]
    assert {*found} <= {*weights}
    for heads, weight in weights.items():
        p = weight / total
        spread = (p * (1 - p) / count) ** 0.5
        assert abs(found.count(heads) / count - p) <= 4.5 * spread + 1e-3
    assert (drawn[1, :, 0] == ROOT).all()
