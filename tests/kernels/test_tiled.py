"""Kernels that work in tiles give what dense equations give, and draw what others draw."""

from dataclasses import replace

import pytest
import torch

from helpers.messages import refused

pytest.importorskip("triton", reason="needs Triton")
from probformer.crf.potentials.buckets import Buckets
from probformer.kernels import launching
from probformer.kernels.crf import messages, short, tiled
from probformer.kernels.crf.messages import word_messages
from probformer.kernels.crf.problem import Contexts, Gradients, Layout, Problem, Vectors

pytestmark = pytest.mark.kernels

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WORDS = ["full", "uv", "uvw", "shared-uv", "rotary"]
LABELS, CHANNELS, RANK = 7, 2, 6
BY_LENGTH = messages.kernels_for


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Some forty words then have tiles on the diagonal, at edges of far triangles and inside."""
    monkeypatch.setattr(messages, "kernels_for", lambda problem, dtype: [(tiled, problem)])
    monkeypatch.setattr(tiled, "EXACT", {"M": 16, "N": 16, "num_warps": 4, "num_stages": 1})


def layout(sentences, mask=None):
    """Sentences one behind the other."""
    lengths = torch.tensor(sentences, dtype=torch.int32)
    starts = lengths.cumsum(0, dtype=torch.int32) - lengths
    mask = torch.ones(sum(sentences), dtype=torch.bool) if mask is None else mask
    return Layout.packed(starts.to(DEVICE), lengths.to(DEVICE), max(sentences), mask.to(DEVICE))


def angles(n, r):
    angle = torch.arange(n)[:, None] * 10000.0 ** (-2 * torch.arange(r // 2) / r)
    return angle.cos().to(DEVICE), angle.sin().to(DEVICE)


def build(words, sentences, *, gamma=2, rank=RANK, rest=False, rate=0.0, mask=None):
    """A problem and what `word_messages` is given beside it, in float64."""
    gamma = None if words == "rotary" else gamma
    k, h, r = Buckets(gamma).count, CHANNELS, LABELS if words == "full" else rank
    buckets = 1 if words in ("shared-uv", "rotary") else k
    shape = (buckets, 1 if words == "uvw" else h, r, LABELS)
    u, v = torch.randn(2, *shape, dtype=torch.float64)
    where = layout(sentences, mask)
    problem = Problem(
        layout=where,
        channels=h,
        gamma=gamma,
        weight=0.4,
        angles=angles(max(sentences), r) if words == "rotary" else None,
        rate=rate,
        seed=torch.tensor([5], device=DEVICE),
    )
    rows = len(where.mask)
    return problem, [
        torch.randn(rows, LABELS, dtype=torch.float64).softmax(-1),
        u,
        None if words == "full" else v,
        torch.randn(k, h, r, dtype=torch.float64) if words in ("uvw", "shared-uv") else None,
        torch.randn(rows, h, dtype=torch.float64) if rest else None,
    ]


def dense(q, u, v, scale, rest, problem):
    """What `word_messages` gives first, sentence by sentence with all pairs in memory."""
    message, normaliser = torch.zeros_like(q), q.new_zeros(len(q), CHANNELS)
    of = Buckets(problem.gamma).of
    k, mask = problem.buckets, problem.layout.mask.cpu()
    u = u.expand(k, CHANNELS, -1, -1)
    v = (torch.eye(LABELS, dtype=q.dtype) if v is None else v).expand(k, CHANNELS, -1, -1)
    for start, n in zip(
        problem.layout.starts.tolist(), problem.layout.lengths.tolist(), strict=True
    ):
        rows, word = slice(start, start + n), mask[start : start + n]
        bucket = torch.tensor([[of(i - j) for j in range(n)] for i in range(n)])
        a, b = (torch.einsum("id,khrd->khir", q[rows], x) for x in (u, v))
        a = a if scale is None else a * scale[:, :, None]
        a, b = turn(a, problem, 1), turn(b, problem, 1)
        pairs = bucket == torch.arange(k)[:, None, None, None]
        allowed = word[:, None] & word & ~torch.eye(n, dtype=torch.bool)
        scores = ((a @ b.mT * pairs).sum(0) / problem.weight).masked_fill(~allowed, -torch.inf)
        total = scores if rest is None else torch.cat([scores, rest[rows].mT[..., None]], -1)
        log_sum = total.masked_fill(~total.isfinite(), -1e30).logsumexp(-1)
        p = (scores - log_sum[..., None]).exp() * pairs
        y, z = turn(p @ b, problem, -1), turn(p.mT @ a, problem, -1)
        y = y if scale is None else y * scale[:, :, None]
        found = torch.einsum("khir,khrd->id", y, u) + torch.einsum("khir,khrd->id", z, v)
        message = message.index_copy(0, torch.arange(start, start + n), found)
        normaliser = normaliser.index_copy(0, torch.arange(start, start + n), log_sum.mT)
    return message, normaliser


def by_kernels(q, u, v, scale, rest, problem):
    return word_messages(q, u, v, scale, rest, None, problem)[:2]


def turn(x, problem, sign):
    if problem.angles is None:
        return x
    cos, sin = (table[: x.shape[-2]].cpu().to(x.dtype) for table in problem.angles)
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - sign * second * sin, sign * first * sin + second * cos], -1)


def results(function, problem, arguments, counts):
    """Messages and all gradients of a function of messages, and of normalisers where heads other
    than words take part; for rows that count."""
    arguments = [None if x is None else x.detach().requires_grad_() for x in arguments]
    message, normaliser = function(*arguments, problem)
    outputs = [message[counts], *([] if arguments[-1] is None else [normaliser[counts]])]
    torch.manual_seed(1)
    weights = [torch.randn(x.shape, dtype=torch.float64) for x in outputs]
    loss = sum((x.double().cpu() * w).sum() for x, w in zip(outputs, weights, strict=True))
    inputs = [x for x in arguments if x is not None]
    gradients = torch.autograd.grad(loss, inputs)
    by_row = [x[counts] if len(x) == len(counts) else x for x in gradients]
    return [x.double().cpu() for x in (*outputs, *by_row)]


def assert_close(actual, expected, tolerance=1e-5):
    for x, y in zip(actual, expected, strict=True):
        assert torch.isfinite(x).all()
        assert (x - y).norm() <= tolerance * (y.norm() + 1e-6)


def assert_equals_dense(problem, arguments):
    counts = problem.layout.mask.cpu()
    single = [None if x is None else x.float().to(DEVICE) for x in arguments]
    actual = results(by_kernels, problem, single, counts)
    assert_close(actual, results(dense, problem, arguments, counts))


QUICK = ("uv", "rotary")


@pytest.mark.parametrize(
    "words", [pytest.param(w, marks=[] if w in QUICK else pytest.mark.long) for w in WORDS]
)
def test_tiles_equal_the_dense_equations(words):
    assert_equals_dense(*build(words, [34, 2, 1]))


@pytest.mark.long
@pytest.mark.parametrize("words", WORDS)
def test_tiles_far_before_and_after(words):
    assert_equals_dense(*build(words, [50]))


@pytest.mark.long
@pytest.mark.parametrize("words", ["uv", "shared-uv", "rotary"])
def test_heads_other_than_words_and_padding_anywhere(words):
    mask = torch.ones(22, dtype=torch.bool)
    mask[[0, 5, 16, 17, 21]] = False
    assert_equals_dense(*build(words, [19, 3], rest=True, mask=mask))


@pytest.mark.parametrize("gamma", [None, 0, pytest.param(17, marks=pytest.mark.long)])
def test_buckets_of_any_width(gamma):
    assert_equals_dense(*build("uvw", [36], gamma=gamma))


@pytest.mark.long
@pytest.mark.parametrize("words", ["uv", "uvw", "rotary"])
def test_wide_vectors_come_in_several_tiles(words, monkeypatch):
    monkeypatch.setattr(launching, "_WIDEST", 16)
    assert_equals_dense(*build(words, [18], gamma=1, rank=20))


def test_sentences_beyond_what_kernels_can_count_are_refused():
    problem, arguments = build("uv", [3])
    longest = 2**31 // (problem.buckets * CHANNELS * RANK)
    problem = replace(problem, layout=replace(problem.layout, longest=longest))
    with refused("words"):
        by_kernels(*arguments, problem)
    longest = round((2**31 / CHANNELS) ** 0.5)
    problem = replace(problem, layout=replace(problem.layout, longest=longest), remembers=True)
    with refused("32,768 words"):
        by_kernels(*arguments, problem)


def pairs(problem):
    """(R, h, longest): which beliefs are about two words of a sentence."""
    there = problem.empty_beliefs().zero_().bool()
    for start, n in zip(
        problem.layout.starts.tolist(), problem.layout.lengths.tolist(), strict=True
    ):
        there[start : start + n, :, :n] = ~torch.eye(n, dtype=torch.bool, device=DEVICE)[:, None]
    return there


@pytest.mark.parametrize("step", [1.0, 0.6])
def test_tiles_draw_what_short_sentences_draw(step, monkeypatch):
    monkeypatch.setattr(short, "LONGEST", 128)
    problem, (q, u, v, _, _) = build("uv", [35, 3], rate=0.3)
    problem = replace(problem, step=step, remembers=True)
    a, b, y, z = (
        torch.einsum("xd,khrd->xkhr", x, weight).float().to(DEVICE)
        for x in (q, torch.randn_like(q))
        for weight in (u, v)
    )
    there = pairs(problem)
    old, d_beliefs = torch.rand(2, *there.shape, device=DEVICE)
    vectors = Vectors(a, b, None, None, old if step < 1 else None)

    def run(kernels):
        found, back = Contexts.empty(problem, vectors), Gradients.empty(problem, vectors)
        kernels.forward(problem, vectors, found)
        by_found = Contexts(y, z, torch.zeros_like(found.normaliser), d_beliefs)
        kernels.backward(problem, vectors, found.normaliser, by_found, back)
        contexts = (found.to_dependents, found.to_heads, found.normaliser, found.beliefs[there])
        by_old = [] if back.old is None else [back.old[there]]
        return [x.double() for x in (*contexts, back.dependents, back.heads, *by_old)]

    assert_close(run(tiled), run(short))


@pytest.mark.gpu  # Triton's interpreter cannot multiply bfloat16
@pytest.mark.parametrize("rank", [RANK, 128])
@pytest.mark.parametrize("by_length", [False, True])
@pytest.mark.parametrize("words", WORDS)
def test_half_precision_draws_the_same_in_both_directions(words, by_length, rank, monkeypatch):
    """In tiles only, or with short sentences by kernels of their own."""
    if by_length:
        monkeypatch.setattr(messages, "kernels_for", BY_LENGTH)
    problem, arguments = build(words, [100, 70, 40, 3], rate=0.3, rank=rank)
    for matrix in arguments[1:3]:
        if matrix is not None:
            matrix *= (RANK / rank) ** 0.25  # scores of the same size
    single = [None if x is None else x.float().to(DEVICE) for x in arguments]
    half = [None if x is None else x.bfloat16() for x in single[:3]] + single[3:]
    actual, expected = (
        results(by_kernels, problem, x, problem.layout.mask.cpu()) for x in (half, single)
    )
    assert_close(actual, expected, tolerance=0.03)
