"""Fused kernels give what the equations give: on a GPU, or else in Triton's interpreter."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from helpers.kernel_runs import (
    DEVICE,
    assert_close,
    assert_packed_sentences_equal_padded_ones,
    gradients,
    parts,
    run,
)
from helpers.models import EXTRAS, WORDS, D, H, build, random_batch
from helpers.runs import PT, settings
from outside.idle import Idle
from probformer import Evidence, Inference, mean_field
from probformer.crf import fused, reference
from probformer.crf.potentials import UV, Factor, Potentials, Variable, as_potentials
from probformer.packing import Packing
from probformer.testing import reference_sentence
from probformer.training.progress import Reporter
from probformer.training.start import prepare

pytest.importorskip("triton", reason="needs Triton")
from probformer.kernels.crf import short, tiled
from probformer.kernels.crf.label_update import updated_labels
from probformer.kernels.crf.messages import kernels_for, word_messages
from probformer.kernels.crf.problem import Contexts, Problem, Vectors

pytestmark = pytest.mark.kernels

TWICE = Inference(iterations=2, lambda_h=0.7)
MIXED = Inference(iterations=3, lambda_h=0.7, step_h=0.6)


@pytest.fixture(autouse=True)
def _kernels_everywhere(monkeypatch):
    monkeypatch.setattr(fused, "kernels_run_on", lambda device: True)


def oracle(potentials, unary, mask, inference):
    """Outputs and gradients from the loops, sentence by sentence."""
    unary = unary.detach().requires_grad_()
    scores, root_scores = torch.zeros_like(unary), []
    for b, length in enumerate(mask.sum(1).tolist()):
        crf = reference_sentence(unary[b, :length], potentials)
        _, found = reference.mean_field(crf, inference)
        rows = [found["Z", i] for i in range(length)]
        scores = scores.index_put((torch.tensor(b), torch.arange(length)), torch.stack(rows))
        if potentials.root is not None:
            root_scores.append(found["ROOT",])
    outputs = [scores, *([torch.stack(root_scores)] if root_scores else [])]
    return outputs, gradients(outputs, [unary, *potentials.parameters()])


QUICK = ("full", "uv", "uvw", "shared-uv", "rotary")


@pytest.mark.parametrize(
    "words", [pytest.param(w, marks=[] if w in QUICK else pytest.mark.long) for w in WORDS]
)
def test_words_equal_the_oracle(words):
    potentials, (unary, mask) = build(words), random_batch((6, 3, 1))
    expected, expected_gradients = oracle(potentials, unary, mask, TWICE)
    actual, actual_gradients = run(potentials, unary, mask, TWICE)
    assert_close(actual, expected)
    assert_close(actual_gradients, expected_gradients)


@pytest.mark.long
@pytest.mark.parametrize("words", ["uv", "rotary"])
@pytest.mark.parametrize("extras", [name for name in EXTRAS if name != "plain"])
def test_extras_equal_the_oracle(words, extras):
    potentials, (unary, mask) = build(words, extras), random_batch((4, 1))
    expected, expected_gradients = oracle(potentials, unary, mask, TWICE)
    actual, actual_gradients = run(potentials, unary, mask, TWICE)
    assert_close(actual, expected)
    assert_close(actual_gradients, expected_gradients)


@pytest.mark.parametrize("inference", [TWICE, MIXED])
@pytest.mark.parametrize(
    "lengths", [(4, 2, 1), pytest.param((short.LONGEST + 2, 1), marks=pytest.mark.long)]
)
def test_columns_that_a_factor_forbids(lengths, inference):
    """Also for a lone word, all of whose heads are forbidden."""
    potentials = Potentials(UV(D, H, 4), idle=Idle(D, H, ways=1)).double()
    unary, mask = random_batch(lengths)
    unary = unary.requires_grad_()
    expected = parts(mean_field(unary, mask, potentials, inference, trace=True))
    expected_gradients = gradients(expected, [unary, *potentials.parameters()])
    actual, actual_gradients = run(potentials, unary, mask, inference)
    assert_close(actual, expected)
    assert_close(actual_gradients, expected_gradients)


def test_head_variables_without_channels():
    potentials, (unary, mask) = Potentials(UV(D, H, 4), pick=Pick(D)).double(), random_batch((4, 2))
    unary = unary.requires_grad_()
    expected = parts(mean_field(unary, mask, potentials, TWICE, trace=True))
    expected_gradients = gradients(expected, [unary, *potentials.parameters()])
    actual, actual_gradients = run(potentials, unary, mask, TWICE)
    assert_close(actual, expected)
    assert_close(actual_gradients, expected_gradients)


class Pick(Factor):
    """A choice of each word, in all channels together: W[k, a] scores choice k with label a."""

    head_variables = (Variable("pick", "P", 3, "pick_marginals", per_word=True),)

    def __init__(self, labels):
        super().__init__()
        self.W = torch.nn.Parameter(torch.randn(3, labels))

    def prepare(self, q, *own):
        return q

    def head_scores(self, x):
        return x @ self.W.mT

    def label_messages(self, p, x):
        return (p @ self.W,)


@pytest.mark.long
@pytest.mark.parametrize("words", QUICK)
@pytest.mark.parametrize("lengths", [(1,), (2, 1), (16,), (17, 15), (33, 20)])
def test_lengths(words, lengths):
    """Around the sizes of blocks, against the plain path in float64."""
    potentials, (unary, mask) = build(words), random_batch(lengths)
    unary = unary.requires_grad_()
    expected = parts(mean_field(unary, mask, potentials, TWICE, trace=True))
    expected_gradients = gradients(expected, [unary, *potentials.parameters()])
    actual, actual_gradients = run(potentials, unary, mask, TWICE)
    assert_close(actual, expected)
    assert_close(actual_gradients, expected_gradients)


def test_wide_vectors_come_in_several_tiles():
    potentials, (unary, mask) = (
        as_potentials(UV(6, 2, rank=150, gamma=1)).double(),
        random_batch((5, 3), 6),
    )
    unary = unary.requires_grad_()
    expected = parts(mean_field(unary, mask, potentials, TWICE, trace=True))
    expected_gradients = gradients(expected, [unary, *potentials.parameters()])
    actual, actual_gradients = run(potentials, unary, mask, TWICE)
    assert_close(actual, expected)
    assert_close(actual_gradients, expected_gradients)


@pytest.mark.parametrize("extras", ["root-all-dep", "all-dep-features"])
def test_one_sentence_with_other_heads(extras):
    """Then some tensors are views with strides of their own."""
    potentials, (unary, mask) = build("uv", extras), random_batch((5,))
    expected, expected_gradients = oracle(potentials, unary, mask, TWICE)
    actual, actual_gradients = run(potentials, unary, mask, TWICE)
    assert_close(actual, expected)
    assert_close(actual_gradients, expected_gradients)


def test_second_derivatives_are_refused():
    potentials, (unary, mask) = build("uv", dtype=torch.float32), random_batch((3,))
    unary = unary.float().to(DEVICE).requires_grad_()
    scores = mean_field(unary, mask.to(DEVICE), potentials.to(DEVICE), TWICE, attention=False)
    (gradient,) = torch.autograd.grad(scores.z_scores.square().sum(), unary, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


def test_one_long_sentence_does_not_slow_down_the_others():
    starts, lengths = torch.tensor([[0, 70, 75], [70, 5, 64]], dtype=torch.int32)
    packing = Packing(starts, lengths, 128).covering(139)
    problem = replace(problem_with(torch.ones(1, 9, dtype=torch.bool), 3, 2, 0), packing=packing)
    (first, given), (second, rest) = kernels_for(problem, torch.bfloat16)
    assert (first, second) == (short, tiled)
    assert given is problem
    assert rest.packing.lengths[:3].tolist() == [70, 0, 0]
    alike = replace(problem, packing=Packing.of_padded(torch.ones(2, 70, dtype=torch.bool)))
    assert [kernels for kernels, _ in kernels_for(alike, torch.bfloat16)] == [tiled]


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "extras"),
    [
        ("uv", "single-split"),
        ("uv", "all-dep"),
        ("uv", "all-dep-idle"),
        ("shared-uv", "plain"),
        ("rotary", "plain"),
    ],
)
def test_packed_sentences(words, extras):
    assert_packed_sentences_equal_padded_ones(words, extras, TWICE, longest=48, tail=60)


def test_holes_in_the_mask():
    potentials, (unary, mask) = build("uv", "root"), random_batch((7, 7))
    mask[0, 2] = mask[1, 0] = mask[1, 5] = False
    expected = parts(mean_field(unary, mask, potentials, TWICE, trace=True))
    assert_close(run(potentials, unary, mask, TWICE)[0], expected)


@pytest.mark.parametrize("inference", [TWICE, MIXED])
def test_heads_can_still_be_seen(inference):
    potentials, (unary, mask) = build("uv", "root-all-dep"), random_batch((6, 3, 1))
    expected = mean_field(unary, mask, potentials, inference, trace=True)
    actual = mean_field(
        unary.float().to(DEVICE), mask.to(DEVICE), potentials.to(DEVICE, torch.float32), inference
    )
    names = ("z_scores", "head_marginals", "root_head_marginals", "global_marginals")
    assert_close([getattr(actual, x) for x in names], [getattr(expected, x) for x in names])


@pytest.mark.gpu  # Triton's interpreter cannot multiply bfloat16
@pytest.mark.parametrize("lengths", [(9, 5, 1), (50, 33, 1), (short.LONGEST + 26, 40, 1)])
@pytest.mark.parametrize("extras", ["plain", "root"])
@pytest.mark.parametrize("words", QUICK)
@pytest.mark.parametrize("inference", [TWICE, MIXED])
def test_half_precision_is_no_worse_than_the_plain_path(inference, words, extras, lengths):
    """Over several models: what a single one rounds away is chance."""
    model = inference, words, extras, lengths
    distances = [distances_in_half_precision(*model, seed) for seed in range(8)]
    with_kernels, plain = map(sum, zip(*distances, strict=True))
    assert with_kernels <= 1.2 * plain


def distances_in_half_precision(inference, words, extras, lengths, seed):
    """Of a random model's outputs and gradients from the truth: by kernels, by the plain path."""
    torch.manual_seed(seed)
    potentials, (unary, mask) = build(words, extras), random_batch(lengths)
    unary = unary.requires_grad_()
    truth = parts(mean_field(unary, mask, potentials, inference, trace=True))
    truth += gradients(truth, [unary, *potentials.parameters()])
    found = []
    for kernels in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fused, "kernels_run_on", lambda device, kernels=kernels: kernels)
            patch.setattr("probformer.crf.inference._sent", sent_in_half_precision)
            outputs, by = run(potentials, unary, mask, inference, autocast=True)
        pairs = zip([*outputs, *by], truth, strict=True)
        found.append(sum(((x.double().cpu() - y).norm() / y.norm()).item() for x, y in pairs))
    return found


