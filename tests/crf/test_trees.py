"""Inference with trees, against the oracle, which lists them."""

import pytest
import torch

from crf.test_iterations import assert_equal, check_gradients, run_oracle
from helpers.messages import refused
from helpers.models import build, random_batch
from probformer import Encoder, Evidence, Inference, mean_field, reference
from probformer.config import EncoderSettings, GlobalSettings
from probformer.crf.structures import (
    SpanningTrees,
    head_structure,
)
from probformer.potentials import UV, ArcLabels, Potentials, Root
from probformer.sentinels import ROOT, UNOBSERVED

RUNS = {
    "tree": Inference(iterations=3, heads="tree", lambda_h=0.5),
    "many roots": Inference(iterations=3, heads="tree", lambda_h=0.5, single_root=False),
    "projective": Inference(iterations=3, heads="projective", lambda_h=0.5),
    "by channel": Inference(iterations=3, heads=("tree", "independent", "projective")),
    "synchronous": Inference(iterations=2, heads="tree", asynchronous=False),
    "steps": Inference(iterations=2, heads="projective", step_z=0.5, step_h=0.8, damping_h=0.3),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("extras", ["root", "root-dep-split"])
def test_inference_is_the_oracles(run, extras):
    potentials, (unary, mask) = build("uv", extras), random_batch((4, 2, 1))
    post = mean_field(unary, mask, potentials, RUNS[run])
    assert_equal(post, run_oracle(unary, mask, potentials, RUNS[run]))


@pytest.mark.parametrize("run", RUNS)
def test_gradients_are_the_oracles(run):
    check_gradients(build("uv", "root"), RUNS[run])


@pytest.mark.parametrize("run", RUNS)
def test_arcs_with_labels_are_the_oracles(run):
    """The tree of a channel whose arcs have labels, and of the other channels."""
    potentials = build("uv", "root-arc-labels")
    unary, mask = random_batch((3, 2, 1))
    post = mean_field(unary, mask, potentials, RUNS[run])
    assert_equal(post, run_oracle(unary, mask, potentials, RUNS[run]))
    labelled = potentials.labelling.labelled_channel
    arcs = torch.cat([post.head_marginals, post.root_head_marginals.unsqueeze(-1)], -1)
    torch.testing.assert_close(post.arc_label_marginals.sum(-1), arcs[:, labelled])


@pytest.mark.parametrize("run", ["tree", "projective"])
def test_gradients_with_labels_of_arcs_are_the_oracles(run):
    check_gradients(build("uv", "root-arc-labels"), RUNS[run], lengths=(3, 2, 1, 0))


def test_trees_with_observed_labels_and_heads():
    potentials, (unary, mask) = build("uv", "root-arc-labels"), random_batch((4, 2))
    heads = torch.full((2, 3, 4), UNOBSERVED)
    heads[0, 1, 2], heads[0, 1, 0], heads[1, 2, 1] = ROOT, 3, 0
    labels = torch.full((2, 4), UNOBSERVED)
    labels[0, 2], labels[0, 1], labels[1, 0] = 1, 0, 3
    evidence = Evidence(heads=heads, arc_labels=labels)
    post = mean_field(unary, mask, potentials, RUNS["tree"], evidence=evidence)
    assert_equal(post, run_oracle(unary, mask, potentials, RUNS["tree"], evidence))
    assert post.arc_label_marginals[0, 2, -1].tolist() == [0, 1, 0, 0]
    assert not post.arc_label_marginals[0, 1, :, 1:].any()


@pytest.mark.parametrize("extras", ["root-arc-labels"])
@pytest.mark.parametrize("heads", ["independent", "tree"])
def test_the_free_energy_counts_the_labels_of_arcs(heads, extras):
    inference = Inference(iterations=2, heads=heads, lambda_h=0.5)
    potentials, (unary, mask) = build("uv", extras), random_batch((3,))
    post = mean_field(unary, mask, potentials, inference, trace=True)
    ((crf, q, scores),) = run_oracle(unary, mask, potentials, inference)
    entropy = 0.0
    for c in crf.channels:
        structure, block = structure_of(inference, c), [("H", c, i) for i in range(crf.n)]
        entropy = entropy + reference.joint(crf, structure, block, scores).entropy
    expected = reference.free_energy(crf, q, 1.0, 0.5, entropy)
    torch.testing.assert_close(post.trace[-1].free_energy[0], expected)


def test_one_channel_may_have_all_labels():
    """No channel is left without labels."""
    words = UV(5, 1, 4)
    potentials = Potentials(words, Root(5, 1, 2), arc_labels=ArcLabels(5, 3, 2)).double()
    unary, mask = random_batch((3, 2, 1, 0))
    for heads in ("independent", "tree", "projective", ("tree",)):
        inference = Inference(iterations=2, heads=heads)
        post = mean_field(unary, mask, potentials, inference, trace=True)
        assert_equal(post, run_oracle(unary, mask, potentials, inference))
        assert post.trace[-1].free_energy is not None


def test_scores_of_heads_give_their_marginals():
    potentials, (unary, mask) = build("uv", "root-arc-labels"), random_batch((4, 2))
    post = mean_field(unary, mask, potentials, RUNS["tree"])
    pairs = mask.unsqueeze(1) & mask.unsqueeze(2) & ~torch.eye(4, dtype=torch.bool)
    forbidden = ~torch.cat([pairs, mask.unsqueeze(2)], -1).unsqueeze(1)
    marginals = SpanningTrees().marginals(post.head_scores, forbidden)
    torch.testing.assert_close(marginals[..., :-1], post.head_marginals)
    summed = post.arc_label_scores.logsumexp(-1)
    torch.testing.assert_close(summed[mask], post.head_scores[:, 1][mask])


def test_what_labels_of_arcs_need():
    words = UV(5, 3, 4)
    with refused("root"):
        Potentials(words, arc_labels=ArcLabels(5, 3))
    with refused("channel", "3"):
        Potentials(words, Root(5, 3, 2), arc_labels=ArcLabels(5, 3, channel=3))
    with refused("one factor"):
        Potentials(words, Root(5, 3, 2), a=ArcLabels(5, 3), b=ArcLabels(5, 3))


@pytest.mark.parametrize("run", ["tree", "projective", "by channel"])
def test_the_free_energy_is_the_oracles_and_never_rises_by_an_update_of_heads(run):
    inference, (unary, mask) = RUNS[run], random_batch((4,))
    potentials = build("uv", "root")
    post = mean_field(unary, mask, potentials, inference, trace=True)
    ((crf, q, scores),) = run_oracle(unary, mask, potentials, inference)
    weight = inference.lambda_h_for(5)

    def free_energy(q, scores):
        entropy = 0.0
        for c in crf.channels:
            structure = structure_of(inference, c)
            block = [("H", c, i) for i in range(crf.n)]
            entropy = entropy + reference.joint(crf, structure, block, scores).entropy
        return reference.free_energy(crf, q, 1.0, weight, entropy)

    torch.testing.assert_close(post.trace[-1].free_energy[0], free_energy(q, scores))
    # The same labels, and heads from other scores: the update has found the minimum.
    best = {v: reference.message(crf, v, q) / weight for v in crf.heads}
    for seed in range(5):
        torch.manual_seed(seed)
        found = []
        for noise in (0.0, 1.0):
            moved = {v: s + noise * torch.randn_like(s) for v, s in best.items()}
            heads = {}
            for c in crf.channels:
                block = [("H", c, i) for i in range(crf.n)]
                heads |= reference.joint(crf, structure_of(inference, c), block, moved).marginals
            found.append(free_energy(q | heads, moved))
        assert found[0] < found[1]


def structure_of(inference, channel):
    return head_structure(inference).of_channel(channel)


def test_a_tree_has_one_root_and_every_word_one_head():
    potentials, (unary, mask) = build("rotary", "root"), random_batch((6, 3, 1, 0))
    post = mean_field(unary, mask, potentials, Inference(heads="tree"))
    rows = post.head_marginals.sum(-1) + post.root_head_marginals
    torch.testing.assert_close(rows, mask.unsqueeze(1).expand_as(rows).double())
    roots = post.root_head_marginals.sum(-1)
    torch.testing.assert_close(roots, mask.any(1, keepdim=True).expand_as(roots).double())


def test_evidence_is_part_of_the_tree():
    potentials, (unary, mask) = build("uv", "root"), random_batch((4, 2))
    heads = torch.full((2, 3, 4), UNOBSERVED)
    heads[0, 0, 2], heads[0, 1, 0], heads[1, 2, 1] = ROOT, 3, 0
    post = mean_field(unary, mask, potentials, RUNS["tree"], evidence=Evidence(heads=heads))
    runs = run_oracle(unary, mask, potentials, RUNS["tree"], Evidence(heads=heads))
    assert_equal(post, runs)
    assert post.root_head_marginals[0, 0].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("run", "heads", "named"),
    [
        ("tree", [1, 0, UNOBSERVED, UNOBSERVED], ["sentence 1", "channel 2", "word 0", "cycle"]),
        ("tree", [ROOT, UNOBSERVED, ROOT, 0], ["word 2", "ROOT"]),
        ("projective", [2, 3, UNOBSERVED, 2], ["word 0", "crosses"]),
        ("projective", [UNOBSERVED, ROOT, 0, UNOBSERVED], ["word 1", "below an arc"]),
        ("projective", [3, UNOBSERVED, UNOBSERVED, 2], ["below an arc"]),
    ],
)
def test_evidence_that_no_tree_has_is_refused(run, heads, named):
    """Words are counted without padding, which stands in front here."""
    potentials, (unary, mask) = build("uv", "root"), random_batch((5, 5))
    mask[1, 0] = False
    given = torch.full((2, 3, 5), UNOBSERVED)
    given[1, 2, 1:] = torch.tensor([head + 1 if head >= 0 else head for head in heads])
    with refused("evidence.heads", *named):
        mean_field(unary, mask, potentials, RUNS[run], evidence=Evidence(heads=given))


def test_what_trees_need():
    unary, mask = random_batch()
    for extras, heads in (("plain", "tree"), ("root-all-dep", "tree"), ("root", ("tree",))):
        with refused("heads"):
            mean_field(unary, mask, build("uv", extras), Inference(heads=heads))
    with refused("normaliser_h"):
        Inference(heads="projective", normaliser_h="relu")


def test_an_encoder_with_trees_has_a_root():
    settings = EncoderSettings(labels=6, channels=2, inference=Inference(heads="tree"))
    assert settings.root is not None
    assert settings.root.labels == 1
    post = Encoder(9, settings)(torch.randint(9, (2, 4)), torch.ones(2, 4, dtype=torch.bool))
    torch.testing.assert_close(post.root_head_marginals.sum(-1), torch.ones(2, 2))
    for wrong in (
        {"globals": GlobalSettings("all-dep", 3)},
        {"inference": Inference(heads=("tree", "tree", "independent"))},
    ):
        with refused(next(iter(wrong))):
            EncoderSettings(**({"channels": 2, "inference": Inference(heads="tree")} | wrong))
