"""Distributions over trees: against lists of all trees, and against elimination in log space."""

import functools
import itertools

import pytest
import torch

from probformer.crf.structures import (
    ByChannel,
    Independent,
    Labelled,
    ProjectiveTrees,
    SpanningTrees,
    elimination,
)
from probformer.sentinels import ROOT, UNOBSERVED

TREES = {
    f"{cls.__name__}-{'one root' if single else 'many roots'}": cls(single)
    for cls in (SpanningTrees, ProjectiveTrees)
    for single in (True, False)
}
trees = pytest.mark.parametrize("structure", TREES.values(), ids=TREES)


def crosses(heads):
    """Whether two arcs cross, with ROOT in front of the sentence."""
    arcs = [sorted((word, head)) for word, head in enumerate(heads)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


@functools.cache
def all_trees(n, single_root, projective):
    """Every tree, by definition: from each word, heads lead to ROOT."""
    found = []
    for heads in itertools.product(range(ROOT, n), repeat=n):
        roots = heads.count(ROOT)
        if roots == 0 or (single_root and roots > 1) or (projective and crosses(heads)):
            continue
        reached = {ROOT}
        for _ in range(n):
            reached |= {word for word in range(n) if heads[word] in reached}
        if len(reached) == n + 1:
            found.append(heads)
    return found


def trees_of(structure, n):
    return all_trees(n, structure.single_root, isinstance(structure, ProjectiveTrees))


def fits(tree, observed):
    return all(o in (UNOBSERVED, head) for o, head in zip(observed, tree, strict=True))


def enumerate_trees(structure, scores, forbidden):
    """Marginals, log Z and entropy by a list of all trees, and where there is a tree at all.

    Scores are (S, n, n+1), with ROOT in the last column.
    """
    n = scores.shape[1]
    found = trees_of(structure, n)
    arcs = torch.zeros(len(found), n, n + 1, dtype=scores.dtype)
    for number, heads in enumerate(found):
        arcs[number, range(n), heads] = 1.0  # ROOT, −1, is the last column
    impossible = torch.einsum("tij,sij->st", arcs, forbidden.to(scores.dtype)) > 0
    totals = torch.einsum("tij,sij->st", arcs, scores).masked_fill(impossible, -torch.inf)
    there = ~impossible.all(1)
    p = totals[there].softmax(1)
    marginals = torch.einsum("st,tij->sij", p, arcs)
    return marginals, totals[there].logsumexp(1), torch.special.entr(p).sum(1), there


def assert_sums(structure, scores, forbidden, tolerance=1e-10):
    """Marginals, their gradient, log Z and entropy of sentences (S, n, n+1) are those of the list.

    Returns:
        Where there is a tree.
    """
    scores = scores.clone().requires_grad_()
    expected, log_z, entropy, there = enumerate_trees(structure, scores, forbidden)
    given = scores[there].unsqueeze(1), forbidden[there].unsqueeze(1)
    marginals = structure.marginals(*given)
    weights = torch.randn_like(expected)
    both = marginals[:, 0], expected
    slopes = [torch.autograd.grad((x * weights).sum(), scores)[0] for x in both]
    pairs = [
        both,
        (structure.log_partition(*given), log_z),
        (structure.entropy(given[0], marginals, given[1]), entropy),
        slopes,
    ]
    for found, wanted in pairs:
        torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)
    impossible = scores[~there].unsqueeze(1), forbidden[~there].unsqueeze(1)
    assert (structure.log_partition(*impossible) == -torch.inf).all()
    return there


def diagonal(n):
    return torch.eye(n, n + 1, dtype=torch.bool)


def random_scores(n, spread=1.0, count=1):
    return spread * torch.randn(count, n, n + 1, dtype=torch.float64)


@trees
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0])
def test_sums_are_those_over_all_trees(structure, n, spread):
    assert_sums(structure, random_scores(n, spread), diagonal(n)[None])


@trees
def test_log_z_can_be_differentiated_twice(structure):
    scores = random_scores(4)[None].requires_grad_()
    forbidden = diagonal(4)[None, None]
    log_z = structure.log_partition(scores, forbidden).sum()
    (slope,) = torch.autograd.grad(log_z, scores, create_graph=True)
    torch.testing.assert_close(slope, structure.marginals(scores, forbidden))
    weights, expected = (
        torch.randn_like(scores),
        enumerate_trees(structure, scores[0], forbidden[0]),
    )
    pair = [torch.autograd.grad((x * weights).sum(), scores)[0] for x in (slope, expected[0])]
    torch.testing.assert_close(*pair)


@trees
@pytest.mark.parametrize("certainty", [60.0, 400.0])
def test_words_that_claim_each_other(structure, certainty):
    """Where two words are each other's head almost certainly, the Laplacian is singular."""
    scores = random_scores(4)
    scores[0, 0, 1] = scores[0, 1, 0] = scores[0, 2, 3] = scores[0, 3, 2] = certainty
    assert_sums(structure, scores, diagonal(4)[None])