def sent_in_half_precision(beliefs):
    """As matrix units take them; the plain path would not round those of near pairs."""
    return [belief.sent.bfloat16().to(belief.sent.dtype) for belief in beliefs]


RATE = 0.3


def problem_with(mask, gamma, channels, seed=3, **given):
    return Problem(
        packing=Packing.of_padded(mask.to(DEVICE)),
        mask=mask.to(DEVICE).flatten(),
        channels=channels,
        gamma=gamma,
        weight=0.5,
        angles=None,
        rate=RATE,
        seed=torch.tensor([seed], device=DEVICE),
        **given,
    )


def dropout_drawn(mask, channels, seed=3):
    """The factor (B, h, n, n) of each pair: with U = 0 all heads are as likely, and with Q = V = 1
    the contexts of dependents are their probabilities."""
    batch, n = mask.shape
    q = torch.eye(n).repeat(batch, 1).to(DEVICE)
    u = torch.zeros(1, channels, n, n, device=DEVICE)
    v = torch.eye(n, device=DEVICE).expand(1, channels, n, n).contiguous()
    a, b = (torch.einsum("xd,khrd->xkhr", q, weight) for weight in (u, v))
    vectors = Vectors(a, b, None, None)
    problem = problem_with(mask, None, channels, seed)
    found = Contexts.empty(problem, vectors)
    short.forward(problem, vectors, found)
    contexts = found.to_dependents.view(batch, n, channels, n).transpose(1, 2)
    return contexts.cpu() * (mask.sum(1) - 1).clamp(min=1)[:, None, None, None]


