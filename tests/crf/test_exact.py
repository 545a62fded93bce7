"""Exact enumeration, and what mean field has to do with it."""

import itertools
import math

import pytest
import torch

from helpers.models import EXTRAS, build
from probformer import Inference, mean_field, reference
from probformer.crf.potentials import UV, Full, Global, Potentials, Root
from probformer.testing import reference_sentence

ALL_ONE = Inference(iterations=8, lambda_z=1.0, lambda_h=1.0)

TINY_EXTRAS = {
    "plain": dict,
    "root": lambda: {"root": Root(2, 1, 3)},
    "all-dep": lambda: {"globals": Global(2, 1, 2, "all-dep")},
    "dep-split": lambda: {"globals": Global(2, 1, 2, "dep-split")},
    "single-split": lambda: {"globals": Global(2, 1, 2, "single-split")},
}


def tiny(n=3, d=2, h=1, **extras) -> tuple[torch.Tensor, Potentials]:
    words = UV(d, h, 2, gamma=1)
    return torch.randn(n, d, dtype=torch.float64), Potentials(words, **extras).double()


def test_enumeration_agrees_with_summing_the_heads_out():
    unary, potentials = tiny(n=3, d=3, h=2)
    crf = reference_sentence(unary, potentials)
    exact = reference.enumerate_exactly(crf)
    # Given the labels, the heads are independent: each contributes Σ_j exp(T).
    total, first_label = 0.0, torch.zeros(3, dtype=torch.float64)
    for labels in itertools.product(range(3), repeat=3):
        weight = math.exp(sum(unary[i, a].item() for i, a in enumerate(labels)))
        for c, i in itertools.product(range(2), range(3)):
            weight *= sum(
                math.exp(potentials.words.dense(i - j)[c, labels[i], labels[j]].item())
                for j in range(3)
                if j != i
            )
        total += weight
        first_label[labels[0]] += weight
    assert exact.log_partition == pytest.approx(math.log(total), abs=1e-12)
    torch.testing.assert_close(exact.marginals["Z", 0], first_label / total)
    for q in exact.marginals.values():
        assert q.sum().item() == pytest.approx(1)


def test_enumeration_by_hand():
    """Two words, one label: nothing is left to choose, and the energy is the only weight."""
    T = torch.tensor([[[[0.5]]], [[[0.25]]]], dtype=torch.float64)
    words = Full(1, 1, gamma=0).double()
    words.T.data.copy_(T)
    unary = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    exact = reference.enumerate_exactly(reference_sentence(unary, Potentials(words)))
    assert exact.log_partition == pytest.approx(1 + 2 + 0.5 + 0.25)
    assert exact.marginals["H", 0, 0].tolist() == [0, 1]