@trees
def test_a_circle_of_certain_claims(structure):
    scores = random_scores(5)
    for word in range(5):
        scores[0, word, (word + 1) % 5] = 200.0
    assert_sums(structure, scores, diagonal(5)[None])


@pytest.mark.parametrize("height", [-2000.0, 2000.0])
@pytest.mark.parametrize(
    "structure", [SpanningTrees(), *(ProjectiveTrees(x) for x in (True, False))]
)
def test_one_word_is_the_root_however_high_or_low_the_scores_of_root_are(structure, height):
    scores = random_scores(5)
    scores[..., -1] += height
    assert_sums(structure, scores, diagonal(5)[None])


@trees
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_observed_heads(structure, n):
    """All partial trees: conditioned before anything is summed; a tree has them, or a fault."""
    others = [[head for head in range(UNOBSERVED, n) if head != word] for word in range(n)]
    observed = list(itertools.product(*others))
    index = torch.tensor(observed)
    index = torch.where(index == ROOT, n, index)
    forbidden = structure.condition(diagonal(n).expand(len(index), n, n + 1), index)
    there = assert_sums(structure, random_scores(n, 3.0, len(index)), forbidden)
    assert there.tolist() == [structure.fault(heads) is None for heads in observed]
    possible = [any(fits(tree, heads) for tree in trees_of(structure, n)) for heads in observed]
    assert there.tolist() == possible


@trees
@pytest.mark.parametrize("n", [2, 3, 4])
def test_any_arcs_may_be_forbidden(structure, n):
    """Every set of arcs from which each word has one at least."""
    arcs = (~diagonal(n)).nonzero()
    sets = torch.tensor([*itertools.product([True, False], repeat=len(arcs))])
    forbidden = torch.ones(len(sets), n, n + 1, dtype=torch.bool)
    forbidden[:, arcs[:, 0], arcs[:, 1]] = sets
    forbidden = forbidden[~forbidden.all(2).any(1)]
    there = assert_sums(structure, random_scores(n, 3.0, len(forbidden)), forbidden)
    assert 0 < there.sum() < len(there)


@trees
def test_forbidden_labels_forbid_arcs(structure):
    """An arc with no label that is allowed is none; the label of another one is a choice."""
    labelled, n, labels = Labelled(structure), 4, 3
    scores = torch.randn(1, labels, n, n + 1, dtype=torch.float64, requires_grad=True)
    forbidden = diagonal(n) | (torch.rand(1, labels, n, n + 1) < 0.4)
    forbidden[:, :, 0, 1] = forbidden[:, :, 2, 3] = True
    closed = forbidden.all(1)
    assert not closed.all(2).any()
    of_arcs = scores.masked_fill(forbidden, -torch.inf).logsumexp(1).masked_fill(closed, 0.0)
    arcs, log_z, *_ = enumerate_trees(structure, of_arcs, closed)
    choice = torch.where(closed.unsqueeze(1), 0.0, scores.masked_fill(forbidden, -1e9)).softmax(1)
    expected = choice.masked_fill(forbidden, 0.0) * arcs.unsqueeze(1)
    found = labelled.marginals(scores, forbidden)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(labelled.log_partition(scores, forbidden), log_z)
    weights = torch.randn_like(expected)
    pair = [torch.autograd.grad((x * weights).sum(), scores)[0] for x in (found, expected)]
    torch.testing.assert_close(*pair, rtol=1e-10, atol=1e-10)


@trees
def test_faults_are_the_partial_heads_of_no_tree(structure):
    """For five words, by a random choice of partial heads."""
    possible, torch_random = trees_of(structure, 5), torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(400):
        observed = torch.randint(UNOBSERVED, 5, (5,), generator=torch_random).tolist()
        if any(head == word for word, head in enumerate(observed)):
            continue
        fitting = any(fits(tree, observed) for tree in possible)
        assert (structure.fault(observed) is None) == fitting, observed
        seen.add(fitting)
    assert seen == {True, False}


@trees
def test_padding_does_not_count_wherever_it_stands(structure):
    scores = torch.randn(2, 1, 5, 6, dtype=torch.float64, requires_grad=True)
    words = torch.tensor([[True, True, True, False, False], [False, True, False, True, True]])
    forbidden = forbidden_by(words)
    marginals, weights = structure.marginals(scores, forbidden), torch.randn_like(scores)
    entropy = structure.entropy(scores, marginals, forbidden)
    assert not marginals[forbidden].any()
    (slope,) = torch.autograd.grad((marginals * weights).sum(), scores)
    assert not slope[forbidden].any()
    for b, word in enumerate(words):
        columns = torch.cat([word, torch.tensor([True])])
        alone = scores[b, :, word][:, :, columns]
        expected, log_z, of_trees, _ = enumerate_trees(structure, alone, diagonal(3)[None])
        torch.testing.assert_close(marginals[b, 0][word][:, columns], expected[0])
        of_one = structure.log_partition(scores[b : b + 1], forbidden[b : b + 1])
        torch.testing.assert_close(of_one, log_z)
        torch.testing.assert_close(entropy[b : b + 1], of_trees)
        total = (expected[0] * weights[b, 0][word][:, columns]).sum()
        (own,) = torch.autograd.grad(total, scores)
        torch.testing.assert_close(slope[b], own[b])
    none = torch.ones(1, 1, 5, 6, dtype=torch.bool)
    assert structure.log_partition(scores[:1], none).tolist() == [0.0]
    assert not structure.marginals(scores[:1], none).any()


