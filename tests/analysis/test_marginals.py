"""What a run believes, word by word."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from helpers.messages import refused
from helpers.runs import PT, TRANSFORMER, TREES, saved_with_labels, settings
from probformer.analysis.marginals import (
    SentenceMarginals,
    _batches,
    channel_of,
    infer_sentence,
    infer_sentences,
    task_answer,
)
from probformer.config import VocabularySettings
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run
from probformer.training.progress import Reporter
from probformer.training.start import prepare

SENTENCES = [("the", "dog", "sleeps"), ("dogs", "sleep"), ("yes",)]


def run_of(tmp_path: Path, encoder=PT, vocabulary=None):
    given = settings("tagging", encoder, size=100)
    given = replace(given, vocabulary=vocabulary or given.vocabulary)
    return prepare(given, tmp_path, Path("."), Reporter(), Accelerator(cpu=True)).run


@torch.no_grad()
def test_readings_are_the_posterior_of_each_sentence_alone(tmp_path: Path):
    run = run_of(tmp_path)
    run.model.eval()
    for words, marginals in zip(SENTENCES, infer_sentences(run, SENTENCES), strict=True):
        ids = torch.tensor([run.vocabulary.encode(words).ids])
        alone = run.model.encoder(ids, torch.ones_like(ids, dtype=torch.bool), trace=True)
        assert marginals.words == words
        assert len(marginals.heads) == len(alone.trace)
        for t, step in enumerate(alone.trace):
            np.testing.assert_allclose(marginals.heads[t], step.head_marginals[0], atol=1e-6)
            np.testing.assert_allclose(marginals.labels[t], step.z_marginals[0], atol=1e-6)
            np.testing.assert_allclose(marginals.free_energy[t], step.free_energy[0], rtol=1e-5)
        assert marginals.root is None


def arc_labels_of(posterior, words):
    """(n, n+1): the number of the best label of each arc, and P(label | arc), in plain loops."""
    joint = posterior.arc_label_marginals[0]
    best = [[arc.tolist() for arc in row[:words]] + [row[-1].tolist()] for row in joint[:words]]
    numbers = [[arc.index(max(arc)) for arc in row] for row in best]
    return numbers, [[max(arc) / (sum(arc) or 1) for arc in row] for row in best]


@torch.no_grad()
@pytest.mark.parametrize("task", ["parsing", "tagging"])
def test_labels_of_arcs_are_the_most_probable_ones(tmp_path: Path, task):
    """Named by a parser; latent ones are numbers."""
    labels = {"arc_labels": {"channel": 0, "count": 3}} if task == "tagging" else {}
    run = load_run(saved_with_labels(tmp_path, task, {**TREES, **labels}))
    assert run.channel == 0
    for words, marginals in zip(SENTENCES, infer_sentences(run, SENTENCES), strict=True):
        ids = torch.tensor([run.vocabulary.encode(words).ids])
        alone = run.model.encoder(ids, torch.ones_like(ids, dtype=torch.bool), trace=True)
        found, n = marginals.arc_labels, len(words)
        assert found.channel == 0
        for t, step in enumerate(alone.trace):
            numbers, certain = arc_labels_of(step, n)
            np.testing.assert_allclose(found.probabilities[t], certain, atol=1e-5)
            texts = found.texts(t)
            assert n < 3 or len({text for row in texts for text in row}) > 2
            for i, j in np.ndindex(n, n + 1):
                name = run.task.labels.name if task == "parsing" else str
                assert texts[i][j] == (name(numbers[i][j]) if certain[i][j] else "")
    (plain,) = infer_sentences(run_of(tmp_path / "plain"), [SENTENCES[0]])
    assert plain.arc_labels is None


@torch.no_grad()
def test_labels_of_arcs_between_words_of_several_pieces(tmp_path: Path):
    """Those of the first piece of the dependent, summed over the pieces of the head."""
    vocabulary = VocabularySettings(kind="subwords", size=300)
    encoder = {**TREES, "arc_labels": {"channel": 1, "count": 3}}
    run = load_run(saved_with_labels(tmp_path, "tagging", encoder, vocabulary=vocabulary))
    words = ("the", "unbelievable", "dog")
    ids, word_of = run.vocabulary.encode(words)
    tokens = torch.tensor([ids])
    alone = run.model.encoder(tokens, torch.ones_like(tokens, dtype=torch.bool))
    joint = alone.arc_label_marginals[0]
    (marginals,) = infer_sentences(run, [words])
    for i, j in np.ndindex(3, 4):
        pieces = [at for at, word in enumerate(word_of) if word == j] if j < 3 else [len(ids)]
        together = joint[word_of.index(i), pieces].sum(0)
        assert marginals.arc_labels.numbers[-1, i, j] == int(together.argmax())
        expected = float(together.max() / together.sum()) if together.sum() else 0
        assert marginals.arc_labels.probabilities[-1, i, j] == pytest.approx(expected, abs=1e-5)


def test_layers_and_attention_of_a_transformer(tmp_path: Path):
    (marginals,) = infer_sentences(run_of(tmp_path, TRANSFORMER), [SENTENCES[0]])
    assert marginals.labels is None
    with refused("layer 2"):
        marginals.iteration(2)
    np.testing.assert_allclose(marginals.heads.sum(-1), 1, atol=1e-6)


def test_what_is_left_to_others_adds_up():
    """Each number of a row of heads and root, but for the word's own, by what they come to."""
    heads = np.array([[[[0.5, 0.1, 0.1], [0.2, 0.2, 0.2], [0, 0, 0.75]]]])
    root = np.array([[[0.3, 0.4, 0.25]]])
    marginals = SentenceMarginals(("a", "b", "c"), heads, root, None, None)
    found, of_root = marginals.over_others(0)
    np.testing.assert_allclose(found, [[[0, 0.2, 0.2], [0.25, 0, 0.25], [0, 0, 0]]])
    np.testing.assert_allclose(of_root, [[0.6, 0.5, 1]])
    found, of_root = replace(marginals, root=None).over_others(0)
    np.testing.assert_allclose(found, [[[0, 0.5, 0.5], [0.5, 0, 0.5], [0, 0, 0]]])
    assert of_root is None


