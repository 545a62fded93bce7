"""Errata of the paper's appendix A, and of what section 2 builds on it: see docs/errata.md."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from probformer import Inference, mean_field, reference
from probformer.crf.potentials import UV, Full, Potentials
from probformer.testing import reference_sentence

N, D, H, R = 5, 6, 2, 3


def same(actual, expected, tolerance=1e-10):
    return torch.allclose(actual, expected, rtol=tolerance, atol=tolerance)


def random_model():
    unary = torch.randn(N, D, dtype=torch.float64)
    return reference_sentence(unary, Potentials(UV(D, H, R)).double())


def random_marginals(crf):
    q = {}
    for v in crf.labels + crf.heads:
        scores = torch.randn(crf.size(v), dtype=torch.float64)
        q[v] = scores.masked_fill(crf.forbidden(v), -torch.inf).softmax(-1)
    return q


def test_every_variable_has_its_entropy_in_the_joint_problem():
    """Eq. 31 with a sum over variables; with one variable's entropy the others go to a vertex."""
    gradients = [torch.randn(4, dtype=torch.float64), torch.randn(3, dtype=torch.float64)]
    weights = (0.7, 0.2)
    best = [(-g / w).softmax(-1) for g, w in zip(gradients, weights, strict=True)]

    def objective(p, weights):
        linear = sum(g @ x for g, x in zip(gradients, p, strict=True))
        return linear - sum(
            w * torch.special.entr(x).sum() for w, x in zip(weights, p, strict=True)
        )

    for _ in range(200):
        other = [torch.randn(len(x), dtype=torch.float64).softmax(-1) for x in best]
        assert objective(best, weights) <= objective(other, weights)
    vertex = F.one_hot(gradients[1].argmin(), 3).double()
    as_printed = (weights[0], 0.0)
    assert objective([best[0], vertex], as_printed) < objective(best, as_printed) - 1e-3


def test_there_is_a_block_for_every_label_and_every_head():
    """x is no n×d matrix: n blocks of d and n·h blocks of n numbers."""
    crf = random_model()
    sizes = [crf.size(v) for v in crf.labels + crf.heads]
    assert sizes == [D] * N + [N] * (N * H)
    assert sum(sizes) != N * D


@pytest.mark.parametrize("weight", [0.3, 1.0, 2.5])
def test_the_derivative_of_the_lagrangian_has_lambda_and_not_one(weight):
    """z log z has the derivative log z + 1, and λ stands before both terms."""
    c = torch.randn(5, dtype=torch.float64)
    z = torch.randn(5, dtype=torch.float64).softmax(-1).requires_grad_()
    value = c @ z + weight * (z * z.log()).sum()
    (slope,) = torch.autograd.grad(value, z)
    assert same(slope, c + weight * z.log() + weight)
    assert same(slope, c + weight * z.log() + 1) is (weight == 1)

    # −ν is what one more unit of probability would cost. Only the right ν is that.
    def cost(mass):
        best = mass * (-c / weight).softmax(-1)
        return c @ best + weight * (best * best.log()).sum()

    price = (cost(1 + 1e-6) - cost(1 - 1e-6)) / 2e-6
    normaliser = weight * (-c / weight).logsumexp(-1)
    assert price == pytest.approx(-(normaliser - weight).item(), abs=1e-6)
    assert (price == pytest.approx(-(normaliser - 1).item(), abs=1e-6)) is (weight == 1)


def test_mean_field_minimises_the_free_energy_and_not_the_energy():
    """The relaxed problem of appendix A.4 is solved by a vertex, which mean field is far from."""
    unary = torch.randn(3, 2, dtype=torch.float64)
    crf = reference_sentence(unary, Potentials(UV(2, 1, 2, gamma=1)).double())
    variables = crf.labels + crf.heads
    values = [(~crf.forbidden(v)).nonzero().flatten().tolist() for v in variables]
    vertices = [
        {
            v: F.one_hot(torch.tensor(k), crf.size(v)).double()
            for v, k in zip(variables, ks, strict=True)
        }
        for ks in itertools.product(*values)
    ]
    likeliest = min(vertices, key=lambda q: reference.energy(crf, q).item())
    lowest = reference.energy(crf, likeliest)
    assert all(reference.energy(crf, random_marginals(crf)) > lowest for _ in range(200))
    q, _ = reference.mean_field(crf, Inference(iterations=100, lambda_h=1.0))
    assert reference.energy(crf, q) > lowest + 0.5
    assert reference.free_energy(crf, q) < reference.free_energy(crf, likeliest) - 0.5


def test_the_update_is_the_softmax_of_minus_the_derivative():
    crf = random_model()
    q = {v: x.requires_grad_() for v, x in random_marginals(crf).items()}
    (slope,) = torch.autograd.grad(reference.energy(crf, q), q["Z", 0])
    before = reference.free_energy(crf, q)
    new = {sign: q | {("Z", 0): (sign * slope).softmax(-1)} for sign in (-1, 1)}
    assert same(new[-1]["Z", 0], reference.message(crf, ("Z", 0), q).softmax(-1))
    assert reference.free_energy(crf, new[-1]) < before
    assert reference.free_energy(crf, new[1]) > reference.free_energy(crf, new[-1])
    assert not same(new[1]["Z", 0], new[-1]["Z", 0], 1e-2)


