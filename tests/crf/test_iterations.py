"""Whole runs of inference equal the oracle's loops, in values and in every gradient."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.messages import refused
from helpers.models import EXTRAS, WORDS, build, random_batch
from probformer import Evidence, Inference, mean_field, reference
from probformer.crf.normalisers import NORMALISERS, softmax
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.testing import reference_sentence

RUNS = {
    "default": Inference(iterations=3),
    "synchronous": Inference(iterations=3, asynchronous=False),
    "weights": Inference(iterations=2, lambda_z=2.0, lambda_h=0.4),
    "steps": Inference(iterations=3, step_z=0.5, step_h=0.8),
    "steps-synchronous": Inference(iterations=3, step_z=0.5, step_h=0.8, asynchronous=False),
    "decaying-steps": Inference(iterations=4, step_z=0.9, step_h=0.8, step_decay=True),
    "damping": Inference(iterations=3, damping_z=0.5, damping_h=0.3),
    "damping-synchronous": Inference(
        iterations=3, damping_z=0.5, damping_h=0.3, asynchronous=False, step_z=0.7, step_h=0.6
    ),
    "relu": Inference(iterations=3, normaliser_z="relu", normaliser_h="relu"),
    "squares": Inference(
        iterations=3, normaliser_z="squares", normaliser_h="squares", asynchronous=False
    ),
}


def run_oracle(unary, mask, potentials, inference, evidence=None):
    """The oracle on each sentence of a batch: (marginals, scores) each."""
    runs = []
    for b, length in enumerate(mask.sum(1).tolist()):
        if length == 0:
            continue
        crf = reference_sentence(unary[b, :length], potentials)
        observed = oracle_evidence(crf, evidence, b) if evidence else None
        runs.append((crf, *reference.mean_field(crf, inference, observed)))
    return runs


def oracle_evidence(crf, evidence, b):
    observed = {}
    for variable in crf.labels + crf.heads:
        value = UNOBSERVED
        match variable:
            case ("Z", i) if evidence.labels is not None:
                value = int(evidence.labels[b, i])
            case ("ROOT",) if evidence.root is not None:
                value = int(evidence.root[b])
            case ("H", c, i):
                if evidence.heads is not None:
                    value = int(evidence.heads[b, c, i])
                    value = crf.n if value == ROOT else value
                if value == UNOBSERVED and crf.all_dep and evidence.globals is not None:
                    value = int(evidence.globals[b, c, i])
                    value = value if value == UNOBSERVED else crf.first_global + value
                if value == UNOBSERVED and "idle" in evidence.others:
                    value = int(evidence.others["idle"][b, c, i])
                    value = value if value == UNOBSERVED else crf.first_other + value
            case ("G", c, i) if evidence.globals is not None:
                value = int(evidence.globals[b, c, i])
        if crf.arc_labels is not None and variable[:2] == ("H", crf.arc_labels[0]):
            label = UNOBSERVED if evidence.arc_labels is None else evidence.arc_labels[b, i]
            value = pairs_left(crf, variable, value, label)
        if value != UNOBSERVED:
            observed[variable] = value
    return observed


def pairs_left(crf, variable, head, label):
    """The values of a head with a label that agree with what is observed."""
    count = crf.arc_labels[1]
    return [
        value
        for value in (~crf.forbidden(variable)).nonzero().flatten().tolist()
        if head in (UNOBSERVED, value // count) and label in (UNOBSERVED, value % count)
    ]


def assert_equal(post, runs, tolerance=1e-9):
    def close(actual, expected):
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)

    for b, (crf, q, scores) in enumerate(runs):
        for variable in crf.labels + crf.heads:
            match variable:
                case ("Z", i):
                    close(post.z_scores[b, i], scores[variable])
                    close(post.z_marginals[b, i], q[variable])
                case ("ROOT",):
                    close(post.root_scores[b], scores[variable])
                    close(post.root_marginals[b], q[variable])
                case ("H", c, i):
                    arcs = crf.arcs(q, c, i)
                    words, rest = arcs[: crf.n], arcs[crf.n :]
                    if crf.arc_labels is not None and c == crf.arc_labels[0]:
                        pairs = q[variable].unflatten(0, (crf.n + 1, -1))
                        close(post.arc_label_marginals[b, i, : crf.n], pairs[: crf.n])
                        close(post.arc_label_marginals[b, i, -1], pairs[crf.n])
                    close(post.head_marginals[b, c, i, : crf.n], words)
                    if crf.T_root is not None:
                        close(post.root_head_marginals[b, c, i], rest[0])
                    if crf.all_dep:
                        features = q[variable][crf.first_global : crf.first_other]
                        close(post.global_marginals[b, c, i], features)
                    if "idle_marginals" in post.others:
                        close(
                            post.others["idle_marginals"][b, c, i], q[variable][crf.first_other :]
                        )
                case ("G", c, i):
                    close(post.global_marginals[b, c, i], q[variable])


@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("run", RUNS)
def test_every_schedule_with_every_extra(run, extras):
    potentials, (unary, mask) = build("uv", extras), random_batch((4, 2, 1))
    if potentials.labelling is not None and RUNS[run].normaliser_h != "softmax":
        with refused("normaliser_h"):
            mean_field(unary, mask, potentials, RUNS[run])
        return
    post = mean_field(unary, mask, potentials, RUNS[run])
    assert_equal(post, run_oracle(unary, mask, potentials, RUNS[run]))


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("run", ["default", "damping-synchronous"])
def test_every_word_potential(words, run):
    potentials, (unary, mask) = build(words), random_batch((5, 2, 1))
    post = mean_field(unary, mask, potentials, RUNS[run])
    assert_equal(post, run_oracle(unary, mask, potentials, RUNS[run]))


@pytest.mark.parametrize("words", WORDS)
def test_gradients(words):
    check_gradients(build(words), RUNS["default"])


@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("run", ["default", "damping-synchronous"])
def test_gradients_with_extras(extras, run):
    check_gradients(build("uv", extras), RUNS[run])


def check_gradients(potentials, inference, lengths=(4, 2, 1, 0)):
    unary, mask = random_batch(lengths)
    unary[~mask] = torch.nan  # padding, and a whole sentence of it, has no say
    unary.requires_grad_()
    inputs = {"unary": unary, **dict(potentials.named_parameters())}
    post = mean_field(unary, mask, potentials, inference)
    weights = torch.randn_like(post.z_scores)
    loss = (post.z_scores * weights)[mask].sum()
    runs = run_oracle(unary, mask, potentials, inference)
    expected = sum(
        (scores["Z", i] * weights[b, i]).sum()
        for b, (crf, _, scores) in enumerate(runs)
        for i in range(crf.n)
    )
    if post.root_scores is not None:
        root_weights = torch.randn_like(post.root_scores)
        root_weights[3] = 0  # the oracle knows no sentence without words
        loss = loss + (post.root_scores * root_weights).sum()
        for b, (_, _, scores) in enumerate(runs):
            expected = expected + (scores[("ROOT",)] * root_weights[b]).sum()
    ours = torch.autograd.grad(loss, [*inputs.values()])
    theirs = torch.autograd.grad(expected, [*inputs.values()])
    assert not ours[0][~mask].any()
    for name, a, b in zip(inputs, ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}")


@settings(max_examples=25, deadline=None)
@given(
    words=st.sampled_from([*WORDS]),
    extras=st.sampled_from([*EXTRAS]),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=2),
    inference=st.builds(
        Inference,
        iterations=st.integers(1, 3),
        asynchronous=st.booleans(),
        lambda_z=st.floats(0.3, 3),
        lambda_h=st.floats(0.2, 3),
        step_z=st.floats(0.1, 1),
        step_h=st.floats(0.1, 1),
        step_decay=st.booleans(),
        damping_z=st.floats(0, 0.9),
        damping_h=st.floats(0, 0.9),
        tolerance=st.sampled_from([None, 1e-2]),
        normaliser_z=st.sampled_from([*NORMALISERS]),
        normaliser_h=st.sampled_from([*NORMALISERS]),
    ),
    seed=st.integers(0, 99),
)
def test_anything_combines_with_anything(words, extras, lengths, inference, seed):
    torch.manual_seed(seed)
    potentials, (unary, mask) = build(words, extras), random_batch(tuple(lengths))
    if potentials.labelling is not None:
        inference = replace(inference, normaliser_h="softmax")
    post = mean_field(unary, mask, potentials, inference)
    assert_equal(post, run_oracle(unary, mask, potentials, inference))


@pytest.mark.parametrize("run", ["default", "steps-synchronous", "damping"])
@pytest.mark.parametrize("extras", EXTRAS)
def test_evidence(run, extras):
    potentials, (unary, mask) = build("uv", extras), random_batch((4, 2, 1))
    h, n = potentials.words.channels, mask.shape[1]
    labels = torch.full((3, n), UNOBSERVED)
    labels[0, 1], labels[1, 0] = 3, 0
    heads = torch.full((3, h, n), UNOBSERVED)
    heads[0, 0, 2], heads[0, 1, 0], heads[1, 2, 1] = 1, 3, 0
    root = globals_ = None
    if potentials.root is not None:
        heads[0, 2, 3] = heads[2, 0, 0] = ROOT
        root = torch.tensor([2, UNOBSERVED, 6])
    if potentials.globals is not None:
        globals_ = torch.full((3, potentials.globals.channels, n), UNOBSERVED)
        globals_[0, 0, 1], globals_[2, 0, 0] = 3, 1
        if potentials.globals.mode == "all-dep":
            globals_[2, 0, 0] = UNOBSERVED  # there, a head is observed already
    others = {}
    if "idle" in extras:
        others["idle"] = torch.full((3, h, n), UNOBSERVED)
        others["idle"][0, 2, 3], others["idle"][1, 0, 0] = 1, 0
    evidence = Evidence(labels=labels, heads=heads, root=root, globals=globals_, others=others)
    if potentials.labelling is not None:
        arc_labels = torch.full((3, n), UNOBSERVED)
        arc_labels[0, 0], arc_labels[0, 3], arc_labels[2, 0] = 1, 0, 3
        evidence = replace(evidence, arc_labels=arc_labels)
    post = mean_field(unary, mask, potentials, RUNS[run], evidence=evidence)
    assert_equal(post, run_oracle(unary, mask, potentials, RUNS[run], evidence))
    assert post.z_marginals[0, 1].tolist() == [0, 0, 0, 1, 0]
    assert post.head_marginals[0, 0, 2].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("asynchronous", [True, False])
def test_stops_sentence_by_sentence_when_marginals_rest(asynchronous):
    inference = Inference(
        iterations=60, tolerance=1e-3, step_z=0.5, step_h=0.7, asynchronous=asynchronous
    )
    potentials, (unary, mask) = build("uv", "root"), random_batch((4, 2, 1))
    post = mean_field(unary, mask, potentials, inference, trace=True)
    assert_equal(post, run_oracle(unary, mask, potentials, inference))
    assert 1 < len(post.trace) < 60
    alone = mean_field(unary[1:2], mask[1:2], potentials, inference)
    torch.testing.assert_close(alone.z_scores[0], post.z_scores[1])


def test_trace_holds_every_iteration():
    potentials, (unary, mask) = build("uv", "root-all-dep"), random_batch()
    post = mean_field(unary, mask, potentials, Inference(iterations=4), trace=True)
    assert len(post.trace) == 4
    for t, step in enumerate(post.trace):
        shorter = mean_field(unary, mask, potentials, Inference(iterations=t + 1))
        assert torch.equal(step.z_marginals, shorter.z_marginals)
        assert torch.equal(step.head_marginals, shorter.head_marginals)
        assert step.free_energy.shape == (3,)
    assert mean_field(unary, mask, potentials).trace is None


def test_free_energy_of_a_trace_is_the_oracles():
    inference = Inference(iterations=2, lambda_z=1.3, lambda_h=0.6)
    potentials, (unary, mask) = build("uv", "root-dep-split"), random_batch()
    post = mean_field(unary, mask, potentials, inference, trace=True)
    for b, (crf, q, _) in enumerate(run_oracle(unary, mask, potentials, inference)):
        expected = reference.free_energy(crf, q, 1.3, 0.6)
        torch.testing.assert_close(post.trace[-1].free_energy[b], expected)


def test_a_function_of_ones_own_may_normalise():
    def softer(scores, forbidden):
        return softmax(scores / 2, forbidden)

    potentials, (unary, mask) = build("uv", "root"), random_batch()
    inference = Inference(iterations=2, normaliser_z=softer, normaliser_h=softer)
    post = mean_field(unary, mask, potentials, inference, trace=True)
    assert_equal(post, run_oracle(unary, mask, potentials, inference))
    assert post.trace[0].free_energy is None


def test_free_energy_is_undefined_for_other_normalisers():
    potentials, (unary, mask) = build(), random_batch()
    for name in ("normaliser_z", "normaliser_h"):
        inference = Inference(iterations=2, **{name: "squares"})
        post = mean_field(unary, mask, potentials, inference, trace=True)
        assert [step.free_energy for step in post.trace] == [None, None]
