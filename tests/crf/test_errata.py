"""The errata of the paper: what docs/errata.md says is right holds, and what was printed does not.

Each entry of that page names its tests; those of appendix A are in test_errata_appendix_a.py.
"""

import re

import pytest
import torch
import torch.nn.functional as F

from helpers.places import TESTS
from probformer import Inference, mean_field, reference
from probformer.config.lookup import read_settings
from probformer.crf.potentials import UV, Full, Global, Potentials
from probformer.runs.run_folder import build_encoder
from probformer.testing import reference_sentence

N, D, H, R = 5, 6, 2, 3


def random_sentence(n=N, d=D):
    return torch.randn(1, n, d, dtype=torch.float64), torch.ones(1, n, dtype=torch.bool)


def same(actual, expected, tolerance=1e-10):
    return torch.allclose(actual, expected, rtol=tolerance, atol=tolerance)


# Comparison with transformers (section 3, Limitations, appendix C)


def test_row_sums_break_the_symmetry_of_heads():
    """p_ij / p_ji = z_j / z_i: a symmetric F has symmetric heads only if all row sums agree."""
    potential = Full(D, 1, gamma=None).double()
    potential.T.data.copy_(potential.T + potential.T.mT)
    unary, mask = random_sentence()
    p = mean_field(unary, mask, potential, Inference(iterations=1, lambda_h=1.0)).head_marginals
    q = unary[0].softmax(-1)
    f = q @ potential.dense(1)[0] @ q.mT
    assert same(f, f.mT)
    off_diagonal = ~torch.eye(N, dtype=torch.bool)
    z = (f.exp() * off_diagonal).sum(1)
    ratio, expected = p[0, 0] / p[0, 0].mT, z / z[:, None]
    assert same(ratio[off_diagonal], expected[off_diagonal])
    assert not same(ratio[off_diagonal], torch.ones(N * (N - 1), dtype=torch.float64), 1e-2)


def test_symmetric_t_at_every_distance_leaves_scores_asymmetric():
    """With distances F_ij has T[f(i−j)] and F_ji has T[f(j−i)], another matrix."""
    potential = Full(D, 1, gamma=1).double()
    potential.T.data.copy_(potential.T + potential.T.mT)
    q = torch.randn(1, N, D, dtype=torch.float64).softmax(-1)
    f = potential.head_scores(potential.prepare(q))[0, 0]
    assert not same(f, f.mT, 1e-2)
    mirrored = Full(D, 1, gamma=1).double()
    mirrored.T.data.copy_(potential.T + potential.T.flip(0).mT)  # T[f(−δ)] = T[f(δ)]ᵀ
    f = mirrored.head_scores(mirrored.prepare(q))[0, 0]
    off_diagonal = ~torch.eye(N, dtype=torch.bool)
    assert same(f[off_diagonal], f.mT[off_diagonal])


def test_a_symmetric_product_ties_u_to_v():
    """U Vᵀ is symmetric only if both span the same space: U = V M with a symmetric M."""
    u, v, m = (torch.randn(*size, dtype=torch.float64) for size in ((D, R), (D, R), (R, R)))
    tied = v @ (m + m.mT)
    for left, symmetric in ((u, False), (tied, True)):
        t = left @ v.mT
        assert same(t, t.mT) is symmetric
        assert (torch.linalg.matrix_rank(torch.cat([left, v], 1)) == R).item() is symmetric


def test_the_diagonal_is_masked_and_not_zero():
    potential = UV(D, H, R, gamma=None).double()
    unary, mask = random_sentence()
    p = mean_field(unary, mask, potential, Inference(iterations=1, lambda_h=0.3)).head_marginals[0]
    q = unary[0].softmax(-1)
    f = q @ potential.dense(1) @ q.mT / 0.3
    itself = torch.eye(N, dtype=torch.bool)
    assert same(p, f.masked_fill(itself, -torch.inf).softmax(-1))
    zero_scores = f.masked_fill(itself, 0.0).softmax(-1)  # as section 3.2 has it
    assert (zero_scores.diagonal(dim1=1, dim2=2) > 0.01).all()
    assert not same(p, zero_scores, 1e-2)
    zeroed_later = f.softmax(-1).masked_fill(itself, 0.0)  # eq. 19 with section 3.1's zeros
    assert (zeroed_later.sum(-1) < 0.99).all()
    # Either is off by the probability that it gives to the word itself.
    for wrong in (zero_scores.masked_fill(itself, 0.0), zeroed_later):
        assert same(p, wrong / wrong.sum(-1, keepdim=True))


