"""Dropout touches what messages read and what is returned, and nothing that is kept."""

import pytest
import torch

from models import build, random_batch
from probformer import Inference, mean_field

RATE = 0.4


def generator():
    return torch.Generator().manual_seed(7)


def naive(unary, potentials, inference, generator):
    """One full-length sentence at a time, from the rules: dense potentials, softmax, one draw
    for the heads and then one for the labels in every iteration."""
    n, h = unary.shape[1], potentials.words.channels
    T = torch.stack(
        [torch.stack([potentials.words.dense(i - j) for j in range(n)]) for i in range(n)]
    )
    itself = torch.eye(n, dtype=torch.bool)
    T = T.masked_fill(itself[:, :, None, None, None], 0.0)  # (i, j, c, a, b)

    def drop(x):
        keep = torch.rand(x.shape, generator=generator, dtype=torch.float32) >= RATE
        return x * keep / (1 - RATE)

    clean = read = unary.softmax(-1)
    p_old = None
    for t in range(inference.iterations):
        f = torch.einsum("xia,ijcab,xjb->xcij", read, T, read)
        p = (f / inference.lambda_h).masked_fill(itself, -torch.inf).softmax(-1)
        if t > 0:
            p = inference.step_h * p + (1 - inference.step_h) * p_old
        p_old, heard = p, drop(p)
        g = torch.einsum("xcij,ijcab,xjb->xia", heard, T, read)
        g = g + torch.einsum("xcji,jicba,xjb->xia", heard, T, read)
        scores = unary + g
        dropped = drop(scores)
        alpha = inference.step_z
        read = alpha * dropped.softmax(-1) + (1 - alpha) * clean
        clean = alpha * scores.softmax(-1) + (1 - alpha) * clean
    assert h == p.shape[1]
    return dropped, clean, p


@pytest.mark.parametrize("steps", [(1.0, 1.0), (0.5, 0.8)])
def test_against_the_rules_written_out(steps):
    inference = Inference(iterations=3, lambda_h=0.3, step_z=steps[0], step_h=steps[1])
    potentials, (unary, mask) = build("uv"), random_batch((5, 5))
    post = mean_field(unary, mask, potentials, inference, dropout=RATE, generator=generator())
    scores, z, p = naive(unary, potentials, inference, generator())
    torch.testing.assert_close(post.z_scores, scores)
    torch.testing.assert_close(post.z_marginals, z)
    torch.testing.assert_close(post.head_marginals, p)


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