def forbidden_by(words):
    """(B, 1, n, n+1), for a mask (B, n)."""
    n = words.shape[1]
    pairs = words.unsqueeze(1) & words.unsqueeze(2) & ~torch.eye(n, dtype=torch.bool)
    return ~torch.cat([pairs, words.unsqueeze(2)], -1).unsqueeze(1)


@trees
def test_sentences_without_words_have_one_tree(structure):
    scores, forbidden = torch.randn(2, 3, 0, 1), torch.zeros(2, 1, 0, 1, dtype=torch.bool)
    assert structure.marginals(scores, forbidden).shape == (2, 3, 0, 1)
    assert structure.log_partition(scores, forbidden).tolist() == [0.0, 0.0]
    assert structure.log_partition(scores[:0], forbidden[:0]).shape == (0,)


def eliminated_in_log_space(scores, single_root):
    """log Z of trees over n words (n, n+1), ROOT last; the first word is eliminated last."""
    total, rows = 0.0, scores
    for i in range(len(scores) - 1, 0, -1):
        competing = rows[i, :i] if single_root else torch.cat([rows[i, :i], rows[i, -1:]])
        s = competing.logsumexp(0)
        total = total + s
        rows = torch.logaddexp(rows[:i], rows[:i, i : i + 1] + (rows[i] - s))
    return total + rows[0, -1]


@pytest.mark.parametrize("spread", [1.0, 10.0, 20.0, 60.0])
@pytest.mark.parametrize("single_root", [True, False])
def test_elimination_agrees_with_log_space(spread, single_root):
    """Ordinary arithmetic against the same elimination in log space, with large scores."""
    structure = SpanningTrees(single_root)
    for n in (2, 12, 30):
        scores = (spread * torch.randn(n, n + 1, dtype=torch.float64)).requires_grad_()
        given, weights = (scores[None, None], diagonal(n)[None, None]), torch.randn(n, n + 1)
        log_z, marginals = structure.log_partition(*given)[0], structure.marginals(*given)[0, 0]
        expected = eliminated_in_log_space(scores, single_root)
        torch.testing.assert_close(log_z, expected, rtol=1e-12, atol=0)
        (slope,) = torch.autograd.grad(expected, scores, create_graph=True)
        torch.testing.assert_close(marginals, slope, rtol=0, atol=1e-9)
        pair = [torch.autograd.grad((x * weights).sum(), scores)[0] for x in (marginals, slope)]
        torch.testing.assert_close(*pair, rtol=0, atol=1e-8)


@trees
@pytest.mark.parametrize("spread", [1.0, 10.0, 20.0, 60.0])
def test_float32_is_as_good_as_its_scores(structure, spread):
    for n in (2, 17, 100) if isinstance(structure, SpanningTrees) else (2, 17):
        scores = (spread * torch.randn(4, 2, n, n + 1)).requires_grad_()
        forbidden = diagonal(n)[None, None]
        marginals = structure.marginals(scores, forbidden)
        precise = structure.marginals(scores.detach().double(), forbidden)
        assert ((marginals >= 0) & (marginals <= 1)).all()
        torch.testing.assert_close(marginals.double(), precise, rtol=0, atol=1e-4)
        ones = torch.ones(4, 2, n)
        torch.testing.assert_close(marginals.sum(-1), ones, rtol=0, atol=1e-4)
        log_z = structure.log_partition(scores, forbidden)
        expected = structure.log_partition(scores.detach().double(), forbidden)
        torch.testing.assert_close(log_z.double(), expected, rtol=1e-6, atol=0)
        (slope,) = torch.autograd.grad((marginals * torch.randn_like(marginals)).sum(), scores)
        assert torch.isfinite(slope).all()


def test_sentences_in_several_parts(monkeypatch):
    monkeypatch.setattr(elimination, "_CACHED", 0)  # of 64 sentences, as few as there may be
    assert_sums(SpanningTrees(), random_scores(3, 1.0, 150), diagonal(3).repeat(150, 1, 1))


def test_channels_that_share_a_structure_are_as_each_by_itself():
    rows, one = Independent(), SpanningTrees()
    mixed = ByChannel([rows, rows, one, one, rows])
    scores = torch.randn(2, 5, 4, 5, dtype=torch.float64)
    forbidden = diagonal(4)[None, None]
    marginals = mixed.marginals(scores, forbidden)
    for c in range(5):
        alone = mixed.of_channel(c).marginals(scores[:, c : c + 1], forbidden)
        torch.testing.assert_close(marginals[:, c : c + 1], alone)