def test_pieces_of_words_add_up(tmp_path: Path):
    run = run_of(tmp_path, vocabulary=VocabularySettings(kind="subwords", size=300))
    assert run.vocabulary.subwords
    words = ("the", "unbelievable", "dog")
    ids, word_of = run.vocabulary.encode(words)
    assert len(ids) > len(words)
    (marginals,) = infer_sentences(run, [words])
    tokens = torch.tensor([ids])
    alone = run.model.encoder(tokens, torch.ones_like(tokens, dtype=torch.bool))
    pieces = [at for at, word in enumerate(word_of) if word == 1]
    expected = alone.head_marginals[0, :, 0, pieces].sum(-1).detach()
    np.testing.assert_allclose(marginals.heads[-1, :, 0, 1], expected, atol=1e-6)


def test_what_is_not_there_is_named(tmp_path: Path):
    run = run_of(tmp_path)
    (marginals,) = infer_sentences(run, [SENTENCES[0]])
    with refused("channel 7"):
        marginals.channel(7)
    with refused("iteration 9"):
        marginals.iteration(9)
    with refused("iteration -5"):
        marginals.iteration(-5)
    assert marginals.iteration(-1) == len(marginals.heads) - 1
    assert marginals.iteration(1) == 0
    with refused("words"):
        list(infer_sentences(run, [()]))


def test_channels_by_number_or_name():
    assert channel_of("12", "average", "all") == 12
    assert channel_of("all", "average", "all") == "all"
    with refused("channel", "all"):
        channel_of("all", "average", "best")


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried")])
def test_out_of_memory_names_the_length(tmp_path: Path, monkeypatch, error):
    def full(*_, **__):
        raise error

    run = run_of(tmp_path)
    monkeypatch.setattr(run.model.encoder, "forward", full)
    with refused("out of memory", "3 words"):
        list(infer_sentences(run, SENTENCES))


def test_a_long_sentence_is_read_by_itself():
    sentences = [("a",) * n for n in (3, 3, 500, 3)]
    assert [[len(words) for words in batch] for batch in _batches(sentences)] == [
        [3, 3],
        [500],
        [3],
    ]
    assert [len(batch) for batch in _batches([("a",)] * 130)] == [64, 64, 2]


def test_training_mode_is_left_as_it_was(tmp_path: Path):
    run = run_of(tmp_path, {**PT, "dropout": 0.5})
    run.model.train()
    run.model.head.eval()
    first, again = (infer_sentence(run, SENTENCES[0]) for _ in range(2))
    np.testing.assert_array_equal(first.labels, again.labels)  # without dropout
    assert task_answer(run, first) == task_answer(run, again)
    answers = [predict(run, SENTENCES[:1]) for _ in range(2)]
    assert answers[0] == answers[1]
    assert run.model.training
    assert run.model.encoder.training
    assert not run.model.head.training
