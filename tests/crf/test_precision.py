"""Half precision and autocast: everything runs, and stays near the float64 truth."""

import pytest
import torch

from helpers.models import EXTRAS, WORDS, build, random_batch
from probformer import Inference, mean_field
from probformer.crf import fused
from probformer.crf.potentials import UV


def distance(words, extras, run):
    potentials, (unary, mask) = build(words, extras), random_batch((7, 4, 1))
    truth = mean_field(unary, mask, potentials, Inference(iterations=2)).z_scores
    scores = run(unary, mask, potentials)
    assert torch.isfinite(scores).all()
    return ((scores.double() - truth).norm() / truth.norm()).item()


@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("words", WORDS)
def test_bfloat16(words, extras):
    def run(unary, mask, potentials):
        half = potentials.to(torch.bfloat16)
        return mean_field(unary.bfloat16(), mask, half, Inference(iterations=2)).z_scores

    assert distance(words, extras, run) < 0.1


@pytest.mark.parametrize("words", WORDS)
def test_autocast(words):
    def run(unary, mask, potentials):
        with torch.autocast("cpu", torch.bfloat16):
            post = mean_field(unary.float(), mask, potentials.float(), Inference(iterations=2))
        assert post.z_scores.dtype == torch.float32
        return post.z_scores

    assert distance(words, "root", run) < 0.1


def test_float16_scores_do_not_overflow():
    """1/λ_H = d = 384 takes scores of 200 beyond what float16 can hold."""
    potential = UV(384, 2, 8)
    potential.U.data.mul_(60)
    unary, mask = torch.randn(1, 6, 384) * 3, torch.ones(1, 6, dtype=torch.bool)
    with torch.autocast("cpu", torch.float16):
        post = mean_field(unary, mask, potential)
    assert torch.isfinite(post.z_scores).all()
    rows = post.head_marginals.sum(-1)
    torch.testing.assert_close(rows, torch.ones_like(rows), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_norm_is_computed_in_float32(words, dtype):
    potential = build(words, dtype=torch.float32).words
    expected = potential.norm().item()
    with torch.autocast("cpu", dtype):
        assert potential.norm().item() == pytest.approx(expected, rel=1e-5)
    half = potential.to(dtype)
    for parameter in half.parameters():
        parameter.data.mul_(30)
    assert torch.isfinite(half.norm())


def test_outputs_have_the_precision_of_the_model_and_marginals_float32():
    potentials, (unary, mask) = build("uv", "root", torch.bfloat16), random_batch()
    post = mean_field(unary.bfloat16(), mask, potentials)
    assert post.z_scores.dtype == post.root_scores.dtype == torch.bfloat16
    assert post.z_marginals.dtype == post.head_marginals.dtype == torch.float32


def test_a_trace_in_half_precision():
    potentials, (unary, mask) = build("uv", "root"), random_batch()
    exact = mean_field(unary, mask, potentials, trace=True).trace[-1].free_energy
    half = mean_field(unary.bfloat16(), mask, potentials.bfloat16(), trace=True).trace[-1]
    torch.testing.assert_close(half.free_energy.double(), exact, rtol=0.05, atol=0.05)


def test_gradients_of_iterations_add_up_in_the_precision_of_the_parameter():
    """In bfloat16 a sum stays at 1 whatever small numbers come after."""
    parameter = torch.zeros(1, requires_grad=True)
    rounded = fused._for_products(parameter, torch.bfloat16, 257)
    assert {x.dtype for x in rounded} == {torch.bfloat16}
    weights = [1.0] + 256 * [2.0**-9]
    sum((x * w).sum() for x, w in zip(rounded, weights, strict=True)).backward()
    assert parameter.grad.item() == 1.5
