"""Dense forms, norms, initial scales, and the buckets of distances."""

import pytest
import torch

from helpers.messages import refused
from helpers.models import WORDS, D, H, build
from probformer.crf.potentials import UV, UVW, Full, Global, Potentials, Root, Rotary, SharedUV
from probformer.crf.potentials.buckets import Buckets, band_from_matrix, matrix_from_band


@pytest.mark.parametrize("words", WORDS)
def test_norm_is_that_of_the_dense_tensor(words):
    potential = build(words).words
    gamma = potential.buckets.gamma
    offsets = [0] if gamma is None else [o for o in range(-gamma - 1, gamma + 2) if o]
    dense = torch.stack([potential.dense(offset) for offset in offsets])
    assert dense.shape == (potential.buckets.count, potential.channels, D, D)
    torch.testing.assert_close(potential.norm(), dense.norm(), rtol=1e-12, atol=0)


def test_norm_of_zero_has_a_gradient():
    potential = UV(D, H, 4)
    potential.U.data.zero_()
    potential.norm().backward()
    assert torch.isfinite(potential.U.grad).all()
    assert torch.isfinite(potential.V.grad).all()


def test_norms_and_dense_forms_of_root_and_globals():
    root, features = Root(D, H, 7), Global(D, H, 4, "all-dep", features=True)
    assert root.dense().shape == (H, D, 7)
    torch.testing.assert_close(root.norm(), root.dense().norm())
    assert features.dense().shape == (H, 4, D)
    assert Global(D, H, 4).dense().shape == (1, 4, D)
    torch.testing.assert_close(features.norm(), features.dense().norm())


def test_rotary_turns_by_the_offset():
    """R(δ) from its definition: the pair (l, l + r/2) turns by δ·10000^(−2l/r)."""
    potential = Rotary(D, H, 4).double()
    for offset in (-300, -1, 0, 2, 1000):
        rotation = torch.zeros(4, 4, dtype=torch.float64)
        for pair in range(2):
            angle = torch.tensor(offset * 10000 ** (-2 * pair / 4), dtype=torch.float64)
            i, j = pair, pair + 2
            rotation[i, i] = rotation[j, j] = angle.cos()
            rotation[i, j], rotation[j, i] = angle.sin(), -angle.sin()
        expected = potential.U.mT @ rotation @ potential.V
        torch.testing.assert_close(potential.dense(offset), expected)


@pytest.mark.parametrize(
    ("cls", "sizes", "std"),
    [
        (Full, (), 1.0),
        (UV, (64,), 64**-0.5),
        (UVW, (64,), 1 / 64),
        (SharedUV, (64,), 64**-0.5),
        (Rotary, (64,), 64**-0.5),
    ],
)
def test_initial_scale_of_t(cls, sizes, std):
    assert cls(64, 32, *sizes).dense(1).std().item() == pytest.approx(std, rel=0.05)


def test_initial_scale_of_parameters():
    assert UVW(64, 64, 64).W.std().item() == pytest.approx(64**-0.5, rel=0.05)
    assert SharedUV(64, 8, 64).D.std().item() == pytest.approx(1, rel=0.05)
    assert Root(64, 8, 64).T.std().item() == pytest.approx(1, rel=0.05)
    assert Global(64, 8, 64, "dep-split").B.std().item() == pytest.approx(64**-0.5, rel=0.05)


def test_buckets_are_the_papers():
    """Equation 10 for γ = 3."""
    of = Buckets(3).of
    offsets = [-9, -4, -3, -2, -1, 1, 2, 3, 4, 9]
    assert [of(x) for x in offsets] == [0, 0, 1, 2, 3, 4, 5, 6, 7, 7]
    assert Buckets(0).count == 2
    assert [Buckets(0).of(x) for x in (-5, -1, 1, 5)] == [0, 0, 1, 1]
    assert Buckets(None).count == 1
    for gamma in (1, 2, 8):
        near = Buckets(gamma).near
        assert [Buckets(gamma).of(-shift) for shift in near] == [*range(1, 2 * gamma + 1)]


@pytest.mark.parametrize("gamma", [0, 1, 3, 8])
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_bands_and_matrices(n, gamma):
    band = torch.randn(2, n, 2 * gamma + 1)
    matrix = matrix_from_band(band)
    back = band_from_matrix(matrix, gamma)
    for i in range(n):
        for j in range(n):
            inside = abs(i - j) <= gamma
            expected = band[:, i, j - i + gamma] if inside else torch.zeros(2)
            assert torch.equal(matrix[:, i, j], expected)
        for s in range(2 * gamma + 1):
            inside = 0 <= i + s - gamma < n
            assert torch.equal(back[:, i, s], band[:, i, s] if inside else torch.zeros(2))


def test_sizes_must_fit_together():
    with refused("root", "(5, 3)"):
        Potentials(UV(D, H, 4), root=Root(D + 1, H, 7))
    with refused("globals"):
        Potentials(UV(D, H, 4), globals=Global(D, H + 1, 4, "dep-split"))
