"""The encoder: initialisation, read-outs, penalty, dropout, saving."""

import pytest
import torch

from helpers.messages import refused
from probformer import Encoder, Evidence, Inference, Transformer, mean_field
from probformer.config import EncoderSettings, GlobalSettings, RootSettings, UVSettings
from probformer.crf.potentials import UV, Potentials, Root, Rotary
from probformer.sentinels import UNOBSERVED

SETTINGS = EncoderSettings(
    labels=6,
    channels=2,
    potential=UVSettings(rank=3),
    root=RootSettings(4),
    globals=GlobalSettings(count=3),
    inference=Inference(iterations=2),
)


def batch():
    words = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]])
    return words, torch.tensor([[True] * 4, [True, True, False, False]])


def test_is_mean_field_over_word_scores():
    encoder, (words, mask) = Encoder(9, SETTINGS), batch()
    post = encoder(words, mask)
    unary = encoder.word_scores.weight[words]
    expected = mean_field(unary, mask, encoder.potentials, SETTINGS.inference)
    assert torch.equal(post.z_scores, expected.z_scores)
    assert torch.equal(post.root_scores, expected.root_scores)
    assert post.global_marginals.shape == (2, 1, 4, 3)


def test_word_scores_start_xavier_uniform():
    weight = Encoder(10_000, EncoderSettings(potential=UVSettings(rank=2))).word_scores.weight
    bound = (6 / (10_000 + 384)) ** 0.5
    assert weight.abs().max().item() == pytest.approx(bound, rel=1e-3)
    assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)


def test_word_scores_start_as_large_as_asked():
    settings = EncoderSettings(potential=UVSettings(rank=2), initial_scores=0.7)
    assert Encoder(1_000, settings).word_scores.weight.std().item() == pytest.approx(0.7, rel=0.01)


@pytest.mark.parametrize(("readout", "width"), [("scores", 6), ("marginals", 6), ("root", 4)])
def test_readouts(readout, width):
    settings = EncoderSettings(**{**vars(SETTINGS), "readout": readout})
    encoder, (words, mask) = Encoder(9, settings), batch()
    post = encoder(words, mask)
    found = encoder.representation(post)
    assert found.shape[-1] == encoder.width == width
    source = {"scores": "z_scores", "marginals": "z_marginals", "root": "root_scores"}[readout]
    assert found is getattr(post, source)


def test_penalty_is_the_plain_norm():
    encoder = Encoder(9, SETTINGS)
    words = encoder.potentials.words
    dense = torch.stack([words.dense(offset) for offset in (-4, -3, -2, -1, 1, 2, 3, 4)])
    torch.testing.assert_close(encoder.penalty(), dense.square().sum().sqrt())


def test_dropout_acts_in_training_only():
    settings = EncoderSettings(**{**vars(SETTINGS), "dropout": 0.5})
    encoder, (words, mask) = Encoder(9, settings), batch()
    first, second = encoder(words, mask), encoder(words, mask)
    assert not torch.equal(first.z_scores, second.z_scores)
    encoder.eval()
    assert torch.equal(encoder(words, mask).z_scores, encoder(words, mask).z_scores)


def test_evidence_and_trace_reach_inference():
    encoder, (words, mask) = Encoder(9, SETTINGS), batch()
    labels = torch.full((2, 4), UNOBSERVED)
    labels[0, 2] = 5
    post = encoder(words, mask, evidence=Evidence(labels=labels), trace=True)
    assert post.z_marginals[0, 2, 5] == 1
    assert len(post.trace) == 2


def test_weights_move_from_one_encoder_to_another():
    first, second, (words, mask) = Encoder(9, SETTINGS), Encoder(9, SETTINGS), batch()
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(words, mask).z_scores, second(words, mask).z_scores)


def test_every_parameter_learns():
    encoder, (words, mask) = Encoder(9, SETTINGS), batch()
    post = encoder(words, mask)
    (post.z_scores.pow(2).sum() + post.root_scores.pow(2).sum()).backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad.any(), name


@pytest.mark.parametrize(
    ("words", "mask", "named"),
    [
        (
            torch.zeros(3, dtype=torch.long),
            torch.ones(3, dtype=torch.bool),
            "words",
        ),
        (torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool), "words"),
        (
            torch.full((1, 3), 9),
            torch.ones(1, 3, dtype=torch.bool),
            "9",
        ),
        (torch.full((1, 3), -1), torch.ones(1, 3, dtype=torch.bool), "-1"),
        (torch.zeros(1, 3, dtype=torch.long), torch.ones(1, 2, dtype=torch.bool), "mask"),
        (torch.zeros(1, 3, dtype=torch.long), torch.ones(1, 3), "mask"),
        ([[1, 2]], torch.ones(1, 2, dtype=torch.bool), "list"),
        (torch.zeros(1, 3, dtype=torch.long), None, "NoneType"),
    ],
)
@pytest.mark.parametrize("model", [Encoder(9, SETTINGS), Transformer(9)], ids=["pt", "transformer"])
def test_bad_words(model, words, mask, named):
    with refused(named):
        model(words, mask)


def test_potentials_of_ones_own():
    settings = EncoderSettings(labels=6, channels=2, root=RootSettings(4), readout="root")
    potentials = Potentials(Rotary(6, 2, 4), root=Root(6, 2, 4))
    encoder, (words, mask) = Encoder(9, settings, potentials), batch()
    assert encoder.potentials is potentials
    assert encoder.representation(encoder(words, mask)).shape == (2, encoder.width) == (2, 4)
    plain = Encoder(9, EncoderSettings(labels=6, channels=2), UV(6, 2, 4))
    assert isinstance(plain.potentials, Potentials)


@pytest.mark.parametrize(
    ("potentials", "named"),
    [
        (UV(7, 2, 4), "(7, 2, None)"),
        (UV(6, 3, 4), "(6, 3, None)"),
        (Potentials(UV(6, 2, 4), root=Root(6, 2, 5)), "(6, 2, 5)"),
        (UVSettings(), "UVSettings"),
    ],
)
def test_potentials_must_fit_the_settings(potentials, named):
    settings = EncoderSettings(labels=6, channels=2, root=RootSettings(4), readout="root")
    with refused("potentials", named):
        Encoder(9, settings, potentials)


@pytest.mark.parametrize("model", [Encoder, Transformer])
@pytest.mark.parametrize("settings", [{}, 5, UVSettings()], ids=["dict", "int", "potential"])
def test_settings_of_another_kind(model, settings):
    with refused("settings"):
        model(9, settings)
    with refused("vocabulary"):
        model(0)
