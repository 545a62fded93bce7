"""The transformer baselines against PyTorch's own layers, and against loops."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from helpers.messages import refused
from probformer import Transformer
from probformer.config import TransformerSettings
from probformer.models.transformer import sinusoids
from probformer.models.transformer_layers import Attention

SMALL = TransformerSettings(width=12, layers=2, heads=3, head_width=4, feed_forward=20)
VARIANTS = {
    "paper": SMALL,
    "pre-norm": replace(SMALL, norm="pre"),
    "sinusoidal": replace(SMALL, positions="sinusoidal"),
    "relative": replace(SMALL, positions="none", relative=2),
    "relative-values": replace(SMALL, positions="none", relative=2, relative_values=True),
    "universal": replace(SMALL, universal=True),
    "tied": replace(SMALL, tied=True),
    "free-width": replace(SMALL, head_width=7),
}


def batch(lengths=(6, 3, 1), vocabulary=9):
    n = max(lengths)
    mask = torch.arange(n) < torch.tensor(lengths)[:, None]
    return torch.randint(vocabulary, mask.shape), mask


def build(name):
    return Transformer(9, VARIANTS[name]).double().eval()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_layers_equal_pytorchs(norm):
    settings = replace(SMALL, norm=norm, positions="none")
    model = Transformer(9, settings).double().eval()
    for module in model.modules():  # away from the ones and zeros of the initialisation
        if isinstance(module, nn.LayerNorm | nn.Linear):
            nn.init.normal_(module.bias)
    words, mask = batch()
    x = model.words(words) * 12**0.5
    for layer in model.layers:
        oracle = nn.TransformerEncoderLayer(
            12, 3, 20, dropout=0.0, batch_first=True, norm_first=norm == "pre"
        ).double()
        attention = layer.attention
        oracle.self_attn.in_proj_weight.data = torch.cat(
            [attention.query, attention.key, attention.value]
        )
        oracle.self_attn.in_proj_bias.data.zero_()
        oracle.self_attn.out_proj.weight.data = attention.output.T
        oracle.self_attn.out_proj.bias.data.zero_()
        oracle.linear1, oracle.linear2 = layer.feed_forward[0], layer.feed_forward[2]
        oracle.norm1, oracle.norm2 = layer.attention_norm, layer.feed_forward_norm
        x = oracle.train()(x, src_key_padding_mask=~mask)
    expected = model.final_norm(x)
    torch.testing.assert_close(model(words, mask).z_scores[mask], expected[mask])


@pytest.mark.parametrize(
    ("words", "scale", "deviation"),
    [("scaled", 64**0.5, 1.0), ("normal", 1.0, 1.0), ("xavier", 1.0, (2 / (500 + 64)) ** 0.5)],
)
def test_how_words_come_in(words, scale, deviation):
    model = Transformer(500, TransformerSettings(width=64, positions="none", words=words))
    index = torch.arange(500).unsqueeze(0)
    seen = model.embed(index)
    torch.testing.assert_close(seen[0], model.words.weight * scale)
    assert seen.std().item() == pytest.approx(deviation, rel=0.02)


def test_how_matrices_start_as_published():
    """Xavier's rule of PyTorch, for the tensor of all heads."""
    settings = TransformerSettings(width=64, heads=6, head_width=32, relative=40, layers=1)
    torch.manual_seed(0)
    small, xavier = (
        Transformer(9, replace(settings, matrices=m)).layers[0] for m in ("published", "xavier")
    )
    tensors = {name: torch.empty(6, 64, 32) for name in ("query", "key", "value")}
    tensors["output"] = torch.empty(6, 32, 64)
    for name, tensor in tensors.items():
        deviation = nn.init.xavier_normal_(tensor).std().item()
        assert getattr(small.attention, name).std().item() == pytest.approx(deviation, rel=0.05)
        assert getattr(xavier.attention, name).std().item() > 2 * deviation
    assert small.attention.key_offsets.table.std().item() == pytest.approx(1.0, rel=0.05)
    assert xavier.attention.key_offsets.table.std().item() == pytest.approx(32**-0.5, rel=0.05)
    for index in (0, 2):
        assert small.feed_forward[index].bias.any()
        assert not xavier.feed_forward[index].bias.any()