@pytest.mark.parametrize("extras", TINY_EXTRAS)
def test_a_factorised_model_is_solved_exactly(extras):
    """Scores that depend on the distance alone leave labels and heads independent."""
    words = Full(2, 1, gamma=1)
    potentials = Potentials(words, **TINY_EXTRAS[extras]()).double()
    for parameter in potentials.parameters():  # constant in every label, random in the rest
        parameter.data.copy_(parameter.data[..., :1].expand_as(parameter))
    words.T.data.copy_(words.T.data[..., :1, :].expand_as(words.T))
    if potentials.root is not None:
        potentials.root.T.data.copy_(potentials.root.T.data[:, :1].expand_as(potentials.root.T))
    unary = torch.randn(3, 2, dtype=torch.float64)
    crf = reference_sentence(unary, potentials)
    exact = reference.enumerate_exactly(crf)
    q, _ = reference.mean_field(crf, ALL_ONE)
    for variable, expected in exact.marginals.items():
        torch.testing.assert_close(q[variable], expected, rtol=1e-10, atol=1e-10)
    assert exact.divergence(crf, q) == pytest.approx(0, abs=1e-10)

    mask = torch.ones(1, 3, dtype=torch.bool)
    post = mean_field(unary[None], mask, potentials, ALL_ONE, trace=True)
    assert post.trace[-1].free_energy.item() == pytest.approx(-exact.log_partition, abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("extras", TINY_EXTRAS)
def test_the_free_energy_bounds_the_partition_function(extras, seed):
    torch.manual_seed(seed)
    unary, potentials = tiny(**TINY_EXTRAS[extras]())
    crf = reference_sentence(unary, potentials)
    exact = reference.enumerate_exactly(crf)
    mask = torch.ones(1, 3, dtype=torch.bool)
    post = mean_field(unary[None], mask, potentials, ALL_ONE, trace=True)
    for step in post.trace:
        assert step.free_energy.item() >= -exact.log_partition - 1e-12
    q, _ = reference.mean_field(crf, ALL_ONE)
    assert 0 <= exact.divergence(crf, q) < 2


@pytest.mark.parametrize("extras", EXTRAS)
def test_an_update_of_the_heads_never_raises_the_free_energy(extras):
    potentials = build("uv", extras)
    unary = torch.randn(4, 5, dtype=torch.float64)
    crf = reference_sentence(unary, potentials)
    lambda_z, lambda_h = 0.8, 0.3
    q = random_marginals(crf)
    before = reference.free_energy(crf, q, lambda_z, lambda_h)
    new = q | {v: updated(crf, v, q, lambda_h) for v in crf.heads}
    assert reference.free_energy(crf, new, lambda_z, lambda_h) <= before + 1e-12


@pytest.mark.parametrize("extras", EXTRAS)
def test_one_label_at_a_time_never_raises_the_free_energy(extras):
    potentials = build("uv", extras)
    crf = reference_sentence(torch.randn(4, 5, dtype=torch.float64), potentials)
    lambda_z, lambda_h = 0.8, 0.3
    q = random_marginals(crf)
    energy = reference.free_energy(crf, q, lambda_z, lambda_h)
    for variable in crf.labels * 2:
        q = q | {variable: updated(crf, variable, q, lambda_z)}
        lower = reference.free_energy(crf, q, lambda_z, lambda_h)
        assert lower <= energy + 1e-12
        energy = lower


def test_heads_of_the_fast_path_minimise_the_free_energy_given_the_labels():
    """The H that an iteration ends with is the best one for the Z it started from."""
    potentials, inference = build("shared-uv", "root"), Inference(iterations=1, lambda_h=0.3)
    unary = torch.randn(1, 4, 5, dtype=torch.float64)
    mask = torch.ones(1, 4, dtype=torch.bool)
    post = mean_field(unary, mask, potentials, inference)
    crf = reference_sentence(unary[0], potentials)
    best = {("Z", i): unary[0, i].softmax(-1) for i in range(4)} | {
        ("ROOT",): torch.full((7,), 1 / 7, dtype=torch.float64)
    }
    for c, i in itertools.product(range(3), range(4)):
        columns = [post.head_marginals[0, c, i], post.root_head_marginals[0, c, i].view(1)]
        best["H", c, i] = torch.cat(columns)
    lowest = reference.free_energy(crf, best, 1.0, 0.3)
    for _ in range(20):
        other = random_marginals(crf)
        mixed = best | {v: 0.9 * best[v] + 0.1 * other[v] for v in crf.heads}
        assert reference.free_energy(crf, mixed, 1.0, 0.3) > lowest


def random_marginals(crf):
    q = {}
    for v in crf.labels + crf.heads:
        scores = torch.randn(crf.size(v), dtype=torch.float64)
        q[v] = scores.masked_fill(crf.forbidden(v), -torch.inf).softmax(-1)
    return q


def updated(crf, variable, q, weight):
    scores = reference.message(crf, variable, q) / weight
    return scores.masked_fill(crf.forbidden(variable), -torch.inf).softmax(-1)
