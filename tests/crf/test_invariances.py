"""What must not matter: padding, neighbours in the batch, and without distances word order."""

import pytest
import torch

from helpers.models import EXTRAS, WORDS, build, random_batch
from probformer import Inference, mean_field
from probformer.crf.normalisers import NORMALISERS

FIELDS = ("z_scores", "z_marginals")


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("words", ["uv", "full", "rotary"])
def test_a_batch_is_its_sentences(words, extras, asynchronous):
    potentials, lengths = build(words, extras), (7, 4, 2, 1, 0)
    inference = Inference(iterations=3, asynchronous=asynchronous)
    unary, mask = random_batch(lengths)
    unary[~mask] = torch.nan  # must not be read
    post = mean_field(unary, mask, potentials, inference)
    assert torch.isfinite(post.z_scores).all()
    assert not post.z_scores[~mask].any()
    assert not post.z_marginals[~mask].any()
    for b, length in enumerate(lengths):
        alone = mean_field(
            unary[b : b + 1, :length], mask[b : b + 1, :length], potentials, inference
        )
        for name in FIELDS:
            actual, expected = getattr(post, name)[b, :length], getattr(alone, name)[0]
            torch.testing.assert_close(actual, expected)
        heads = post.head_marginals[b]
        torch.testing.assert_close(heads[:, :length, :length], alone.head_marginals[0])
        assert not heads[:, :, length:].any()
        assert not heads[:, length:].any()
        if post.root_scores is not None:
            torch.testing.assert_close(post.root_scores[b], alone.root_scores[0])


@pytest.mark.parametrize("words", WORDS)
def test_padding_may_stand_in_front(words):
    potentials, (unary, mask) = build(words, "root"), random_batch((4, 4))
    right = mean_field(
        torch.cat([unary, unary.new_zeros(2, 3, 5)], 1),
        torch.cat([mask, mask.new_zeros(2, 3)], 1),
        potentials,
    )
    left = mean_field(
        torch.cat([unary.new_zeros(2, 3, 5), unary], 1),
        torch.cat([mask.new_zeros(2, 3), mask], 1),
        potentials,
    )
    torch.testing.assert_close(right.z_scores[:, :4], left.z_scores[:, 3:])
    torch.testing.assert_close(
        right.head_marginals[:, :, :4, :4], left.head_marginals[:, :, 3:, 3:]
    )


def test_the_order_of_a_batch_does_not_matter():
    potentials, (unary, mask) = build("shared-uv", "root-all-dep"), random_batch((6, 3, 5, 1))
    order = torch.tensor([2, 0, 3, 1])
    first = mean_field(unary, mask, potentials)
    second = mean_field(unary[order], mask[order], potentials)
    torch.testing.assert_close(first.z_scores[order], second.z_scores)
    torch.testing.assert_close(first.head_marginals[order], second.head_marginals)


@pytest.mark.parametrize("extras", [name for name in EXTRAS if "idle" not in name])
@pytest.mark.parametrize("words", ["full-blind", "uv-blind", "uvw-blind", "shared-uv-blind"])
def test_without_distances_word_order_does_not_matter(words, extras):
    potentials, (unary, mask) = build(words, extras), random_batch((6,))
    order = torch.randperm(6)
    first = mean_field(unary, mask, potentials)
    second = mean_field(unary[:, order], mask, potentials)
    torch.testing.assert_close(first.z_scores[:, order], second.z_scores)
    heads = first.head_marginals[:, :, order][:, :, :, order]
    torch.testing.assert_close(heads, second.head_marginals)


@pytest.mark.parametrize("words", ["full-direction", "uv", "rotary"])
def test_with_distances_word_order_matters(words):
    potentials, (unary, mask) = build(words), random_batch((6,))
    flipped = mean_field(unary.flip(1), mask, potentials).z_scores.flip(1)
    assert not torch.allclose(mean_field(unary, mask, potentials).z_scores, flipped, atol=1e-3)


@pytest.mark.parametrize("words", WORDS)
def test_a_lone_word_keeps_its_scores(words):
    unary = torch.randn(1, 1, 5, dtype=torch.float64)
    mask = torch.ones(1, 1, dtype=torch.bool)
    post = mean_field(unary, mask, build(words), Inference(lambda_z=2.0))
    torch.testing.assert_close(post.z_scores, unary / 2)
    assert not post.head_marginals.any()
    with_root = mean_field(unary, mask, build(words, "root"))
    torch.testing.assert_close(
        with_root.root_head_marginals, torch.ones_like(with_root.root_head_marginals)
    )


@pytest.mark.parametrize("words", ["uv", "rotary"])
def test_long_sentences_are_nothing_special(words):
    potentials, (unary, mask) = build(words), random_batch((700, 2))
    post = mean_field(unary, mask, potentials, Inference(iterations=2))
    alone = mean_field(unary[1:, :2], mask[1:, :2], potentials, Inference(iterations=2))
    assert torch.isfinite(post.z_scores).all()
    torch.testing.assert_close(post.z_scores[1, :2], alone.z_scores[0])
    rows = post.head_marginals[0].sum(-1)
    torch.testing.assert_close(rows, torch.ones_like(rows))


@pytest.mark.parametrize("tolerance", [None, 0.1])
@pytest.mark.parametrize("extras", EXTRAS)
def test_empty_batches_and_sentences(extras, tolerance):
    potentials, inference = build("uv", extras), Inference(iterations=3, tolerance=tolerance)
    for size in ((0, 3), (2, 0), (0, 0)):
        unary = torch.zeros(*size, 5, dtype=torch.float64)
        post = mean_field(unary, torch.zeros(size, dtype=torch.bool), potentials, inference)
        assert post.z_scores.shape == (*size, 5)


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_scores_of_any_size_give_distributions(scale, normaliser):
    potentials, (unary, mask) = build("full", "root-all-dep", torch.float32), random_batch()
    unary = unary.float() * scale
    inference = Inference(normaliser_z=normaliser, normaliser_h=normaliser)
    post = mean_field(unary, mask, potentials, inference)
    assert torch.isfinite(post.z_scores).all()
    heads = post.head_marginals.sum(-1) + post.root_head_marginals + post.global_marginals.sum(-1)
    torch.testing.assert_close(heads, mask.float()[:, None].expand_as(heads))
