"""Trees as a structure of heads: against enumeration, and inference with them."""

import itertools

import pytest
import torch

from crf.test_iterations import assert_equal, check_gradients, run_oracle
from helpers.messages import refused
from helpers.models import build, random_batch
from probformer import Encoder, Evidence, Inference, mean_field, reference
from probformer.config import EncoderSettings, GlobalSettings
from probformer.crf.structures import (
    ByChannel,
    Independent,
    ProjectiveTrees,
    SpanningTrees,
    head_structure,
)
from probformer.potentials import UV, ArcLabels, Potentials, Root
from probformer.sentinels import ROOT, UNOBSERVED

TREES = {
    f"{cls.__name__}-{'one root' if single else 'many roots'}": cls(single)
    for cls in (SpanningTrees, ProjectiveTrees)
    for single in (True, False)
}
trees = pytest.mark.parametrize("structure", TREES.values(), ids=TREES)


def crosses(heads):
    """Whether two arcs cross, with ROOT in front of the sentence."""
    arcs = [sorted((word, head)) for word, head in enumerate(heads)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


def all_trees(n, single_root, projective):
    """Every tree, by definition: from each word, heads lead to ROOT."""
    for heads in itertools.product(range(ROOT, n), repeat=n):
        roots = heads.count(ROOT)
        if roots == 0 or (single_root and roots > 1) or (projective and crosses(heads)):
            continue
        reached = {ROOT}
        for _ in range(n):
            reached |= {word for word in range(n) if heads[word] in reached}
        if len(reached) == n + 1:
            yield heads


def trees_of(structure, n):
    return list(all_trees(n, structure.single_root, isinstance(structure, ProjectiveTrees)))


def enumerate_trees(structure, scores, observed=None):
    """Marginals, log Z and entropy from a list of all trees of n words, ROOT in the last column."""
    n = len(scores)
    found = trees_of(structure, n)
    if observed is not None:
        fits = [all(o in (UNOBSERVED, h) for o, h in zip(observed, t, strict=True)) for t in found]
        found = [tree for tree, fit in zip(found, fits, strict=True) if fit]
    arcs = torch.zeros(len(found), n, n + 1, dtype=scores.dtype)
    for number, heads in enumerate(found):
        arcs[number, range(n), heads] = 1.0  # ROOT, −1, is the last column
    totals = (arcs * scores).sum((1, 2))
    p = totals.softmax(0)
    return torch.einsum("t,tij->ij", p, arcs), totals.logsumexp(0), torch.special.entr(p).sum()


def diagonal(n):
    return torch.eye(n, n + 1, dtype=torch.bool)


@trees
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0])
def test_sums_are_those_over_all_trees(structure, n, spread):
    scores = (spread * torch.randn(n, n + 1, dtype=torch.float64)).requires_grad_()
    expected, log_z, entropy = enumerate_trees(structure, scores)
    given = scores[None, None], diagonal(n)[None, None]
    marginals = structure.marginals(*given)
    torch.testing.assert_close(marginals[0, 0], expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(structure.log_partition(*given)[0], log_z, rtol=1e-10, atol=1e-10)
    found = structure.entropy(given[0], marginals, given[1])[0]
    torch.testing.assert_close(found, entropy, rtol=1e-10, atol=1e-10)
    weights = torch.randn_like(scores)
    pair = [torch.autograd.grad((m * weights).sum(), scores)[0] for m in (marginals, expected)]
    torch.testing.assert_close(*pair, rtol=1e-10, atol=1e-10)


@trees
def test_log_z_can_be_differentiated_twice(structure):
    scores = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    given = scores[None, None], diagonal(4)[None, None]
    (slope,) = torch.autograd.grad(structure.log_partition(*given).sum(), scores, create_graph=True)
    torch.testing.assert_close(slope, structure.marginals(*given)[0, 0])
    weights = torch.randn_like(scores)
    expected = torch.autograd.grad((enumerate_trees(structure, scores)[0] * weights).sum(), scores)
    torch.testing.assert_close(torch.autograd.grad((slope * weights).sum(), scores), expected)


@trees
def test_words_that_claim_each_other(structure):
    """Where two words are each other's head almost certainly, the Laplacian is singular."""
    scores = torch.randn(4, 5, dtype=torch.float64)
    scores[0, 1] = scores[1, 0] = scores[2, 3] = scores[3, 2] = 60.0
    expected, log_z, _ = enumerate_trees(structure, scores)
    given = scores[None, None], diagonal(4)[None, None]
    torch.testing.assert_close(structure.marginals(*given)[0, 0], expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(structure.log_partition(*given)[0], log_z)


@trees
def test_observed_heads(structure):
    """All partial trees of three words: conditioned before anything is summed, or refused."""
    n, refused = 3, 0
    scores = torch.randn(n, n + 1, dtype=torch.float64)
    possible = trees_of(structure, n)
    for observed in itertools.product(range(UNOBSERVED, n), repeat=n):
        if any(head == word for word, head in enumerate(observed)):
            continue
        fitting = any(
            all(o in (UNOBSERVED, h) for o, h in zip(observed, tree, strict=True))
            for tree in possible
        )
        assert (structure.fault(observed) is None) == fitting, observed
        refused += not fitting
        if fitting:
            index = torch.tensor([n if head == ROOT else head for head in observed])[None, None]
            forbidden = structure.condition(diagonal(n)[None, None], index)
            marginals = structure.marginals(scores[None, None], forbidden)
            expected, _, _ = enumerate_trees(structure, scores, observed)
            torch.testing.assert_close(marginals[0, 0], expected, rtol=1e-10, atol=1e-10)
    assert refused


@trees
def test_faults_are_the_partial_heads_of_no_tree(structure):
    """For five words, by a random choice of partial heads."""
    possible, torch_random = trees_of(structure, 5), torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(400):
        observed = torch.randint(UNOBSERVED, 5, (5,), generator=torch_random).tolist()
        if any(head == word for word, head in enumerate(observed)):
            continue
        fitting = any(
            all(o in (UNOBSERVED, h) for o, h in zip(observed, tree, strict=True))
            for tree in possible
        )
        assert (structure.fault(observed) is None) == fitting, observed
        seen.add(fitting)
    assert seen == {True, False}


@trees
def test_padding_does_not_count_wherever_it_stands(structure):
    scores = torch.randn(2, 1, 5, 6, dtype=torch.float64)
    words = torch.tensor([[True, True, True, False, False], [False, True, False, True, True]])
    pairs = words.unsqueeze(1) & words.unsqueeze(2) & ~torch.eye(5, dtype=torch.bool)
    forbidden = ~torch.cat([pairs, words.unsqueeze(2)], -1).unsqueeze(1)
    marginals = structure.marginals(scores, forbidden)
    assert not marginals[forbidden].any()
    for b, word in enumerate(words):
        columns = torch.cat([word, torch.tensor([True])])
        alone = scores[b, 0][word][:, columns]
        expected, log_z, _ = enumerate_trees(structure, alone)
        torch.testing.assert_close(marginals[b, 0][word][:, columns], expected)
        of_one = structure.log_partition(scores[b : b + 1], forbidden[b : b + 1])
        torch.testing.assert_close(of_one[0], log_z)
    none = torch.ones(1, 1, 5, 6, dtype=torch.bool)
    assert structure.log_partition(scores[:1], none).tolist() == [0.0]
    assert not structure.marginals(scores[:1], none).any()


@pytest.mark.parametrize("spread", [1.0, 10.0, 20.0, 60.0])
@pytest.mark.parametrize("single_root", [True, False])
def test_float32_is_as_good_as_its_scores(spread, single_root):
    structure = SpanningTrees(single_root)
    for n in (2, 17, 100):
        scores = (spread * torch.randn(4, 2, n, n + 1)).requires_grad_()
        forbidden = diagonal(n)[None, None]
        marginals = structure.marginals(scores, forbidden)
        precise = structure.marginals(scores.detach().double(), forbidden)
        assert ((marginals >= 0) & (marginals <= 1)).all()
        torch.testing.assert_close(marginals.double(), precise, rtol=0, atol=1e-4)
        ones = torch.ones(4, 2, n)
        torch.testing.assert_close(marginals.sum(-1), ones, rtol=0, atol=1e-4)
        log_z = structure.log_partition(scores, forbidden)
        expected = structure.log_partition(scores.detach().double(), forbidden)
        torch.testing.assert_close(log_z.double(), expected, rtol=1e-6, atol=0)
        (slope,) = torch.autograd.grad((marginals * torch.randn_like(marginals)).sum(), scores)
        assert torch.isfinite(slope).all()


def test_elimination_agrees_with_log_space():
    """Ordinary arithmetic against the same elimination in log space, with large scores."""
    for n, spread in ((12, 20.0), (30, 60.0)):
        scores = spread * torch.randn(n, n + 1, dtype=torch.float64)
        log_a = scores.masked_fill(diagonal(n), -torch.inf)
        total = torch.zeros((), dtype=torch.float64)
        first = int((scores[:, -1] - log_a[:, :-1].amax(1)).argmax())
        order = [first, *(i for i in range(n) if i != first)]
        a = log_a[order][:, [*order, n]]
        for i in range(n - 1, 0, -1):
            s = a[i, :i].logsumexp(0)
            total = total + s
            update = a[:i, i : i + 1] + (a[i] - s)
            a = torch.logaddexp(a[:i], update)
        total = total + a[0, -1]
        found = SpanningTrees().log_partition(scores[None, None], diagonal(n)[None, None])
        torch.testing.assert_close(found[0], total, rtol=1e-12, atol=0)


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
    unary, mask = random_batch((4, 2, 1))
    post = mean_field(unary, mask, potentials, RUNS[run])
    assert_equal(post, run_oracle(unary, mask, potentials, RUNS[run]))
    labelled = potentials.labelling.labelled_channel
    arcs = torch.cat([post.head_marginals, post.root_head_marginals.unsqueeze(-1)], -1)
    torch.testing.assert_close(post.arc_label_marginals.sum(-1), arcs[:, labelled])


@pytest.mark.parametrize("run", ["tree", "projective"])
def test_gradients_with_labels_of_arcs_are_the_oracles(run):
    check_gradients(build("uv", "root-arc-labels"), RUNS[run])


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
    potentials, (unary, mask) = build("uv", extras), random_batch((4,))
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
    unary, mask = random_batch((4, 2, 1, 0))
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


def test_channels_that_share_a_structure_are_as_each_by_itself():
    rows, one = Independent(), SpanningTrees()
    mixed = ByChannel([rows, rows, one, one, rows])
    scores = torch.randn(2, 5, 4, 5, dtype=torch.float64)
    forbidden = diagonal(4)[None, None]
    marginals = mixed.marginals(scores, forbidden)
    for c in range(5):
        alone = mixed.of_channel(c).marginals(scores[:, c : c + 1], forbidden)
        torch.testing.assert_close(marginals[:, c : c + 1], alone)
