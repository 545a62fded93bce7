"""Half precision and autocast: everything runs, and stays near the float64 truth."""

import pytest
import torch

from models import EXTRAS, WORDS, build, random_batch
from probformer import Inference, mean_field


def distance(words, extras, run):
    potentials, (unary, mask) = build(words, extras), random_batch((7, 4, 1))
    truth = mean_field(unary, mask, potentials, Inference(iterations=2)).z_scores
    scores = run(unary, mask, potentials)
    assert torch.isfinite(scores).all()
    return ((scores.double() - truth).norm() / truth.norm()).item()


@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("words", ["uv", "rotary"])
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