def test_dropout_keeps_as_many_as_it_should():
    mask = torch.ones(8, 30, dtype=torch.bool)
    factors = dropout_drawn(mask, channels=4)
    pairs = factors[..., ~torch.eye(30, dtype=torch.bool)]
    kept = pairs > 0
    torch.testing.assert_close(pairs[kept], torch.full_like(pairs[kept], 1 / (1 - RATE)))
    assert abs(kept.float().mean() - (1 - RATE)) < 0.01
    flat = kept.flatten(0, 1).float()  # sentences and channels do not know of each other
    assert abs(torch.corrcoef(flat).fill_diagonal_(0)).max() < 0.15
    assert torch.equal(factors, dropout_drawn(mask, channels=4))
    assert not torch.equal(factors, dropout_drawn(mask, channels=4, seed=4))


@pytest.mark.parametrize("step", [1.0, 0.6])
def test_dropout_is_the_same_forward_and_backward(step):
    """It comes after the step, and what the next iteration gets is without it."""
    mask = torch.arange(9) < torch.tensor([9, 4])[:, None]
    factor = dropout_drawn(mask, channels=2).double()
    potential = UV(5, 2, rank=4, gamma=1).double()
    q = torch.rand(2, 9, 5, dtype=torch.float64, requires_grad=True)
    pairs = potential.prepare(q)
    allowed = mask[:, None, :, None] & mask[:, None, None] & ~torch.eye(9, dtype=torch.bool)
    scores = (potential.head_scores(pairs) / 0.5).masked_fill(~allowed, -1e30)
    old = torch.rand(2, 2, 9, 9, dtype=torch.float64, requires_grad=True)
    p = (step * scores.softmax(-1) + (1 - step) * old) * allowed
    (expected,) = potential.label_messages(p * factor, pairs)
    expected = [expected * mask.unsqueeze(-1), p]
    given = q, potential.U, potential.V, old
    *expected_gradients, by_old = gradients(expected, given)

    inputs = [x.detach().float().to(DEVICE).requires_grad_() for x in given]
    there, allowed = mask.unsqueeze(-1).to(DEVICE), allowed.to(DEVICE)
    rows, u, v, old = inputs
    message, _, beliefs = word_messages(
        (rows * there).flatten(0, 1), u, v, None, None,
        torch.where(allowed, old, 0).transpose(1, 2).flatten(0, 1) if step < 1 else None,
        problem_with(mask, 1, 2, step=step, remembers=True),
    )  # fmt: skip
    beliefs = beliefs.view(2, 9, 2, 9).transpose(1, 2)
    actual = [message.view(2, 9, 5) * there, torch.where(allowed, beliefs, 0)]
    assert_close(actual, expected)
    actual_gradients = gradients(actual, inputs if step < 1 else inputs[:3])
    assert_close(actual_gradients, [*expected_gradients, *([by_old] if step < 1 else [])])