def test_output_matrices_are_stacked_transposed():
    """d = h·r, so that the printed product exists; it is another one all the same."""
    d, h, r = 6, 3, 2
    heads = torch.randn(h, N, r, dtype=torch.float64)
    outputs = torch.randn(h, d, r, dtype=torch.float64)  # W_i^O ∈ ℝ^{d×r}
    summed = sum(head @ output.mT for head, output in zip(heads, outputs, strict=True))
    joined, side_by_side = torch.cat([*heads], 1), torch.cat([*outputs], 1)  # (n, hr), (d, hr)
    assert same(summed, joined @ side_by_side.mT)
    assert not same(summed, joined @ side_by_side, 1e-2)


def test_keys_and_values_are_v():
    potential = UV(D, H, R, gamma=None).double()
    unary, mask = random_sentence()
    post = mean_field(unary, mask, potential, Inference(iterations=1, lambda_h=0.3))
    q, p = unary[0].softmax(-1), post.head_marginals[0]
    to_heads = sum(p[c].mT @ q @ potential.dense(1)[c] for c in range(H))
    to_dependents = post.z_scores[0] - unary[0] - to_heads
    u, v = potential.U[0].mT, potential.V[0].mT  # (h, d, r)

    def attend(queries, keys):
        """W^Q = W^O = queries, W^K = W^V = keys."""
        others = ~torch.eye(N, dtype=torch.bool)
        x = F.scaled_dot_product_attention(
            q @ queries, q @ keys, q @ keys, attn_mask=others, scale=1 / 0.3
        )
        return (x @ queries.mT).sum(0)

    assert same(to_dependents, attend(u, v))  # sections 3.1 and 3.3
    assert not same(to_dependents, attend(v, u), 1e-2)  # Limitations


@pytest.mark.parametrize("gamma", [None, 1])
def test_with_distances_a_channel_must_leave_with_its_own_u(gamma):
    """Σ_j α_ij (x_j V_ij) forgets which U each term needs; no matrix brings that back."""
    potential = UV(D, 1, R, gamma=gamma).double()
    contexts, messages = [], []
    for _ in range(4):
        unary, mask = random_sentence()
        post = mean_field(unary, mask, potential, Inference(iterations=1, lambda_h=0.3))
        x, alpha = unary[0].softmax(-1), post.head_marginals[0, 0]
        to_heads = torch.zeros(N, D, dtype=torch.float64)
        context, message = torch.zeros(N, R).double(), torch.zeros(N, D).double()
        for i in range(N):
            for j in set(range(N)) - {i}:
                k = potential.buckets.of(i - j)
                u, v = potential.U[k, 0].mT, potential.V[k, 0].mT  # (d, r)
                context[i] += alpha[i, j] * (x[j] @ v)
                message[i] += alpha[i, j] * (x[j] @ v @ u.mT)
                to_heads[j] += alpha[i, j] * (x[i] @ u @ v.mT)
        assert same(post.z_scores[0], unary[0] + message + to_heads)
        contexts.append(context)
        messages.append(message)
    context, message = torch.cat(contexts).detach(), torch.cat(messages).detach()
    best = torch.linalg.lstsq(context, message).solution  # in the place of Uᵀ
    missed = (context @ best - message).norm() / message.norm()
    assert missed < 1e-10 if gamma is None else missed > 0.1


# Global variables (appendix B.3)


