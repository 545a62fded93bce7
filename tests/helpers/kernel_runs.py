"""Mean-field inference through the kernels, and comparisons of its outputs and gradients."""

import torch

from helpers.models import build, random_batch
from probformer import mean_field
from probformer.packing import Packing

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def parts(posterior):
    """The outputs that tasks use."""
    return [x for x in (posterior.z_scores, posterior.root_scores) if x is not None]


def gradients(outputs, inputs):
    """Gradients of a fixed random function of the outputs."""
    torch.manual_seed(1)
    weights = [torch.randn(x.shape, dtype=torch.float64) for x in outputs]
    total = sum((x.double().cpu() * w).sum() for x, w in zip(outputs, weights, strict=True))
    return torch.autograd.grad(total, inputs)


def run(potentials, unary, mask, inference, dtype=torch.float32, autocast=False):
    """Outputs of the kernels, and their gradients with respect to scores and parameters."""
    potentials = potentials.to(DEVICE, dtype)
    unary = unary.detach().to(DEVICE, dtype).requires_grad_()
    with torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
        outputs = parts(mean_field(unary, mask.to(DEVICE), potentials, inference, attention=False))
    return outputs, gradients(outputs, [unary, *potentials.parameters()])


def assert_close(actual, expected, tolerance=1e-5):
    for x, y in zip(actual, expected, strict=True):
        x, y = x.double().cpu(), y.double().cpu()
        assert torch.isfinite(x).all()
        assert (x - y).norm() <= tolerance * (y.norm() + 1e-6)


def assert_packed_sentences_equal_padded_ones(words, extras, inference, longest, tail):
    """Lengths need blocks of different sizes, one is 0, and `tail` places follow the last word."""
    lengths = torch.tensor([5, 34, 0, 1])
    potentials, (unary, mask) = build(words, extras), random_batch(lengths.tolist())
    unary = unary.requires_grad_()
    expected = mean_field(unary, mask, potentials, inference, trace=True).z_scores[mask]
    expected_gradients = gradients([expected], [unary, *potentials.parameters()])

    starts = lengths.cumsum(0) - lengths
    packing = Packing(starts.int().to(DEVICE), lengths.int().to(DEVICE), longest)
    potentials = potentials.to(DEVICE, torch.float32)
    scores = unary.detach().float().to(DEVICE).requires_grad_()
    row = torch.nn.functional.pad(scores[mask.to(DEVICE)], (0, 0, 0, tail)).unsqueeze(0)
    there = (torch.arange(40 + tail) < 40).unsqueeze(0).to(DEVICE)
    posterior = mean_field(row, there, potentials, inference, attention=False, packing=packing)
    actual = posterior.z_scores[0, :40]
    assert_close([actual], [expected])
    assert_close(gradients([actual], [scores, *potentials.parameters()]), expected_gradients)
