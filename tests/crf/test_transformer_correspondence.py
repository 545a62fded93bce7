"""Section 3 of the paper: mean field and attention, where they agree and where they do not."""

import pytest
import torch
import torch.nn.functional as F

from probformer import Inference, mean_field
from probformer.crf.potentials import UV, Full, Global, Potentials

N, D, H, R = 6, 8, 3, 4


def one_iteration(potentials, lambda_h=0.3):
    unary = torch.randn(1, N, D, dtype=torch.float64)
    mask = torch.ones(1, N, dtype=torch.bool)
    inference = Inference(iterations=1, lambda_h=lambda_h)
    return unary, mean_field(unary, mask, potentials, inference)


def as_dependent(potential, q, lambda_h=0.3):
    """Σ_c softmax(Q_c K_cᵀ / λ_H) V_c U_cᵀ by PyTorch's attention, the diagonal masked."""
    U, V = potential.U[0].mT, potential.V[0].mT  # (h, d, r)
    itself = torch.eye(N, dtype=torch.bool)
    attended = F.scaled_dot_product_attention(
        q @ U, q @ V, q @ V, attn_mask=~itself, scale=1 / lambda_h
    )
    return (attended @ U.mT).sum(0)


def test_the_message_to_dependents_is_attention():
    potential = UV(D, H, R, gamma=None).double()
    unary, post = one_iteration(potential)
    q = unary[0].softmax(-1)
    p = post.head_marginals[0]
    as_head = sum(p[c].mT @ q @ potential.dense(1)[c] for c in range(H))
    expected = unary[0] + as_dependent(potential, q) + as_head
    torch.testing.assert_close(post.z_scores[0], expected, rtol=1e-12, atol=1e-12)


def test_single_split_globals_are_a_feed_forward_layer():
    """GFU(x) = σ(x Bᵀ / λ_H) B (eq. 62 has no λ_H, the authors' code does)."""
    words = UV(D, H, R, gamma=None)
    features = Global(D, H, 5, "single-split")
    potentials = Potentials(words, globals=features).double()
    unary, post = one_iteration(potentials)
    without = mean_field(
        unary, torch.ones(1, N, dtype=torch.bool), words, Inference(iterations=1, lambda_h=0.3)
    )
    q, B = unary[0].softmax(-1), features.B[0]
    expected = (q @ B.mT / 0.3).softmax(-1) @ B
    torch.testing.assert_close(post.z_scores[0] - without.z_scores[0], expected)


@pytest.mark.parametrize(("n", "symmetric"), [(2, True), (3, False), (6, False)])
def test_a_symmetric_t_makes_symmetric_heads_only_for_two_words(n, symmetric):
    """A row-wise softmax breaks the symmetry, and with it the factor 2 of eq. 20."""
    potential = Full(D, H, gamma=None).double()
    potential.T.data.copy_(potential.T + potential.T.mT)
    unary = torch.randn(1, n, D, dtype=torch.float64)
    mask = torch.ones(1, n, dtype=torch.bool)
    post = mean_field(unary, mask, potential, Inference(iterations=1, lambda_h=0.3))
    p = post.head_marginals[0]
    assert torch.allclose(p, p.mT) is symmetric
    q = unary[0].softmax(-1)
    doubled = 2 * sum(p[c] @ q @ potential.dense(1)[c].mT for c in range(H))
    assert torch.allclose(post.z_scores[0] - unary[0], doubled) is symmetric


def test_all_dep_with_feature_variables_is_all_dep_with_b():
    words = UV(D, H, R)
    features = Global(D, H, 5, "all-dep", features=True)
    plain = Global(D, H, 5, "all-dep")
    with_features = Potentials(words, globals=features).double()
    plain.B.data = features.dense().detach()
    unary, mask = torch.randn(2, N, D, dtype=torch.float64), torch.ones(2, N, dtype=torch.bool)
    first = mean_field(unary, mask, with_features)
    second = mean_field(unary, mask, Potentials(words, globals=plain))
    torch.testing.assert_close(first.z_scores, second.z_scores, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(first.global_marginals, second.global_marginals)
    # B as the paper states it: Σ_g P(F_j = g) T″_ag
    probabilities = features.feature_logits.softmax(-1)
    expected = torch.einsum("jg,cag->cja", probabilities, features.T)
    torch.testing.assert_close(features.dense(), expected)