def test_global_features_are_counted_from_n():
    """B has m rows; the value n + k of H means row k, which eqs. 34 and 35 call row n + k."""
    n, m = 2, 5
    potentials = Potentials(UV(D, 1, R), globals=Global(D, 1, m, "all-dep")).double()
    crf = reference_sentence(torch.randn(n, D, dtype=torch.float64), potentials)
    q = {
        v: torch.randn(crf.size(v), dtype=torch.float64).softmax(-1).requires_grad_()
        for v in crf.labels + crf.heads
    }
    (slope,) = torch.autograd.grad(reference.energy(crf, q), q["H", 0, 0])
    b, message = potentials.globals.B[0], reference.message(crf, ("H", 0, 0), q)
    assert same(message[1:], -slope[1:])
    for k in range(m):
        assert same(message[n + k], b[k] @ q["Z", 0])
    for k in range(m - n):  # here the printed row exists, but is another feature's
        assert not same(message[n + k], b[n + k] @ q["Z", 0], 1e-3)
    with pytest.raises(IndexError):
        b[n + m - 1]


def test_feature_variables_and_b_agree_in_mean_field_only():
    """Σ_g P(g) exp(T″_ag), which summing F out gives, is more than B's exp(Σ_g P(g) T″_ag)."""
    t = torch.randn(D, 4, dtype=torch.float64)  # T″_{a,g}
    p = torch.randn(3, 4, dtype=torch.float64).softmax(-1)  # P(F_j = g)
    summed_out = p @ t.exp().mT  # the weight of (H = n + j, Z = a), once F is summed out
    with_b = (p @ t.mT).exp()
    assert (with_b < summed_out).all()
    posteriors = [weights.sum(0) / weights.sum() for weights in (summed_out, with_b)]  # of Z
    assert not same(*posteriors, 1e-2)
    observed = torch.eye(4, dtype=torch.float64)[:3]  # F truly observed: no difference
    assert same(observed @ t.exp().mT, (observed @ t.mT).exp())


# Sizes and figures (sections 3.4 and 4.3, appendices B.3, E and F)

ROWS = {
    "mlm-ptb": 0.26,
    "mlm-bllip": 0.54,
    "tagging-ptb": 0.20,
    "tagging-ud_ewt-xpos": 0.75,
    "ner-conll2003": 5.52,
    "classification-sst2": 0.45,
    "classification-sst5": 0.31,
    "cogs-cogs": 1.47,
}
"""The rows of the paper's results: parameters of PT over those of the Transformer."""


def encoder_of(config, **changes):
    overrides = [f"encoder.{name.replace('__', '.')}={value}" for name, value in changes.items()]
    with torch.device("meta"):
        return build_encoder(read_settings(config, overrides).encoder, vocabulary=10)


def count(config, **changes):
    return encoder_of(config, **changes).count_parameters()


def test_parameters_compared_with_the_transformers():
    ratios = {row: count(f"{row}-pt") / count(f"{row}-transformer") for row in ROWS}
    assert ratios == pytest.approx(ROWS, abs=0.005)
    between = {row for row, ratio in ratios.items() if 0.2 <= ratio <= 0.5}
    assert between == {"mlm-ptb", "tagging-ptb", "classification-sst2", "classification-sst5"}
    assert {row for row, ratio in ratios.items() if ratio > 1} == {"ner-conll2003", "cogs-cogs"}


def test_the_same_sizes_need_not_mean_fewer_parameters():
    """On COGS both have 64 dimensions, 4 heads of 16 and 2 layers; 18 distances outweigh it all."""
    pt = read_settings("cogs-cogs-pt", []).encoder
    transformer = read_settings("cogs-cogs-transformer", []).encoder
    ours = (pt.labels, pt.channels, pt.potential.rank, pt.inference.iterations)
    theirs = (transformer.width, transformer.heads, transformer.head_width, transformer.layers)
    assert ours == theirs
    assert count("cogs-cogs-pt") > count("cogs-cogs-transformer")
    blind = count("cogs-cogs-pt", potential__gamma="none")
    assert count("cogs-cogs-pt") == 18 * blind
    assert blind < count("cogs-cogs-transformer") / 10


