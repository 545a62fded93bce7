"""A transformer's kernels give what PyTorch gives: on a GPU, or else in Triton's interpreter."""

import pytest
import torch
from torch import nn

pytest.importorskip("triton")

from probformer.config import TransformerSettings
from probformer.kernels.transformer.attention import attend
from probformer.kernels.transformer.residual import add_and_normalise
from probformer.models import fused_layers
from probformer.models.fused_layers import rounded_together
from probformer.models.transformer import Transformer
from probformer.packing import Packing

pytestmark = pytest.mark.kernels

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LENGTHS = (40, 3, 0, 1, 17, 33)
"""Of sentences for both kinds of blocks; one is missing."""
PLACES = 103


def packing_of(lengths=LENGTHS, longest=64):
    sizes = torch.tensor(lengths, dtype=torch.int32)
    starts = (sizes.cumsum(0) - sizes).to(torch.int32)
    return Packing(starts.to(DEVICE), sizes.to(DEVICE), longest)


def factor_of(attention, rate, seed):
    """What dropout multiplies attention with, seen through values that tell words apart."""
    packing, places, longest = packing_of(), PLACES, max(LENGTHS)
    projected = torch.zeros(places, 3, 2, 64, device=DEVICE)
    position = packing.positions(places).long()
    projected[torch.arange(places), 2, :, position] = 1.0
    found = attention(projected, packing, rate, seed)[..., :longest]
    lengths = torch.tensor(LENGTHS, device=DEVICE)
    number = torch.searchsorted(packing.starts, torch.arange(places, device=DEVICE), right=True) - 1
    return found * lengths[number][:, None, None]  # all are equal before


def plain_attention(projected, packing, factor=None):
    """(R, heads, w), sentence by sentence."""
    rows = torch.zeros_like(projected[:, 0])
    for start, length in zip(packing.starts.tolist(), packing.lengths.tolist(), strict=True):
        at = slice(start, start + length)
        q, k, v = (projected[at, part].transpose(0, 1) for part in (0, 1, -1))
        p = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        if factor is not None:
            p = p * factor[at, :, :length].transpose(0, 1)
        rows[at] = (p @ v).transpose(0, 1)
    return rows


@pytest.mark.parametrize("width", [4, 16, 136])
@pytest.mark.parametrize("parts", [2, 3])
def test_attention(parts, width):
    packing = packing_of()
    projected = torch.randn(PLACES, parts, 2, width, device=DEVICE, requires_grad=True)
    exact = projected.detach().double().requires_grad_()
    weight = torch.randn(PLACES, 2, width, device=DEVICE)
    found, expected = attend(projected, packing, 0.0, None), plain_attention(exact, packing)
    assert found[sum(LENGTHS) :].eq(0).all()
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-5)
    (by,) = torch.autograd.grad((found * weight).sum(), [projected])
    (wanted,) = torch.autograd.grad((expected * weight).sum(), [exact])
    assert by[sum(LENGTHS) :].eq(0).all()
    torch.testing.assert_close(by, wanted.float(), rtol=1e-4, atol=1e-4)