def test_undamped_mean_field_may_go_round_in_circles():
    """Two words that want different labels and are updated at once: both change, and again."""
    potential = Full(2, 1, gamma=None).double()
    potential.T.data.copy_(-2 * torch.eye(2))
    unary = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]], dtype=torch.float64)
    mask = torch.ones(1, 2, dtype=torch.bool)

    def run(step):
        inference = Inference(iterations=20, lambda_h=1.0, step_z=step)
        trace = mean_field(unary, mask, potential, inference, trace=True).trace
        moved = (trace[-1].z_marginals - trace[-2].z_marginals).abs().max().item()
        return moved, [step.free_energy.item() for step in trace]

    moved, energies = run(1.0)
    assert moved > 0.5
    assert max(b - a for a, b in itertools.pairwise(energies)) > 0.1
    assert run(0.3)[0] < 1e-6


# The choice of message weights (appendix A.5)


@pytest.mark.parametrize("n", [3, 9])
def test_variance_of_the_message_to_labels(n):
    """Uniform marginals, T of independent entries: Var(G) = 2h(d+1)/d² σ², which is 2h/d σ²."""
    h, d = 8, 64
    unary, mask = torch.zeros(1, n, d, dtype=torch.float64), torch.ones(1, n, dtype=torch.bool)
    once = Inference(iterations=1, asynchronous=False)  # labels hear uniform heads
    right, printed = 2 * h * (d + 1) / d**2, 2 * (n - 1) / (h * d)

    potential = Full(d, h, gamma=None).double()
    g = mean_field(unary, mask, potential, once).z_scores[0, 0, 0]
    (coefficients,) = torch.autograd.grad(g, potential.T)  # G is linear in T
    assert coefficients.square().sum().item() == pytest.approx(right)
    assert right == pytest.approx(2 * h / d, rel=1.5 / d)

    samples = []
    with torch.no_grad():
        for _ in range(32):
            potential.T.normal_()
            samples.append(mean_field(unary, mask, potential, once).z_scores[0, 0])
    variance = torch.stack(samples).var().item()  # 2,048 numbers: a standard error of 3 %
    assert variance == pytest.approx(right, rel=0.12)
    assert abs(variance - printed) > 0.5 * variance


@pytest.mark.parametrize("n", [3, 9, 25])
def test_distances_make_that_variance_smaller(n):
    """A bucket's share w of the other words: h/d (Σ w² + Σ w′²) instead of 2h/d."""
    h, d = 4, 16
    unary, mask = torch.zeros(1, n, d, dtype=torch.float64), torch.ones(1, n, dtype=torch.bool)
    potential = Full(d, h, gamma=3).double()
    once = Inference(iterations=1, asynchronous=False)
    i, buckets = n // 2, potential.buckets
    g = mean_field(unary, mask, potential, once).z_scores[0, i, 0]
    (coefficients,) = torch.autograd.grad(g, potential.T)
    variance = coefficients.square().sum().item()
    shares = torch.zeros(2, buckets.count)
    for j in set(range(n)) - {i}:
        shares[0, buckets.of(i - j)] += 1 / (n - 1)
        shares[1, buckets.of(j - i)] += 1 / (n - 1)
    assert variance == pytest.approx(h / d * shares.square().sum().item(), rel=2 / d)
    assert variance < 2 * h * (d + 1) / d**2


@pytest.mark.parametrize("lambda_h", [1.0, 1 / 16, 1e-3])
def test_no_message_weight_makes_heads_of_uniform_labels_uneven(lambda_h):
    """Var(F/λ_H) = σ² is over draws of T, and all heads at one distance share the draw."""
    n, d = 7, 16
    unary, mask = torch.zeros(1, n, d, dtype=torch.float64), torch.ones(1, n, dtype=torch.bool)
    once = Inference(iterations=1, lambda_h=lambda_h)
    uniform = (1 - torch.eye(n, dtype=torch.float64)) / (n - 1)
    blind, bucketed = Full(d, 1, gamma=None).double(), Full(d, 1, gamma=3).double()
    assert same(mean_field(unary, mask, blind, once).head_marginals[0, 0], uniform)
    assert not same(mean_field(unary, mask, bucketed, once).head_marginals[0, 0], uniform, 1e-4)
    # What appendix A.5 computes is right: F has the variance σ²/d², at every distance.
    f = bucketed.head_scores(bucketed.prepare(unary.softmax(-1)))[0, 0, 0, 1]
    (coefficients,) = torch.autograd.grad(f, bucketed.T)
    assert coefficients.square().sum().item() == pytest.approx(1 / d**2)


def test_the_first_synchronous_messages_are_alike_but_not_the_labels():
    """G_i − G_k = Σ_c (T + Tᵀ)(Q_k − Q_i)/(n − 1), and S keeps the words apart."""
    n = 40
    potential = Full(D, H, gamma=None).double()
    unary, mask = torch.randn(1, n, D, dtype=torch.float64), torch.ones(1, n, dtype=torch.bool)
    once = Inference(iterations=1, asynchronous=False)
    scores = mean_field(unary, mask, potential, once).z_scores[0]
    g, q, s = scores - unary[0], unary[0].softmax(-1), unary[0]
    both = (potential.dense(1) + potential.dense(1).mT).sum(0)
    assert same(g[0] - g[1], both @ (q[1] - q[0]) / (n - 1))
    spread = (g - g.mean(0)).norm() / (s - s.mean(0)).norm()
    assert spread < 0.1
    kept = (scores - scores.mean(0)).norm() / (s - s.mean(0)).norm()
    assert kept.item() == pytest.approx(1, abs=0.1)
    after = scores.softmax(-1)
    assert (after - after.mean(0)).norm() > 0.5 * (q - q.mean(0)).norm()
