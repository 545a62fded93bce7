"""From scores to distributions."""

import pytest
import torch

from probformer.crf.normalisers import NORMALISERS, relu, softmax, squares

FORBIDDEN = torch.tensor([[False, True, False], [True, True, True]])


@pytest.mark.parametrize("name", NORMALISERS)
def test_distributions_over_what_is_allowed(name):
    scores = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    q = NORMALISERS[name](scores, FORBIDDEN)
    assert q[0, 1] == 0
    assert q[0].sum().item() == pytest.approx(1)
    assert not q[1].any()
    (q * torch.randn(2, 3)).sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert not scores.grad[1].any()


@pytest.mark.parametrize("name", NORMALISERS)
def test_gradients(name):
    scores = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    forbidden = torch.rand(4, 3) < 0.3
    torch.autograd.gradcheck(lambda x: NORMALISERS[name](x, forbidden), scores)


@pytest.mark.parametrize("name", NORMALISERS)
def test_no_scores_at_all_mean_uniform(name):
    scores = torch.zeros(2, 3, requires_grad=True)
    q = NORMALISERS[name](scores, FORBIDDEN)
    assert q.tolist() == [[0.5, 0, 0.5], [0, 0, 0]]
    q[0, 0].backward()
    assert torch.isfinite(scores.grad).all()


def test_values():
    nothing = torch.tensor([False])
    scores = torch.tensor([1.0, -2.0, 3.0])
    torch.testing.assert_close(softmax(scores, nothing), scores.softmax(-1))
    torch.testing.assert_close(relu(scores, nothing), torch.tensor([0.25, 0, 0.75]))
    torch.testing.assert_close(squares(scores, nothing), torch.tensor([1.0, 4, 9]) / 14)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_masks_without_overflow(dtype):
    q = softmax(torch.randn(2, 3).to(dtype), FORBIDDEN)
    assert torch.isfinite(q).all()
    assert not q[1].any()
