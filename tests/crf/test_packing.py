"""Sentences laid end to end give what they give when padded: values and gradients."""

from dataclasses import replace

import pytest
import torch

from helpers.messages import refused
from helpers.models import EXTRAS, WORDS, build
from probformer import Encoder, Inference, mean_field
from probformer.config import EncoderSettings, TransformerSettings, UVSettings
from probformer.models.transformer import Transformer
from probformer.packing import Packing

pytestmark = pytest.mark.kernels

LENGTHS = (4, 0, 7, 1, 2)
"""One is missing, one is alone."""
BY_WORD = [name for name in EXTRAS if build("uv", name).is_by_word]


def packing_of(lengths=LENGTHS, longest=8):
    sizes = torch.tensor(lengths, dtype=torch.int32)
    return Packing((sizes.cumsum(0) - sizes).int(), sizes, longest)


def rows(values, lengths=LENGTHS):
    """Padded sentences, from a row of them."""
    n = max(lengths)
    out = values.new_zeros(len(lengths), n, *values.shape[2:])
    start = 0
    for b, length in enumerate(lengths):
        out[b, :length] = values[0, start : start + length]
        start += length
    return out


@pytest.mark.parametrize("extras", BY_WORD)
@pytest.mark.parametrize("words", WORDS)
def test_packed_is_padded(words, extras):
    potentials, inference = build(words, extras), Inference(iterations=3)
    total, places = sum(LENGTHS), 20
    row = torch.randn(1, places, potentials.words.labels, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(1, places, potentials.words.labels, dtype=torch.float64)
    weight[:, total:] = 0
    mask = torch.arange(places)[None] < total
    packed = mean_field(row, mask, potentials, inference, packing=packing_of())
    parameters = [row, *potentials.parameters()]
    gradients = torch.autograd.grad((packed.z_scores * weight).sum(), parameters, allow_unused=True)

    padded_mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    padded = mean_field(rows(row), padded_mask, potentials, inference)
    loss = (padded.z_scores * rows(weight)).sum()
    expected = torch.autograd.grad(loss, parameters, allow_unused=True)

    assert packed.z_scores.shape == (1, places, potentials.words.labels)
    torch.testing.assert_close(rows(packed.z_scores), padded.z_scores)
    torch.testing.assert_close(rows(packed.z_marginals), padded.z_marginals)
    n = max(LENGTHS)
    torch.testing.assert_close(packed.head_marginals[:, :, :n, :n], padded.head_marginals)
    assert packed.z_scores[:, total:].eq(0).all()
    for name, a, b in zip(["unary", *dict(potentials.named_parameters())], gradients, expected,
                          strict=True):  # fmt: skip
        torch.testing.assert_close(a, b, msg=name)


def test_a_full_row_and_an_encoder():
    encoder = Encoder(9, EncoderSettings(labels=8, channels=2, potential=UVSettings(rank=4)))
    lengths = (3, 5)
    words = torch.randint(9, (1, 8))
    packed = encoder(words, torch.ones_like(words, dtype=torch.bool), packing=packing_of(lengths))
    for start, length in ((0, 3), (3, 5)):
        sentence = words[:, start : start + length]
        alone = encoder(sentence, torch.ones_like(sentence, dtype=torch.bool))
        torch.testing.assert_close(packed.z_scores[:, start : start + length], alone.z_scores)


@pytest.mark.parametrize(
    "changes",
    [
        {"starts": torch.zeros(2)},
        {"lengths": torch.zeros(1, dtype=torch.int32)},
        {"longest": 0},
    ],
    ids=["starts", "lengths", "longest"],
)
def test_a_wrong_packing_is_refused_by_name(changes):
    given = {"starts": torch.tensor([0, 2]).int(), "lengths": torch.tensor([2, 2]).int()}
    packing = Packing(**{**given, "longest": 4, **changes})
    unary, mask = torch.zeros(1, 4, 5, dtype=torch.float64), torch.ones(1, 4, dtype=torch.bool)
    with refused(f"packing.{next(iter(changes))}"):
        mean_field(unary, mask, build(), packing=packing)


@pytest.mark.parametrize("readout", ["scores", "cls"])
@pytest.mark.parametrize(
    ("lengths", "changes", "named"),
    [
        ((3, 3), {"starts": torch.tensor([0, 2]).int()}, "sentences"),
        ((3, 3), {"longest": 2}, "longest"),
        ((2, 3), {}, "mask"),
        ((6, 0), {"longest": 6}, "6 words"),
    ],
    ids=["gap", "longest", "mask", "positions"],
)
def test_a_wrong_packing_of_a_transformer_is_refused(lengths, changes, named, readout):
    has_cls = readout == "cls"
    lengths = [n + has_cls if n else 0 for n in lengths]
    row = torch.ones(1, 6 + has_cls * sum(n > 0 for n in lengths), dtype=torch.long)
    packing = packing_of(lengths)
    mask = torch.ones_like(row, dtype=torch.bool)
    if has_cls:
        mask[0, packing.starts[packing.lengths > 0].long()] = False
    if "longest" in changes:
        changes = {"longest": changes["longest"] + has_cls}
    settings = TransformerSettings(width=8, heads=2, head_width=4, readout=readout)
    model = Transformer(9, replace(settings, max_length=4 + has_cls))
    with refused(named):
        model(row, mask, packing=replace(packing, **changes))


def test_what_belongs_to_a_sentence_is_refused():
    unary, mask = torch.zeros(1, 4, 5, dtype=torch.float64), torch.ones(1, 4, dtype=torch.bool)
    packing = packing_of((2, 2))
    with refused("packing"):
        mean_field(unary, mask, build(extras="root"), packing=packing)
    with refused("packing"):
        mean_field(unary, mask, build(), packing=packing, trace=True)
    two = torch.zeros(2, 4, 5, dtype=torch.float64)
    with refused("mask"):
        mean_field(two, mask.expand(2, 4), build(), packing=packing)


TRANSFORMERS = {
    "plain": {},
    "sinusoidal": {"positions": "sinusoidal", "norm": "pre"},
    "relative": {"positions": "none", "relative": 2, "relative_values": True},
    "universal": {"universal": True, "tied": True},
    "cls": {"readout": "cls"},
}


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_packed_transformers_are_padded_ones(kind, attention):
    has_cls = kind == "cls"
    sizes = {"width": 12, "layers": 2, "heads": 2, "head_width": 4, "feed_forward": 8}
    model = Transformer(30, TransformerSettings(**sizes, max_length=8, **TRANSFORMERS[kind]))
    model = model.double()
    lengths = [n + has_cls if n else 0 for n in LENGTHS]
    packing, places = packing_of(lengths), 20 + has_cls * 4
    start = packing.starts.tolist()
    padded_words = torch.randint(30, (len(LENGTHS), max(LENGTHS)))
    padded_mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    row, there = torch.zeros(1, places, dtype=torch.long), torch.zeros(1, places, dtype=torch.bool)
    for b, n in enumerate(LENGTHS):
        at = slice(start[b] + has_cls, start[b] + has_cls + n)
        row[0, at], there[0, at] = padded_words[b, :n], True

    packed = model(row, there, attention=attention, packing=packing)
    padded = model(padded_words, padded_mask, attention=attention)
    found, expected = packed.z_scores[there], padded.z_scores[padded_mask]
    torch.testing.assert_close(found, expected)
    assert packed.z_scores[~there].eq(0).all()
    if attention:
        n = max(LENGTHS)
        torch.testing.assert_close(packed.head_marginals[:, :, :n, :n], padded.head_marginals)
    if has_cls:
        present = torch.tensor(LENGTHS) > 0
        of_root, wanted = packed.root_scores[present], padded.root_scores[present]
        torch.testing.assert_close(of_root, wanted)
        found, expected = torch.cat([found, of_root]), torch.cat([expected, wanted])
    weight = torch.randn_like(found)
    gradients = torch.autograd.grad((found * weight).sum(), [*model.parameters()])
    wanted = torch.autograd.grad((expected * weight).sum(), [*model.parameters()])
    for name, a, b in zip(dict(model.named_parameters()), gradients, wanted, strict=True):
        torch.testing.assert_close(a, b, msg=name)


def test_places_after_the_last_sentence_belong_to_somebody():
    packing = packing_of((4, 0, 7), longest=8)
    assert packing.borders(20).tolist() == [0, 4, 4, 11, 19, 20, 20]
    assert packing.positions(14).tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7]
