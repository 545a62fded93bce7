"""On a CUDA device the same numbers come out, and a training step can be captured in a graph."""

import pytest
import torch

from helpers.models import EXTRAS, WORDS, build, random_batch
from probformer import Encoder, Inference, mean_field
from probformer.config import EncoderSettings, RotarySettings, TransformerSettings, UVSettings
from probformer.crf.structures import ProjectiveTrees, SpanningTrees
from probformer.models.transformer_layers import Attention

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("words", WORDS)
def test_devices_agree(words, extras):
    potentials, (unary, mask) = build(words, extras), random_batch((7, 4, 2, 1, 0))
    expected = mean_field(unary, mask, potentials, Inference(iterations=3))
    actual = mean_field(unary.cuda(), mask.cuda(), potentials.cuda(), Inference(iterations=3))
    torch.testing.assert_close(actual.z_scores.cpu(), expected.z_scores)
    torch.testing.assert_close(actual.head_marginals.cpu(), expected.head_marginals)


@pytest.mark.parametrize("lengths", [(7, 4, 2, 1, 0), (6,), (70, 3)])
@pytest.mark.parametrize("extras", ["plain", "root-all-dep"])
@pytest.mark.parametrize("words", ["full", "uv", "uvw", "shared-uv", "rotary"])
def test_devices_agree_where_heads_are_not_asked_for(words, extras, lengths):
    potentials, (unary, mask) = build(words, extras).float(), random_batch(lengths)
    unary, inference = unary.float(), Inference(iterations=3)
    expected = mean_field(unary, mask, potentials, inference, attention=False)
    actual = mean_field(unary.cuda(), mask.cuda(), potentials.cuda(), inference, attention=False)
    torch.testing.assert_close(actual.z_scores.cpu(), expected.z_scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 40, 100])
@pytest.mark.parametrize("structure", [SpanningTrees(), SpanningTrees(False), ProjectiveTrees()])
def test_devices_agree_on_trees(structure, n):
    words = torch.arange(n) < torch.tensor([n, max(1, n // 2)]).unsqueeze(1)
    pairs = words.unsqueeze(1) & words.unsqueeze(2) & ~torch.eye(n, dtype=torch.bool)
    forbidden = ~torch.cat([pairs, words.unsqueeze(2)], -1).unsqueeze(1)
    scores, weights, found = 20 * torch.randn(2, 3, n, n + 1), torch.randn(2, 3, n, n + 1), []
    for device in ("cpu", "cuda"):
        given = scores.to(device).requires_grad_()
        marginals = structure.marginals(given, forbidden.to(device))
        (slope,) = torch.autograd.grad((marginals * weights.to(device)).sum(), given)
        log_z = structure.log_partition(given.detach(), forbidden.to(device))
        found.append([x.detach().cpu() for x in (marginals, slope, log_z)])
    for expected, actual in zip(*found, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("heads", ["tree", "projective"])
def test_devices_agree_on_inference_with_trees(heads):
    potentials, (unary, mask) = build("uv", "root"), random_batch((7, 4, 2, 1, 0))
    inference = Inference(iterations=3, heads=heads)
    expected = mean_field(unary, mask, potentials, inference)
    actual = mean_field(unary.cuda(), mask.cuda(), potentials.cuda(), inference)
    torch.testing.assert_close(actual.z_scores.cpu(), expected.z_scores)
    torch.testing.assert_close(actual.head_marginals.cpu(), expected.head_marginals)


@pytest.mark.parametrize("heads", ["independent", "tree", "projective"])
@pytest.mark.parametrize("potential", [UVSettings(rank=4), RotarySettings(rank=4)])
def test_a_training_step_can_be_captured(potential, heads):
    torch.use_deterministic_algorithms(False)
    inference = Inference(heads=heads)
    settings = EncoderSettings(labels=8, channels=2, potential=potential, inference=inference)
    encoder = Encoder(9, settings).cuda()
    words = torch.randint(9, (4, 6), device="cuda")
    mask = torch.ones(4, 6, dtype=torch.bool, device="cuda")

    def step():
        for parameter in encoder.parameters():
            parameter.grad = None
        encoder(words, mask).z_scores.square().sum().backward()

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    expected = encoder.word_scores.weight.grad.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    encoder.word_scores.weight.grad.zero_()
    graph.replay()
    torch.testing.assert_close(encoder.word_scores.weight.grad, expected)


@pytest.mark.parametrize("n", [24, 64, 128])
def test_gradients_of_attention_are_numbers_where_all_scores_are_low(n):
    settings = TransformerSettings(width=16, layers=1, heads=1, head_width=16)
    attention = Attention(settings).cuda()
    x = torch.randn(2, n, 16, device="cuda") * 0.1
    x[..., 0] = 1.0
    with torch.no_grad():  # each score about -120: its exponential is no float32
        attention.query[0, 0], attention.key[0, 0] = 20.0, -24.0
    mask = torch.ones(2, n, dtype=torch.bool, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        attention(x, mask, weights=False)[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in attention.parameters())
