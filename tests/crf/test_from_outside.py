"""Factors, head structures and normalisers from outside, each in a file of tests/outside."""

import pytest
import torch

from crf.test_iterations import assert_equal, run_oracle
from helpers.models import build, random_batch
from outside.idle import Idle
from outside.one_label import OneLabel
from outside.one_root import OneRoot
from outside.sharper import sharper
from outside.topic import Topic
from probformer import Evidence, Inference, mean_field, reference
from probformer.crf.energy import energy, free_energy
from probformer.crf.fused import kernels_support
from probformer.crf.structures import Independent, Structure
from probformer.potentials import UV, Potentials, Root
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.testing import assert_messages_are_gradients, reference_sentence

D, H, TOPICS = 5, 3, 4
SCHEDULES = {
    "default": Inference(iterations=3),
    "synchronous": Inference(iterations=3, asynchronous=False),
    "steps": Inference(iterations=3, step_z=0.5, step_h=0.8, damping_z=0.3, lambda_h=0.4),
}


def with_topic(extras="root"):
    given = build("uv", extras)
    return Potentials(given.words, given.root, given.globals, topic=Topic(D, TOPICS)).double()


@pytest.mark.parametrize("extras", ["plain", "root", "all-dep", "root-dep-split"])
def test_messages_of_a_factor_are_gradients(extras):
    assert_messages_are_gradients(with_topic(extras))


@pytest.mark.parametrize("extras", ["plain", "root", "all-dep", "root-all-dep"])
def test_messages_of_a_factor_with_columns_are_gradients(extras):
    given = build("uv", extras)
    factors = {"idle": Idle(D, H), "topic": Topic(D, TOPICS), "second": Idle(D, H, ways=1)}
    potentials = Potentials(given.words, given.root, given.globals, **factors).double()
    assert_messages_are_gradients(potentials)


def test_a_wrong_message_to_a_column_does_not_pass():
    class Twice(Idle):
        def head_scores(self, x):
            return 2 * super().head_scores(x)

    with pytest.raises(AssertionError, match="to H"):
        assert_messages_are_gradients(Potentials(UV(D, H, 4), idle=Twice(D, H)).double())


def test_energies_of_a_factor_with_columns_are_the_oracles():
    potentials, (unary, mask) = build("uv", "all-dep-idle"), random_batch()
    inference = Inference(iterations=2, lambda_h=0.6)
    post = mean_field(unary, mask, potentials, inference, trace=True)
    total = energy(unary, mask, potentials, post)
    for b, (crf, q, _) in enumerate(run_oracle(unary, mask, potentials, inference)):
        torch.testing.assert_close(total[b], reference.energy(crf, q))
        expected = reference.free_energy(crf, q, 1.0, 0.6)
        torch.testing.assert_close(post.trace[-1].free_energy[b], expected)


def test_enumeration_knows_the_columns_of_a_factor():
    """A lone word is idle in some way, of which it cannot be in the last."""
    potentials = Potentials(UV(2, 1, 2), idle=Idle(2, 1, ways=3)).double()
    unary = torch.randn(1, 2, dtype=torch.float64)
    exact = reference.enumerate_exactly(reference_sentence(unary, potentials))
    scores = unary[0] + potentials.idle.W[0, :2]
    assert exact.log_partition == pytest.approx(scores.flatten().logsumexp(0).item())
    assert exact.marginals["H", 0, 0][[0, 3]].tolist() == [0, 0]