def test_attention_of_short_sentences_only():
    packing = packing_of((7, 16, 2), longest=16)
    projected = torch.randn(128, 3, 1, 8, device=DEVICE)
    found, expected = attend(projected, packing, 0.0, None), plain_attention(projected, packing)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_attention_drops_heads_alike_forth_and_back():
    packing, seed = packing_of(), torch.tensor([7], device=DEVICE)
    factor = factor_of(attend, 0.25, seed)
    inside = (
        torch.arange(max(LENGTHS), device=DEVICE) < factor_of(attend, 0.0, None).sum(-1)[..., None]
    )
    kept = factor[inside]
    assert torch.isclose(kept, kept.new_tensor(1 / 0.75)).logical_or(kept == 0).all()
    assert (kept == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert not torch.equal(factor[:, 0], factor[:, 1])
    projected = torch.randn(PLACES, 3, 2, 64, device=DEVICE, requires_grad=True)
    found, expected = (
        attend(projected, packing, 0.25, seed),
        plain_attention(projected, packing, factor),
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    weight = torch.randn_like(found)
    (by,) = torch.autograd.grad((found * weight).sum(), [projected])
    (wanted,) = torch.autograd.grad((expected * weight).sum(), [projected])
    torch.testing.assert_close(by, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("rows", "d"), [(9, 12), (1200, 16)])
def test_residual_connections(rows, d, biased):
    norm = nn.LayerNorm(d, device=DEVICE)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x, update, first, second = torch.randn(4, rows, d, device=DEVICE)
    bias = torch.randn(d, device=DEVICE, requires_grad=True) if biased else None
    given = [x.requires_grad_(), update.requires_grad_(), *norm.parameters()]
    given += [] if bias is None else [bias]
    y, rounded = add_and_normalise(x, update, bias, norm, 0.0, None)
    expected = norm(x + update + (0 if bias is None else bias))
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(rounded, expected)
    found = torch.autograd.grad((y * first + rounded * second).sum(), given)
    wanted = torch.autograd.grad((expected * (first + second)).sum(), given)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_residual_connections_drop_alike_forth_and_back():
    rows, d, rate, seed = 1100, 8, 0.25, torch.tensor([3], device=DEVICE)
    norm = nn.LayerNorm(d, device=DEVICE)
    x, update, weight = torch.randn(3, rows, d, device=DEVICE)
    bias = torch.randn(d, device=DEVICE, requires_grad=True)
    given = [x.requires_grad_(), update.requires_grad_(), bias, *norm.parameters()]
    y, _ = add_and_normalise(x, update, bias, norm, rate, seed)
    (d_x, d_update, *rest) = torch.autograd.grad((y * weight).sum(), given)
    factor = d_update / d_x
    assert torch.isclose(factor, factor.new_tensor(4 / 3)).logical_or(factor == 0).all()
    assert (factor == 0).float().mean().item() == pytest.approx(rate, abs=0.03)
    expected = norm(x + (update + bias) * factor.round(decimals=5).detach())
    torch.testing.assert_close(y, expected, rtol=1e-3, atol=1e-3)
    wanted = torch.autograd.grad((expected * weight).sum(), given)
    torch.testing.assert_close([d_x, d_update, *rest], [*wanted], rtol=1e-3, atol=1e-3)


def test_matrices_are_rounded_together():
    a, b, c = (torch.randn(3, 4, device=DEVICE, requires_grad=True) for _ in range(3))
    bias = torch.randn(5, device=DEVICE, requires_grad=True)
    stacked, single = rounded_together([(a, b, c), (bias,)], torch.bfloat16)
    assert torch.equal(stacked, torch.cat([a, b, c]).bfloat16())
    assert torch.equal(single, bias.bfloat16())
    first, second = torch.randn_like(stacked), torch.randn_like(single)
    loss = (stacked * first).sum() + (single * second).sum()
    found = torch.autograd.grad(loss, [a, b, c, bias])
    wanted = [*first.float().split(3), second.float()]
    assert all(torch.equal(x, y) for x, y in zip(found, wanted, strict=True))


KINDS = {
    "plain": {},
    "cls": {"readout": "cls"},
    "universal and tied": {"universal": True, "tied": True},
}


def run(model, packing, kernels, monkeypatch, half=False):
    """What a row of words becomes, and its gradients."""
    monkeypatch.setattr(fused_layers, "kernels_run_on", lambda device: kernels)
    torch.manual_seed(5)
    words = torch.randint(30, (1, PLACES), device=DEVICE)
    mask = torch.arange(PLACES, device=DEVICE)[None] < sum(LENGTHS)
    first = packing.starts[packing.lengths > 0].long()
    if model.settings.readout == "cls":
        mask[0, first] = False
    with torch.autocast(DEVICE, torch.bfloat16, enabled=half):
        posterior = model(words, mask, attention=False, packing=packing)
    outputs = [posterior.z_scores]
    if posterior.root_scores is not None:
        outputs.append(posterior.root_scores[packing.lengths > 0])
    loss = sum((x * torch.randn_like(x)).sum() for x in outputs)
    return [*outputs, *torch.autograd.grad(loss, [*model.parameters()])]


@pytest.mark.parametrize("kind", KINDS)
def test_fused_layers_are_plain_layers(kind, monkeypatch):
    sizes = {"width": 12, "layers": 2, "heads": 2, "head_width": 4, "feed_forward": 8}
    settings = TransformerSettings(**sizes, max_length=64, dropout=0.1, **KINDS[kind])
    model, packing = Transformer(30, settings).to(DEVICE).eval(), packing_of()
    found, expected = (run(model, packing, kernels, monkeypatch) for kernels in (True, False))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_dropout_of_fused_layers_is_new_each_time(monkeypatch):
    settings = TransformerSettings(
        width=12, layers=2, heads=2, head_width=4, feed_forward=8, dropout=0.3, input_dropout=0.0
    )
    model, packing = Transformer(30, settings).to(DEVICE), packing_of()
    monkeypatch.setattr(fused_layers, "kernels_run_on", lambda device: True)
    words = torch.randint(30, (1, PLACES), device=DEVICE)
    mask = (torch.arange(PLACES, device=DEVICE) < packing.lengths.sum()).unsqueeze(0)
    seen = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        seen.append(model(words, mask, attention=False, packing=packing).z_scores)
    assert torch.equal(seen[0], seen[1])
    assert not torch.isclose(seen[0], seen[2])[mask].any(-1).all()


@pytest.mark.gpu  # Triton's interpreter cannot multiply bfloat16
@pytest.mark.parametrize("longest", [64, 128, 256])
@pytest.mark.parametrize("head_width", [16, 256])
def test_half_precision_is_no_worse_than_plain_layers(head_width, longest, monkeypatch):
    """Sentences beyond those that kernels know are given to PyTorch's."""
    sizes = {"width": 64, "layers": 2, "heads": 3, "head_width": head_width, "feed_forward": 128}
    packing, distances = packing_of(longest=longest), []
    for seed in range(4):
        torch.manual_seed(seed)
        model = Transformer(30, TransformerSettings(**sizes, max_length=64)).to(DEVICE).eval()
        truth = run(model, packing, False, monkeypatch)
        pair = []
        for kernels in (True, False):
            found = run(model, packing, kernels, monkeypatch, half=True)
            parts = zip(found, truth, strict=True)
            pair.append(sum(((a - b).norm() / b.norm()).item() for a, b in parts))
        distances.append(pair)
    with_kernels, plain = map(sum, zip(*distances, strict=True))
    assert with_kernels <= 1.2 * plain