def test_dropout_follows_the_generator():
    potentials, (unary, mask) = build("uv", "root", torch.float32), random_batch((6, 3))
    unary = unary.float()

    def scores(seed):
        generator = torch.Generator(DEVICE).manual_seed(seed)
        found = mean_field(
            unary.to(DEVICE), mask.to(DEVICE), potentials.to(DEVICE),
            TWICE, dropout=0.5, generator=generator, attention=False,
        )  # fmt: skip
        return found.z_scores

    assert torch.equal(scores(1), scores(1))
    assert not torch.equal(scores(1), scores(2))


@pytest.mark.parametrize("rate", [0.0, RATE])
def test_labels_are_updated_in_one_pass(rate):
    rows, d, weight = 6, 37, 0.8
    mask = torch.arange(rows) != 4
    seed = torch.tensor([11], device=DEVICE)

    def update(unary, message):
        given = (x.float().to(DEVICE) for x in (unary, message))
        return updated_labels(*given, mask.to(DEVICE), weight, rate, seed).double().cpu()

    # With scores of 1, dropout leaves 0 or 1/(1 − rate), which a softmax tells apart.
    drawn = update(torch.full((rows, d), weight), torch.zeros(rows, d))
    kept = drawn >= drawn.mean(1, keepdim=True)
    assert rate == 0 or abs(kept[mask].double().mean() - (1 - rate)) < 0.1
    factor = kept / (1 - rate)

    inputs = [torch.randn(rows, d, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    expected = ((inputs[0] + inputs[1]) / weight * factor).softmax(-1) * mask[:, None]
    actual = update(*inputs)
    assert_close([actual], [expected])
    assert_close(gradients([actual], inputs), gradients([expected], inputs))


@pytest.mark.parametrize(
    ("inference", "evidence", "trace", "attention"),
    [
        (Inference(asynchronous=False), {}, False, False),
        (Inference(normaliser_h="relu"), {}, False, False),
        (Inference(damping_h=0.5), {}, False, False),
        (Inference(tolerance=0.1), {}, False, False),
        (Inference(step_h=0.5), {}, False, True),
        (Inference(step_decay=True), {}, False, True),
        (Inference(), {"heads": torch.full((1, 3, 4), -1)}, False, False),
        (Inference(), {"globals": torch.full((1, 1, 4), -1)}, False, False),
        (Inference(), {}, True, False),
    ],
)
def test_what_the_plain_path_must_do(inference, evidence, trace, attention):
    unary = torch.randn(1, 4, 5)
    potentials = build("uv", "single-split", torch.float32)
    arguments = Evidence(**evidence), trace, attention
    assert not fused.can_fuse(unary, potentials, inference, *arguments)
    assert not fused.can_fuse(unary.double(), potentials, Inference(), Evidence(), False, False)


@pytest.mark.parametrize(
    ("inference", "attention"),
    [
        (Inference(step_z=0.5), True),
        (Inference(step_h=0.5), False),
        (Inference(step_decay=True), False),
    ],
)
def test_what_kernels_can_do(inference, attention):
    unary, potentials = torch.randn(1, 4, 5), build("uv", "single-split", torch.float32)
    assert fused.can_fuse(unary, potentials, inference, Evidence(), False, attention)


@pytest.mark.long
def test_training_goes_the_same_way_with_and_without_kernels(tmp_path):
    """Without dropout, which draws otherwise; on a GPU sentences are packed, too."""
    updates, size = (12, 16) if DEVICE == "cuda" else (4, 3)
    curves, weights = [], []
    for kernels in (True, False):
        given = settings("tagging", {**PT, "dropout": 0.0}, size=200)
        accelerator = Accelerator(cpu=DEVICE == "cpu")
        run = prepare(given, tmp_path / str(kernels), Path("."), Reporter(), accelerator)
        curve = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fused, "kernels_run_on", lambda device, kernels=kernels: kernels)
            for step in range(updates):
                run._update(np.arange(size) + size * step)
                run._read_back()
                curve.append(run.progress.loss)
        curves.append(np.diff(curve))
        weights.append([p.detach().cpu() for p in run.model.parameters()])
    np.testing.assert_allclose(*curves, rtol=1e-3)
    assert_close(*weights, tolerance=1e-2)
