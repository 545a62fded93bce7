"""Runs of mean field through the kernels, and what they are compared by."""

import torch

from probformer import mean_field

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def parts(posterior):
    """All that a task may read."""
    return [x for x in (posterior.z_scores, posterior.root_scores) if x is not None]


def gradients(outputs, inputs):
    """Of a fixed random function of the outputs."""
    torch.manual_seed(1)
    weights = [torch.randn(x.shape, dtype=torch.float64) for x in outputs]
    total = sum((x.double().cpu() * w).sum() for x, w in zip(outputs, weights, strict=True))
    return torch.autograd.grad(total, inputs)


def run(potentials, unary, mask, inference, dtype=torch.float32, autocast=False):
    """What the kernels say, and its gradients by scores and parameters."""
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
