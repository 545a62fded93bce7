"""Dropout applies to the inputs of messages and to what is returned, not to what is kept."""

import pytest
import torch

from helpers.models import build, random_batch
from probformer import Evidence, Inference, mean_field

RATE = 0.4


def generator():
    return torch.Generator().manual_seed(7)


def naive(unary, potentials, inference, generator):
    """Full-length sentences with ROOT and all-dep globals, from the rules written down: in every
    iteration one draw for the heads, one for the labels and one for ROOT's; what is kept for
    step sizes and damping, and the marginals, stay clean."""
    n = unary.shape[1]
    T = [[potentials.words.dense(i - j) for j in range(n)] for i in range(n)]
    T = torch.stack([torch.stack(row) for row in T])  # (i, j, c, a, b)
    T_root, B = potentials.root.T, potentials.globals.B
    itself = torch.eye(n, dtype=torch.bool)
    T = T.masked_fill(itself[:, :, None, None, None], 0.0)
    forbidden = torch.cat([itself, torch.zeros(n, 1 + B.shape[1], dtype=torch.bool)], 1)

    def drop(x):
        keep = torch.rand(x.shape, generator=generator, dtype=torch.float32) >= RATE
        return x * keep / (1 - RATE)

    def update(old, new, step):
        return new if old is None else step * new + (1 - step) * old

    clean = sent = unary.softmax(-1)
    root = root_sent = torch.full((len(unary), 7), 1 / 7, dtype=unary.dtype)
    m_h, m_z, m_root, p = 0.0, unary, torch.zeros_like(root), None
    alpha_z, beta_z, beta_h = inference.step_z, inference.damping_z, inference.damping_h
    for _ in range(inference.iterations):
        f = torch.einsum("xia,ijcab,xjb->xcij", sent, T, sent)
        f_root = torch.einsum("xia,cab,xb->xci", sent, T_root, root_sent).unsqueeze(-1)
        f_globals = torch.einsum("xia,cka->xcik", sent, B)
        m_h = (1 - beta_h) * torch.cat([f, f_root, f_globals], -1) + beta_h * m_h
        new = (m_h / inference.lambda_h).masked_fill(forbidden, -torch.inf).softmax(-1)
        p = update(p, new, inference.step_h)
        dropped = drop(p)
        words, to_root, features = dropped[..., :n], dropped[..., n], dropped[..., n + 1 :]
        g = torch.einsum("xcij,ijcab,xjb->xia", words, T, sent)
        g = g + torch.einsum("xcji,jicba,xjb->xia", words, T, sent)
        g = g + torch.einsum("xci,cab,xb->xia", to_root, T_root, root_sent)
        g = g + torch.einsum("xcik,cka->xia", features, B)
        g_root = torch.einsum("xci,xia,cab->xb", to_root, sent, T_root)
        m_z = (1 - beta_z) * (unary + g) + beta_z * m_z
        m_root = (1 - beta_z) * g_root + beta_z * m_root
        scores, root_scores = drop(m_z), drop(m_root)
        sent = update(clean, scores.softmax(-1), alpha_z)
        root_sent = update(root, root_scores.softmax(-1), alpha_z)
        clean = update(clean, m_z.softmax(-1), alpha_z)
        root = update(root, m_root.softmax(-1), alpha_z)
    return scores, clean, root_scores, root, p


@pytest.mark.parametrize("steps", [(1.0, 1.0), (0.5, 0.8)])
@pytest.mark.parametrize("damping", [(0.0, 0.0), (0.4, 0.3)])
def test_against_the_rules_written_out(steps, damping):
    inference = Inference(
        iterations=3,
        lambda_h=0.3,
        step_z=steps[0],
        step_h=steps[1],
        damping_z=damping[0],
        damping_h=damping[1],
    )
    potentials, (unary, mask) = build("uv", "root-all-dep"), random_batch((5, 5))
    post = mean_field(unary, mask, potentials, inference, dropout=RATE, generator=generator())
    scores, z, root_scores, root, p = naive(unary, potentials, inference, generator())
    torch.testing.assert_close(post.z_scores, scores)
    torch.testing.assert_close(post.z_marginals, z)
    torch.testing.assert_close(post.root_scores, root_scores)
    torch.testing.assert_close(post.root_marginals, root)
    torch.testing.assert_close(post.head_marginals, p[..., :5])
    torch.testing.assert_close(post.root_head_marginals, p[..., 5])
    torch.testing.assert_close(post.global_marginals, p[..., 6:])


def test_what_is_observed_is_not_dropped():
    """All heads and labels observed: dropout is left with the returned scores alone."""
    potentials, (unary, mask) = build("uv"), random_batch((4,))
    heads = torch.tensor([1, 2, 3, 0]).expand(1, 3, 4).contiguous()
    evidence = Evidence(labels=torch.tensor([[0, 1, 2, 3]]), heads=heads)
    post = mean_field(unary, mask, potentials, None, RATE, generator(), evidence)
    clean = mean_field(unary, mask, potentials, evidence=evidence)
    kept = post.z_scores != 0
    torch.testing.assert_close(post.z_scores[kept], clean.z_scores[kept] / (1 - RATE))


@pytest.mark.parametrize("extras", ["plain", "root", "root-all-dep", "dep-split"])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_marginals_stay_distributions_and_streams_repeat(extras, asynchronous):
    potentials, (unary, mask) = build("uv", extras), random_batch()
    inference = Inference(iterations=3, asynchronous=asynchronous, damping_z=0.2)

    def run():
        return mean_field(unary, mask, potentials, inference, RATE, generator())

    post = run()
    assert torch.equal(post.z_scores, run().z_scores)
    torch.testing.assert_close(post.z_marginals.sum(-1), mask.double())
    heads = post.head_marginals.sum(-1)
    if post.root_head_marginals is not None:
        heads = heads + post.root_head_marginals
    if extras == "root-all-dep":
        heads = heads + post.global_marginals.sum(-1)
    has_head = mask if post.root_head_marginals is not None else mask & (mask.sum(1) > 1)[:, None]
    torch.testing.assert_close(heads, has_head.double()[:, None].expand_as(heads))
    assert (post.z_scores[mask] == 0).any()
    clean = mean_field(unary, mask, potentials, inference)
    assert not torch.allclose(post.z_scores, clean.z_scores)


def test_roots_scores_are_dropped_too():
    potentials, (unary, mask) = build("uv", "root"), random_batch()
    post = mean_field(unary, mask, potentials, dropout=RATE, generator=generator())
    assert (post.root_scores == 0).any()
    torch.testing.assert_close(post.root_marginals.sum(-1), torch.ones(3, dtype=torch.float64))


def test_without_a_generator_the_global_stream_is_used():
    potentials, (unary, mask) = build("uv"), random_batch()
    torch.manual_seed(1)
    first = mean_field(unary, mask, potentials, dropout=RATE).z_scores
    second = mean_field(unary, mask, potentials, dropout=RATE).z_scores
    torch.manual_seed(1)
    again = mean_field(unary, mask, potentials, dropout=RATE).z_scores
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
