"""With step sizes below one, kernels give what the plain path gives, gradients included."""

import pytest

from helpers.kernel_runs import (
    assert_close,
    assert_packed_sentences_equal_padded_ones,
    gradients,
    parts,
    run,
)
from helpers.models import build, random_batch
from probformer import Inference, mean_field
from probformer.crf import fused
from probformer.crf.potentials import UV, as_potentials

pytest.importorskip("triton", reason="needs Triton")
from probformer.kernels import launching
from probformer.kernels.crf import messages, short, tiled

pytestmark = pytest.mark.kernels

THRICE = Inference(iterations=3, lambda_h=0.7, step_h=0.6)
"""The first heads are only remembered, the second ones mixed, too, the last ones only mixed."""
DECAY = Inference(iterations=3, lambda_h=0.7, step_z=0.9, step_decay=True)
WHOLE_DECAY = Inference(iterations=3, lambda_h=0.7, step_decay=True)
LENGTHS = (19, 3, 1)
"""One longer than a tile, one of a word that has no head."""


@pytest.fixture(autouse=True)
def _kernels_everywhere(monkeypatch):
    monkeypatch.setattr(fused, "kernels_run_on", lambda device: True)


@pytest.fixture(params=["short", "tiled"])
def kernels(request, monkeypatch):
    """All sentences whole in a block, of one of two sizes; or all of them in small tiles."""
    chosen = {"short": short, "tiled": tiled}[request.param]
    monkeypatch.setattr(messages, "kernels_for", lambda problem, dtype: [(chosen, problem)])
    monkeypatch.setattr(short, "LONGEST", 128)
    monkeypatch.setattr(tiled, "EXACT", {"M": 16, "N": 16, "num_warps": 4, "num_stages": 1})


def assert_equals_the_plain_path(potentials, unary, mask, inference):
    """In float64, as a trace makes it."""
    unary = unary.requires_grad_()
    expected = parts(mean_field(unary, mask, potentials, inference, trace=True))
    expected_gradients = gradients(expected, [unary, *potentials.parameters()])
    actual, actual_gradients = run(potentials, unary, mask, inference)
    assert_close(actual, expected)
    assert_close(actual_gradients, expected_gradients)


@pytest.mark.parametrize(
    ("words", "inference"),
    [
        ("rotary", WHOLE_DECAY),
        pytest.param("full", THRICE, marks=pytest.mark.long),
        pytest.param("uv", THRICE, marks=pytest.mark.long),
        pytest.param("uv", DECAY, marks=pytest.mark.long),
        pytest.param("uvw", THRICE, marks=pytest.mark.long),
        pytest.param("uv-blind", THRICE, marks=pytest.mark.long),
        pytest.param("uv-gamma-8", THRICE, marks=pytest.mark.long),
        pytest.param("shared-uv", THRICE, marks=pytest.mark.long),
    ],
)
def test_words(kernels, words, inference):
    assert_equals_the_plain_path(build(words), *random_batch(LENGTHS), inference)


@pytest.mark.parametrize(
    ("words", "extras", "inference"),
    [
        ("rotary", "root-all-dep", THRICE),
        pytest.param("uv", "root-all-dep", THRICE, marks=pytest.mark.long),
        pytest.param("uv", "single-split", DECAY, marks=pytest.mark.long),
        pytest.param("rotary", "root-dep-split", THRICE, marks=pytest.mark.long),
        pytest.param("full", "all-dep-features", DECAY, marks=pytest.mark.long),
    ],
)
def test_other_heads(kernels, words, extras, inference):
    assert_equals_the_plain_path(build(words, extras), *random_batch((18, 1)), inference)


@pytest.mark.long
def test_holes_in_the_mask(kernels):
    unary, mask = random_batch((18, 18))
    mask[0, 2] = mask[1, 0] = mask[1, 17] = False
    assert_equals_the_plain_path(build("uv", "root"), unary, mask, THRICE)


def test_wide_vectors_come_in_several_tiles(kernels, monkeypatch):
    monkeypatch.setattr(launching, "_WIDEST", 16)
    potentials = as_potentials(UV(6, 2, rank=20, gamma=1)).double()
    assert_equals_the_plain_path(potentials, *random_batch((18,), 6), THRICE)


@pytest.mark.parametrize(
    ("words", "extras"),
    [
        ("rotary", "single-split"),
        pytest.param("full", "plain", marks=pytest.mark.long),
        pytest.param("uv", "all-dep", marks=pytest.mark.long),
    ],
)
def test_packed_sentences(kernels, words, extras):
    assert_packed_sentences_equal_padded_ones(words, extras, THRICE, longest=36, tail=40)


@pytest.mark.long
def test_short_and_long_sentences_by_kernels_of_their_own():
    """In float32 a block has room for 32 words."""
    assert_packed_sentences_equal_padded_ones("uv", "all-dep", THRICE, longest=36, tail=40)
