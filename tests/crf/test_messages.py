"""Messages are gradients of the energy, for every potential and extra variable."""

import pytest
import torch

from helpers.messages import refused
from helpers.models import EXTRAS, WORDS, build, random_batch
from probformer import Inference, mean_field, reference
from probformer.crf.energy import energy, free_energy, marginals_by_variable
from probformer.crf.potentials.buckets import Buckets
from probformer.crf.potentials.pairwise import Pairs
from probformer.testing import assert_messages_are_gradients, reference_sentence


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("words", WORDS)
def test_words(words, n):
    assert_messages_are_gradients(build(words), n)


@pytest.mark.parametrize("words", ["uv", "rotary", "full"])
@pytest.mark.parametrize("extras", EXTRAS)
def test_extras(words, extras):
    assert_messages_are_gradients(build(words, extras))


@pytest.mark.parametrize("words", ["uv", "full-one-channel", "shared-uv", "uvw-blind"])
def test_gradients_and_their_gradients(words):
    """Those of scores and contexts are written out by hand."""
    potentials, (unary, mask) = build(words), random_batch((4, 1))
    inference = Inference(iterations=1)

    def scores(unary, *_):
        return mean_field(unary, mask, potentials, inference).z_scores

    inputs = (unary.requires_grad_(), *potentials.parameters())
    assert torch.autograd.gradcheck(scores, inputs)
    assert torch.autograd.gradgradcheck(scores, inputs[:1])


@pytest.mark.parametrize("shared", [False, True])
def test_a_projection_may_have_any_layout(shared):
    buckets = Buckets(2)
    a = torch.randn(3, 2, buckets.count, 4, 5).permute(4, 3, 2, 0, 1).requires_grad_()
    b = torch.randn(4, 5, 1 if shared else buckets.count, 2, 3).permute(1, 0, 2, 4, 3)
    p, found = torch.rand(5, 3, 4, 4), []
    for x, y in ((a, b), (a.contiguous(), b.contiguous())):
        contexts = Pairs.of(x, y, buckets).contexts(p)
        found.append((*contexts, *torch.autograd.grad(contexts[1].square().sum(), a)))
    for actual, expected in zip(*found, strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("extras", EXTRAS)
def test_energies_equal_the_oracle(extras):
    potentials = build("uv", extras)
    unary, mask = random_batch()
    unary[~mask] = torch.nan  # must not be read
    post = mean_field(unary, mask, potentials)
    e = energy(unary, mask, potentials, post)
    f = free_energy(unary, mask, potentials, post, 1.5, 0.3)
    labels, heads = marginals_by_variable(potentials, post)
    for b, length in enumerate(mask.sum(1).tolist()):
        crf = reference_sentence(unary[b, :length], potentials)
        symbols = [variable.symbol for variable in potentials.label_variables]
        q = oracle_marginals(crf, symbols, labels, heads, b, mask.shape[1])
        torch.testing.assert_close(e[b], reference.energy(crf, q), rtol=1e-10, atol=1e-10)
        expected = reference.free_energy(crf, q, 1.5, 0.3)
        torch.testing.assert_close(f[b], expected, rtol=1e-10, atol=1e-10)


def test_the_posterior_of_another_model_has_no_energy():
    unary, mask = random_batch()
    post = mean_field(unary, mask, build("uv", "root"))
    with refused("posterior"):
        energy(unary, mask, build("uv"), post)


def oracle_marginals(crf, symbols, labels, heads, b, n):
    """The distributions of one sentence of a batch, as the oracle names them."""
    q = {}
    keep = [*range(crf.n), *range(n, heads[0].shape[-1])]  # columns of words, without padding
    for variable in crf.labels + crf.heads:
        match variable:
            case ("Z", i):
                q[variable] = labels[0][b, i]
            case (symbol,):  # of the whole sentence
                q[variable] = labels[symbols.index(symbol)][b]
            case ("H", c, i) if crf.labels_in(c) > 1:
                q[variable] = heads[1][b, :, i, keep].mT.flatten()
            case ("H", c, i):
                c -= crf.arc_labels is not None and c > crf.arc_labels[0]
                q[variable] = heads[0][b, c, i, keep]
            case ("G", c, i):
                q[variable] = heads[1][b, c, i]
    return q