def test_a_rank_of_d_doubles_the_parameters():
    """A factorisation pays below r = d/2; the paper's tagger of the Penn Treebank has r = d."""
    settings = read_settings("tagging-ptb-pt", []).encoder
    d, h = settings.labels, settings.channels
    assert settings.potential.rank == d
    assert count("tagging-ptb-pt") == 2 * (8 * h * d * d)
    assert count("tagging-ptb-pt", potential__rank=d // 2) == 8 * h * d * d


def test_feed_forward_layers_are_two_thirds_only_in_the_usual_proportions():
    """4d in the feed-forward layer, heads that add up to d: COGS has them, most rows do not."""
    shares = {}
    for row in ROWS:
        layer = encoder_of(f"{row}-transformer").layers[0]
        feed_forward = sum(p.numel() for p in layer.feed_forward.parameters() if p.dim() == 2)
        attention = layer.attention
        matrices = (attention.query, attention.key, attention.value, attention.output)
        shares[row] = feed_forward / (feed_forward + sum(m.numel() for m in matrices))
    assert shares["cogs-cogs"] == pytest.approx(2 / 3)
    assert shares["tagging-ptb"] == pytest.approx(0.70, abs=0.005)
    others = [share for row, share in shares.items() if row not in ("cogs-cogs", "tagging-ptb")]
    assert max(others) < 0.54
    assert shares["mlm-ptb"] == pytest.approx(1 / 3)
    assert min(shares.values()) == pytest.approx(0.09, abs=0.005)


CASE_STUDY = """
    1.00 1.00 0.50 1.00 0.99 1.00 1.00 1.00    1.00 1.00 1.00 0.96 1.00 1.00 1.00 1.00
    0.94 1.00 1.00 1.00 0.98 0.58 1.00 0.88    1.00 1.00 1.00 1.00 1.00 1.00 0.99 1.00
    1.00 1.00 1.00 1.00 0.85 1.00 1.00 0.99    0.99 1.00 1.00 0.93 1.00 1.00 1.00 1.00
    0.99 0.99 0.87 1.00 1.00 1.00 1.00 1.00    1.00 0.86 0.64 1.00 0.99 0.82 0.40 0.76
    1.00 1.00 0.96 1.00 1.00 1.00 1.00 1.00    0.98 0.84 1.00 1.00 1.00 1.00 0.64 1.00
    0.86 0.93 1.00 1.00 1.00 1.00 1.00 1.00    0.91 1.00 0.98 1.00 1.00 0.95 0.55 0.85
    1.00 1.00 0.83 0.66 0.97 0.74 1.00 1.00    1.00 1.00 1.00 1.00 0.78 0.97 0.83 1.00
    1.00 0.78 0.56 0.91 0.86 1.00 1.00 1.00    1.00 0.94 0.63 1.00 0.97 0.91 1.00 0.82
"""
"""The numbers on the arcs of the paper's last figure: 16 channels, 8 words each."""


def test_not_all_arcs_of_the_case_study_are_sure():
    arcs = [float(number) for number in CASE_STUDY.split()]
    assert len(arcs) == 16 * 8
    assert min(arcs) == 0.40
    assert sum(arc < 0.9 for arc in arcs) == 25
    assert sum(arc >= 0.95 for arc in arcs) == 96


# The pages


@pytest.mark.parametrize("page", ["errata.md", "paper.md"])
def test_what_the_pages_point_at_exists(page):
    root = TESTS.parent
    text = (root / "docs" / page).read_text(encoding="utf-8")
    mentions = re.findall(r"`((?:src|tests|configs|benchmarks)/[\w/.-]+)(?:::([\w.]+))?`", text)
    assert mentions
    for path, name in mentions:
        assert (root / path).exists(), path
        if name:
            defined = rf"(?m)^\s*(?:def|class) {name.rpartition('.')[2]}\b"
            assert re.search(defined, (root / path).read_text(encoding="utf-8")), (path, name)


def test_every_test_of_the_errata_is_on_the_page():
    text = (TESTS.parent / "docs" / "errata.md").read_text(encoding="utf-8")
    for file in sorted(TESTS.glob("test_errata*.py")):
        names = set(re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M))
        for name in names - {this for this in names if "page" in this}:
            assert f"`tests/{file.name}::{name}`" in text, name