def test_a_wrong_message_does_not_pass():
    class OneWay(Topic):
        def label_messages(self, p, x):
            to_words, to_topic = super().label_messages(p, x)
            return to_words, 0 * to_topic

    with pytest.raises(AssertionError, match="to Y"):
        assert_messages_are_gradients(Potentials(UV(D, H, 4), topic=OneWay(D, TOPICS)).double())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_inference_with_a_factor_is_the_oracles(schedule):
    potentials, (unary, mask) = with_topic("root-single-split"), random_batch((4, 2, 1))
    inference = SCHEDULES[schedule]
    inputs = [unary.requires_grad_(), *potentials.parameters()]
    post = mean_field(unary, mask, potentials, inference)
    weights = torch.randn(TOPICS, dtype=torch.float64)
    ours, theirs = 0.0, 0.0
    for b, (crf, q, scores) in enumerate(run_oracle(unary, mask, potentials, inference)):
        torch.testing.assert_close(post.others["topic_marginals"][b], q[("Y",)])
        torch.testing.assert_close(post.others["topic_scores"][b], scores[("Y",)])
        for i in range(crf.n):
            torch.testing.assert_close(post.z_marginals[b, i], q["Z", i])
        ours = ours + post.others["topic_scores"][b] @ weights
        theirs = theirs + scores[("Y",)] @ weights
    for a, b in zip(*(torch.autograd.grad(x, inputs) for x in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_energies_of_a_factor_are_the_oracles():
    inference = Inference(iterations=2, lambda_z=1.3, lambda_h=0.6)
    potentials, (unary, mask) = with_topic(), random_batch()
    post = mean_field(unary, mask, potentials, inference, trace=True)
    total = energy(unary, mask, potentials, post)
    free = free_energy(unary, mask, potentials, post, 1.3, 0.6)
    for b, (crf, q, _) in enumerate(run_oracle(unary, mask, potentials, inference)):
        torch.testing.assert_close(total[b], reference.energy(crf, q))
        expected = reference.free_energy(crf, q, 1.3, 0.6)
        torch.testing.assert_close(free[b], expected)
        torch.testing.assert_close(post.trace[-1].free_energy[b], expected)


def test_a_variable_of_a_factor_can_be_observed():
    potentials, (unary, mask) = with_topic(), random_batch((3, 2))
    evidence = Evidence(others={"topic": torch.tensor([2, UNOBSERVED])})
    post = mean_field(unary, mask, potentials, evidence=evidence)
    assert post.others["topic_marginals"][0].tolist() == [0, 0, 1, 0]
    crf = reference_sentence(unary[0], potentials)
    q, _ = reference.mean_field(crf, Inference(), {("Y",): 2})
    torch.testing.assert_close(post.z_marginals[0, 0], q["Z", 0])
    free = mean_field(unary[1:, :2], mask[1:, :2], potentials)
    torch.testing.assert_close(post.z_marginals[1, :2], free.z_marginals[0])


def test_enumeration_knows_a_factor():
    """Without factors between words the labels are independent given the topic."""
    topic, unary = Topic(2, 3).double(), torch.randn(3, 2, dtype=torch.float64)
    words = UV(2, 1, 2, gamma=0).double()
    for parameter in words.parameters():
        parameter.data.zero_()
    crf = reference_sentence(unary, Potentials(words, topic=topic))
    exact = reference.enumerate_exactly(crf)
    by_topic = (unary.unsqueeze(-1) + topic.W).logsumexp(1).sum(0)
    heads = 3 * torch.log(torch.tensor(2.0, dtype=torch.float64))
    assert exact.log_partition == pytest.approx((by_topic.logsumexp(0) + heads).item())
    torch.testing.assert_close(exact.marginals[("Y",)], by_topic.softmax(0))


ROOTED = Inference(iterations=3, lambda_h=0.5, heads=OneRoot())


def test_a_head_structure_sums_over_what_it_allows():
    """Marginals, log Z, entropy, and gradients of marginals, against enumeration."""
    structure, n = OneRoot(), 4
    crf = reference_sentence(torch.randn(n, D).double(), build("uv", "root"))
    forbidden = torch.eye(n, n + 1, dtype=torch.bool)[None, None]
    scores = torch.randn(1, 1, n, n + 1, dtype=torch.float64, requires_grad=True)
    variables = [("H", 0, i) for i in range(n)]
    truth = reference.joint(
        crf, structure, variables, {("H", 0, i): scores[0, 0, i] for i in range(n)}
    )
    marginals = structure.marginals(scores, forbidden)
    expected = torch.stack([truth.marginals[v] for v in variables])[None, None]
    torch.testing.assert_close(marginals, expected)
    log_partition = structure.log_partition(scores, forbidden)
    torch.testing.assert_close(log_partition, truth.log_partition.view(1))
    entropy = structure.entropy(scores, marginals, forbidden)
    torch.testing.assert_close(entropy, truth.entropy.view(1))
    weights = torch.randn_like(marginals)
    pair = [torch.autograd.grad((m * weights).sum(), scores)[0] for m in (marginals, expected)]
    torch.testing.assert_close(*pair)


def test_inference_with_a_head_structure_is_the_oracles():
    potentials, (unary, mask) = build("uv", "root"), random_batch((4, 2, 1))
    post = mean_field(unary, mask, potentials, ROOTED, trace=True)
    for b, (crf, q, scores) in enumerate(run_oracle(unary, mask, potentials, ROOTED)):
        for i in range(crf.n):
            torch.testing.assert_close(post.z_scores[b, i], scores["Z", i])
            rows = torch.stack([q["H", c, i] for c in range(H)])
            torch.testing.assert_close(post.head_marginals[b, :, i, : crf.n], rows[:, : crf.n])
            torch.testing.assert_close(post.root_head_marginals[b, :, i], rows[:, crf.n])
        entropy = 0.0
        for c in range(H):
            block = [("H", c, i) for i in range(crf.n)]
            entropy = entropy + reference.joint(crf, ROOTED.heads, block, scores).entropy
        expected = reference.free_energy(crf, q, 1.0, 0.5, entropy)
        torch.testing.assert_close(post.trace[-1].free_energy[b], expected)
    roots = post.root_head_marginals.sum(-1)
    torch.testing.assert_close(roots, torch.ones_like(roots))


@pytest.mark.parametrize("extras", ["plain", "root", "root-topic"])
def test_inference_with_a_label_structure_is_the_oracles(extras):
    inference = Inference(iterations=2, lambda_h=0.6, normaliser_z=OneLabel())
    potentials, (unary, mask) = build("uv", extras), random_batch((4, 2, 1))
    labels = torch.full((3, 4), UNOBSERVED)
    labels[1, 0] = 2
    for evidence in (None, Evidence(labels=labels)):
        post = mean_field(unary, mask, potentials, inference, evidence=evidence, trace=True)
        runs = run_oracle(unary, mask, potentials, inference, evidence)
        assert_equal(post, runs)
        for b, (crf, q, scores) in enumerate(runs):
            block, observed = [("Z", i) for i in range(crf.n)], {}
            if evidence is not None and b == 1:
                assert post.z_marginals[b, 1].tolist() == [0, 0, 1, 0, 0]
                observed = {("Z", 0): 2}
            joint = reference.joint(crf, OneLabel(), block, scores, observed)
            rows = sum(torch.special.entr(q[v]).sum() for v in block)
            expected = reference.free_energy(crf, q, 1.0, 0.6) + rows - joint.entropy
            torch.testing.assert_close(post.trace[-1].free_energy[b], expected)


def test_packed_sentences_have_label_structures_of_their_own():
    inference = Inference(iterations=2, normaliser_z=OneLabel())
    assert not kernels_support(inference)


def test_the_free_energy_of_a_structure_is_undefined_for_mixtures():
    potentials, (unary, mask) = build("uv", "root"), random_batch((4, 2))
    mixing = Inference(iterations=2, heads=OneRoot(), step_h=0.5)
    steps = mean_field(unary, mask, potentials, mixing, trace=True).trace
    assert steps[0].free_energy is not None  # the first heads are taken whole
    assert steps[1].free_energy is None
    rows = Inference(iterations=2, step_h=0.5)
    assert mean_field(unary, mask, potentials, rows, trace=True).trace[1].free_energy is not None


def test_independent_rows_are_a_structure():
    forbidden = torch.rand(3, 2, 4, 5) < 0.3
    forbidden[0, 0, 1] = True  # a row of padding
    scores = torch.randn(3, 2, 4, 5, dtype=torch.float64)
    rows = Independent()
    marginals = rows.marginals(scores, forbidden)
    expected = Structure.entropy(rows, scores, marginals, forbidden)
    torch.testing.assert_close(rows.entropy(scores, marginals, forbidden), expected)
    assert Independent(sharper).entropy(scores, marginals, forbidden) is None


def test_gold_heads_are_evidence_as_they_are():
    """The heads of sentences and batches have the sentinels that evidence has."""
    potentials, (unary, mask) = build("uv", "root"), random_batch((3, 2))
    gold = torch.tensor([[1, ROOT, UNOBSERVED], [ROOT, 0, UNOBSERVED]])
    evidence = Evidence(heads=gold.unsqueeze(1).expand(-1, H, -1))
    post = mean_field(unary, mask, potentials, evidence=evidence)
    assert post.root_head_marginals[0, :, 1].eq(1).all()
    assert post.root_head_marginals[1, :, 0].eq(1).all()
    assert post.head_marginals[0, :, 0, 1].eq(1).all()
    assert 0 < post.root_head_marginals[0, 0, 2] < 1


def test_evidence_conditions_a_head_structure():
    """If one word hangs from ROOT, no other does; observed heads are excluded before the sum."""
    potentials, (unary, mask) = build("uv", "root"), random_batch((4,))
    heads = torch.full((1, H, 4), UNOBSERVED)
    heads[0, 0, 2], heads[0, 1, 0] = ROOT, 3
    post = mean_field(unary, mask, potentials, ROOTED, evidence=Evidence(heads=heads))
    assert post.root_head_marginals[0, 0].tolist() == [0, 0, 1, 0]
    assert post.head_marginals[0, 1, 0].tolist() == [0, 0, 0, 1]
    crf = reference_sentence(unary[0], potentials)
    q, _ = reference.mean_field(crf, ROOTED, {("H", 0, 2): 4, ("H", 1, 0): 3})
    torch.testing.assert_close(post.root_head_marginals[0, 1, 1], q["H", 1, 1][4])


def test_updating_structured_heads_never_raises_the_free_energy():
    """The update of a block is its exact minimiser, given the labels."""
    inference = Inference(iterations=1, lambda_h=0.5, heads=OneRoot())
    potentials, (unary, _) = build("uv", "root"), random_batch((4,))
    crf = reference_sentence(unary[0], potentials)
    q, scores = reference.mean_field(crf, inference)
    block = [("H", 0, i) for i in range(4)]
    labels = {
        v: (unary[0, v[1]] if v[0] == "Z" else torch.zeros(7)).double().softmax(-1)
        for v in crf.labels
    }
    best = reference.joint(crf, inference.heads, block, scores)

    def of_block(heads):
        part = labels | q | labels | heads.marginals
        return reference.free_energy(crf, part, 1.0, 0.5, heads.entropy)

    for seed in range(10):
        torch.manual_seed(seed)
        moved = {v: scores[v] + torch.randn_like(scores[v]) for v in block}
        assert of_block(reference.joint(crf, inference.heads, block, moved)) > of_block(best)


@pytest.mark.parametrize("where", ["normaliser_z", "normaliser_h"])
def test_a_normaliser_from_outside(where):
    potentials, (unary, mask) = build("uv", "root"), random_batch((4, 2, 1))
    inference = Inference(iterations=3, **{where: sharper})
    post = mean_field(unary, mask, potentials, inference, trace=True)
    for b, (crf, q, _) in enumerate(run_oracle(unary, mask, potentials, inference)):
        for i in range(crf.n):
            torch.testing.assert_close(post.z_marginals[b, i], q["Z", i])
    assert post.trace[-1].free_energy is None


def test_a_factor_trains_and_saves_with_an_encoder():
    from probformer import Encoder
    from probformer.config import EncoderSettings, RootSettings

    settings = EncoderSettings(labels=D, channels=H, root=RootSettings(7))
    factors = Potentials(UV(D, H, 4), Root(D, H, 7), topic=Topic(D, TOPICS))
    encoder = Encoder(11, settings, potentials=factors)
    words, mask = torch.randint(11, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    encoder(words, mask).z_scores.square().sum().backward()
    assert encoder.potentials.topic.W.grad.any()
    assert "potentials.topic.W" in encoder.state_dict()
