"""The kernels for trees give what the elimination in PyTorch gives, derivatives included."""

import pytest
import torch

from helpers.kernel_runs import DEVICE
from probformer.crf.structures import SpanningTrees, elimination, spanning_trees

pytest.importorskip("triton", reason="needs Triton")
from probformer.kernels.crf import trees

pytestmark = pytest.mark.kernels

single_or_many = pytest.mark.parametrize("single_root", [True, False], ids=["one", "many"])


def assert_eliminated_alike(weights, single_root):
    """log Z, and the probabilities that M and its derivative give."""
    tangent = weights * torch.randn_like(weights)
    expected = elimination.eliminate(weights, single_root, tangent)
    log_z, m, d_m = (
        x.cpu() for x in trees.eliminate(weights.to(DEVICE), single_root, tangent.to(DEVICE))
    )
    assert (log_z.dtype, m.dtype, d_m.dtype) == (torch.float64,) * 3
    torch.testing.assert_close(log_z, expected[0], rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(weights * m, weights * expected[1], rtol=0, atol=1e-13)
    torch.testing.assert_close(weights * d_m, weights * expected[2], rtol=0, atol=1e-12)
    alone, same, none = trees.eliminate(weights.to(DEVICE), single_root)
    assert none is None
    torch.testing.assert_close(alone.cpu(), log_z, rtol=0, atol=0)
    torch.testing.assert_close(same.cpu(), m, rtol=0, atol=0)


def random_weights(n, spread=3.0):
    return (spread * torch.randn(2, n, n + 1, dtype=torch.float64)).exp()


@single_or_many
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_elimination(n, single_root):
    assert_eliminated_alike(random_weights(n), single_root)


@single_or_many
@pytest.mark.parametrize(("n", "rows"), [(5, 1), (9, 4), (19, 16)])
def test_rows_come_in_several_parts(n, rows, single_root, monkeypatch):
    monkeypatch.setattr(trees, "_CELLS", rows * trees.triton.next_power_of_2(n + 1))
    assert_eliminated_alike(random_weights(n), single_root)


@single_or_many
def test_words_that_claim_each_other(single_root):
    weights = random_weights(5, spread=1.0)
    weights[0, 0, 1] = weights[0, 1, 0] = weights[0, 3, 4] = weights[0, 4, 3] = 1e60
    assert_eliminated_alike(weights / weights.amax(2, keepdim=True), single_root)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")  # NumPy, interpreting
@single_or_many
def test_without_a_tree(single_root):
    """No arc leads from the first word; then two words have nothing but each other."""
    weights = random_weights(4)[:1].repeat(3, 1, 1)
    weights[0, 0] = 0
    weights[1, :2, 2:] = 0
    expected, *_ = elimination.eliminate(weights, single_root)
    log_z, *_ = trees.eliminate(weights.to(DEVICE), single_root)
    torch.testing.assert_close(log_z.cpu(), expected)
    assert log_z.isinf().tolist() == [True, True, False]


@pytest.mark.parametrize("structure", [SpanningTrees(), SpanningTrees(False)], ids=["one", "many"])
def test_marginals_and_gradients_with_padding_and_evidence(structure, monkeypatch):
    scores = torch.randn(3, 2, 5, 6, dtype=torch.float64)
    words = torch.arange(5) < torch.tensor([5, 3, 0]).unsqueeze(1)
    words[1] = words[1].flip(0)
    pairs = words.unsqueeze(1) & words.unsqueeze(2) & ~torch.eye(5, dtype=torch.bool)
    forbidden = ~torch.cat([pairs, words.unsqueeze(2)], -1).unsqueeze(1).repeat(1, 2, 1, 1)
    observed = torch.full((3, 2, 5), -1)
    observed[0, 0, 1], observed[0, 0, 0], observed[1, 1, 3] = 5, 3, 2
    forbidden = structure.condition(forbidden, observed)
    weights, found = torch.randn(3, 2, 5, 6), []
    for device, kernels in (("cpu", False), (DEVICE, True)):
        monkeypatch.setattr(spanning_trees, "kernels_run_on", lambda _, kernels=kernels: kernels)
        given = scores.to(device).requires_grad_()
        marginals = structure.marginals(given, forbidden.to(device))
        (slope,) = torch.autograd.grad((marginals * weights.to(device)).sum(), given)
        log_z = structure.log_partition(given.detach(), forbidden.to(device))
        found.append([x.detach().cpu() for x in (marginals, slope, log_z)])
    for expected, actual in zip(*found, strict=True):
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