@pytest.mark.parametrize("values", [False, True])
def test_relative_positions_equal_shaws_equations(values):
    settings = replace(SMALL, relative=2, relative_values=values)
    attention, n = Attention(settings).double(), 6
    x, mask = torch.randn(1, n, 12, dtype=torch.float64), torch.ones(1, n, dtype=torch.bool)
    actual, weights = attention(x, mask, weights=True)
    expected = torch.zeros(n, 12, dtype=torch.float64)
    for head in range(3):
        rows = slice(4 * head, 4 * head + 4)
        q, k, v = (x[0] @ m[rows].T for m in (attention.query, attention.key, attention.value))
        e = torch.zeros(n, n, dtype=torch.float64)
        for i in range(n):
            for j in range(n):
                a = attention.key_offsets.table[max(-2, min(2, i - j)) + 2]
                e[i, j] = q[i] @ (k[j] + a) / math.sqrt(4)
        alpha = e.softmax(-1)
        torch.testing.assert_close(weights[0, head], alpha)
        for i in range(n):
            z = torch.zeros(4, dtype=torch.float64)
            for j in range(n):
                z = z + alpha[i, j] * v[j]
                if values:
                    offset = max(-2, min(2, i - j)) + 2
                    z = z + alpha[i, j] * attention.value_offsets.table[offset]
            expected[i] = expected[i] + z @ attention.output[rows]
    torch.testing.assert_close(actual[0], expected)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_batch_is_its_sentences(name):
    model, lengths = build(name), (6, 3, 1, 0)
    words, mask = batch(lengths)
    post = model(words, mask)
    assert torch.isfinite(post.z_scores).all()
    assert not post.z_scores[~mask].any()
    assert post.head_marginals.shape == (4, 3, 6, 6)
    rows = post.head_marginals.sum(-1)
    torch.testing.assert_close(rows, mask.double()[:, None].expand_as(rows))
    for b, length in enumerate(lengths[:3]):
        alone = model(words[b : b + 1, :length], mask[b : b + 1, :length])
        torch.testing.assert_close(post.z_scores[b, :length], alone.z_scores[0])
        heads = post.head_marginals[b, :, :length, :length]
        torch.testing.assert_close(heads, alone.head_marginals[0])


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_are_finite_and_reach_everything(name):
    model, (words, mask) = build(name), batch((6, 3, 1, 0))
    model(words, mask).z_scores.pow(3).sum().backward()
    for parameter_name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all(), parameter_name
        assert parameter.grad.any(), parameter_name


@pytest.mark.parametrize("name", VARIANTS)
def test_without_weights_the_result_is_the_same(name):
    model, (words, mask) = build(name), batch()
    fused = model(words, mask, attention=False)
    torch.testing.assert_close(fused.z_scores, model(words, mask).z_scores)
    assert (fused.head_marginals is None) == (VARIANTS[name].relative is None)


def test_dropout_acts_in_training_only():
    words, mask = batch()
    quiet = Transformer(9, SMALL).train()
    assert torch.equal(quiet(words, mask).z_scores, quiet(words, mask).z_scores)
    noisy = Transformer(9, replace(SMALL, dropout=0.5)).train()
    assert not torch.equal(noisy(words, mask).z_scores, noisy(words, mask).z_scores)
    noisy.eval()
    assert torch.equal(noisy(words, mask).z_scores, noisy(words, mask).z_scores)


@pytest.mark.parametrize("name", VARIANTS)
def test_dropout_sites_and_rate(name, monkeypatch):
    """Once on the input; in each layer on the attention and on both residual branches."""
    rates = []

    def record(x, p=0.5, training=True, inplace=False):
        rates.append(p if training else 0.0)
        return x

    monkeypatch.setattr(torch.nn.functional, "dropout", record)
    words, mask = batch()
    Transformer(9, replace(VARIANTS[name], dropout=0.3)).train()(words, mask)
    assert rates == [0.3] * (1 + 3 * 2)


def test_tying_shares_matrices_and_their_gradients():
    """W^K = W^V and W^Q = W^O: an untied layer with equal matrices adds both gradients up."""
    tied = Attention(replace(SMALL, tied=True)).double()
    untied = Attention(SMALL).double()
    assert {name for name, _ in tied.named_parameters()} == {"query", "key"}
    untied.query.data = untied.output.data = tied.query.data.clone()
    untied.key.data = untied.value.data = tied.key.data.clone()
    untied.output.data, untied.value.data = untied.query.data.clone(), untied.key.data.clone()
    x, mask = torch.randn(2, 5, 12, dtype=torch.float64), torch.ones(2, 5, dtype=torch.bool)
    outputs = [module(x, mask, weights=True)[0] for module in (tied, untied)]
    torch.testing.assert_close(*outputs)
    for output in outputs:
        output.pow(2).sum().backward()
    torch.testing.assert_close(tied.query.grad, untied.query.grad + untied.output.grad)
    torch.testing.assert_close(tied.key.grad, untied.key.grad + untied.value.grad)


def test_a_universal_transformer_applies_one_layer():
    model, (words, mask) = build("universal"), batch()
    assert len(model.layers) == 1
    post = model(words, mask, trace=True)
    assert len(post.trace) == 2
    again, _ = model.layers[0](post.trace[0].z_scores, mask, True)
    torch.testing.assert_close(again[mask], post.z_scores[mask])


def test_sinusoids_are_the_original_transformers():
    table = sinusoids(5, 6, torch.zeros(1))
    for position in range(5):
        for k in range(3):
            angle = position / 10000 ** (2 * k / 6)
            assert table[position, 2 * k].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * k + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_words_weigh_as_much_as_positions_at_the_start():
    model = Transformer(1000, replace(SMALL, width=128))
    words = model.words.weight * 128**0.5
    assert words.std().item() == pytest.approx(1, rel=0.05)
    assert model.positions.std().item() == pytest.approx(1, rel=0.05)


def test_a_sentence_longer_than_the_position_table():
    model = Transformer(9, replace(SMALL, max_length=4))
    words, mask = batch((5,))
    with refused("4", "5 words"):
        model(words, mask)
