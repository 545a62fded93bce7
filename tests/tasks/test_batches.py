"""Several chunks in one pass, padded or end to end: the same loss and gradient as one by one."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch

from helpers.messages import refused
from helpers.runs import PT, TRANSFORMER, ready, settings
from probformer.data.builtin import builtin_corpus
from probformer.data.layout import packed, padded
from probformer.runs.run_folder import load_run
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.tasks.batch import Plan, mean_weights
from probformer.training.batching import MAX_TOKENS, plan_for
from probformer.training.evaluation import evaluate
from probformer.training.updates import DeviceUpdates, Updates

TASKS = ["mlm", "tagging", "ner", "classification", "cogs"]
ROOTED = {**PT, "root": {"labels": 16}}


def loss_and_gradients(training, parts, plan):
    training.model.zero_grad()
    training.batches.plan = plan
    total = 0.0
    for part in parts:
        loss = training.batch_loss(training.batches.build([part], 0))
        loss.backward()
        total += loss.item()
    return total, [p.grad.clone() for p in training.model.parameters()]


def assert_same(actual, expected):
    assert actual[0] == pytest.approx(expected[0], rel=1e-5)
    for a, b in zip(actual[1], expected[1], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
@pytest.mark.parametrize("task", TASKS)
def test_chunks_in_one_pass_are_chunks_one_by_one(task, encoder, tmp_path):
    """The last chunk is smaller."""
    penalty = 1e-2 if encoder is PT else 0.0
    training = ready(settings(task, encoder, chunk=4, penalty=penalty), tmp_path)
    indices, plan = np.arange(18)[::-1], training.batches.plan
    chunks = [indices[start : start + 4] for start in range(0, 18, 4)]
    expected = loss_and_gradients(training, chunks, plan)
    together = loss_and_gradients(training, [indices], replace(plan, rounded=True))
    assert_same(together, expected)
    if encoder is PT and task != "classification":
        end_to_end = replace(plan, rounded=True, packed=True)
        assert_same(loss_and_gradients(training, [indices], end_to_end), expected)


@pytest.mark.parametrize("encoder", [PT, ROOTED, TRANSFORMER], ids=["pt", "root", "transformer"])
def test_gold_heads_have_a_mean_a_chunk(encoder, tmp_path):
    given = settings("tagging", encoder, chunk=4, gold_heads={"channel": 1, "weight": 2.0})
    training = ready(given, tmp_path)
    indices, plan = np.arange(16), training.batches.plan
    chunks = np.split(indices, 4)
    expected = loss_and_gradients(training, chunks, plan)
    assert_same(loss_and_gradients(training, [indices], replace(plan, rounded=True)), expected)
    without = ready(settings("tagging", encoder, chunk=4), tmp_path / "without")
    assert expected[0] > loss_and_gradients(without, chunks, without.batches.plan)[0] + 1


def test_words_without_a_gold_head_have_no_weight(tmp_path):
    """The mean is over the words of a sentence whose heads are known; ROOT is such a head."""
    training = ready(settings("tagging", ROOTED, gold_heads={"channel": 0}), tmp_path)
    sentence = builtin_corpus(100)["train"].draw(Random(0), 0)
    heads = [UNOBSERVED if at % 3 else head for at, head in enumerate(sentence.heads)]
    heads[sentence.heads.index(ROOT)] = ROOT
    split = training.run.task.encode([replace(sentence, heads=tuple(heads))])
    batch = training.run.task.training_batch(split, np.arange(1), 0, 0, training.batches.plan)
    known = np.array(heads) != UNOBSERVED
    assert 1 < known.sum() < len(heads)
    np.testing.assert_allclose(batch.weights["heads"][0], known / known.sum(), rtol=1e-6)


def test_a_chunk_with_nothing_to_guess_costs_nothing(tmp_path):
    training = ready(settings(), tmp_path)
    training.run.task.rate = 0.0
    for rounded in (False, True):
        plan = replace(training.batches.plan, rounded=rounded)
        loss, gradients = loss_and_gradients(training, [np.arange(4)], plan)
        assert loss == 0
        assert all(gradient.eq(0).all() for gradient in gradients)


def test_layouts():
    lengths = np.array([3, 1, 17])
    words = np.arange(1, 22)
    grid = padded(lengths, multiple=8).place(words, 0)
    assert grid.shape == (3, 24)
    assert [row[row > 0].tolist() for row in grid] == [[1, 2, 3], [4], [*range(5, 22)]]
    assert padded(lengths, multiple=8, limit=20).shape == (3, 20)
    layout = packed(lengths)
    row = layout.place(words, -1)
    assert row.shape == (1, 128)
    assert row[0, :21].tolist() == words.tolist()
    assert (row[0, 21:] == -1).all()
    assert layout.packing is not None
    assert layout.packing.longest == 32
    assert layout.packing.lengths.tolist() == [3, 1, 17] + [0] * 13
    assert layout.packing.starts.tolist() == [0, 3, 4] + [21] * 13
    for longest, bound in ((1, 16), (16, 16), (17, 32), (64, 64), (65, 128)):
        packing = packed(np.array([longest])).packing
        assert packing is not None
        assert packing.longest == bound


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_travels_in_one_piece(task, tmp_path):
    training = ready(settings(task), tmp_path)
    for is_packed in (False, True):
        training.batches.plan = Plan(chunk=2, packed=is_packed, rounded=is_packed, lowest_head=0)
        batch = training.batches.build([np.arange(5)], 0)
        again = batch.from_bytes(batch.to_bytes())
        assert again.shape() == batch.shape()
        for a, b in zip(again._tensors(), batch._tensors(), strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)
        assert not torch.equal(batch.from_bytes(batch.to_bytes() * 0).mask, batch.mask)


def test_weights_are_means():
    has_target = np.array([True, True, False, True, False])
    weights = mean_weights(has_target, np.array([0, 0, 0, 1, 2]))
    assert weights.tolist() == [0.5, 0.5, 0, 1, 0]


@pytest.mark.parametrize(
    ("given", "is_packed"),
    [
        (settings("mlm"), True),
        (settings("cogs"), True),
        (settings("mlm", ROOTED), False),
        (settings("mlm", TRANSFORMER), False),
        (settings("classification"), False),
        (settings("tagging", gold_heads={"channel": 0}), False),
    ],
)
def test_what_is_laid_end_to_end_on_a_gpu(given, is_packed, tmp_path):
    training = ready(given, tmp_path)
    needs_heads = training.batch_loss.needs_heads
    assert not plan_for(training.run, needs_heads, on_gpu=False).packed
    assert plan_for(training.run, needs_heads, on_gpu=True).packed == is_packed


@pytest.mark.parametrize("parent", ["attention", "relative-attention"])
def test_a_pointer_is_given_sentences(tmp_path, parent):
    run = ready(settings("cogs"), tmp_path).run
    run.task.settings = replace(run.task.settings, parent=parent)
    assert not plan_for(run, needs_heads=False, on_gpu=True).packed


def test_a_gpu_takes_chunks_together_as_far_as_they_fit(tmp_path):
    batches = ready(settings(chunk=4), tmp_path).batches
    chunks = batches.chunks(np.arange(16))
    assert batches.passes(chunks, range(4)) == [[0], [1], [2], [3]]
    batches.max_tokens = MAX_TOKENS
    assert batches.passes(chunks, range(4)) == [[0, 1, 2, 3]]
    assert batches.passes(chunks, range(1, 4, 2)) == [[1, 3]]
    assert batches.passes(chunks, range(4, 4)) == []
    batches.max_tokens = 8 * batches.split.lengths[:8].max()  # all are padded to the longest
    assert batches.passes(chunks, range(4))[0] == [0, 1]
    batches.max_tokens = 1
    assert batches.passes(chunks, range(4)) == [[0], [1], [2], [3]]


def test_a_process_without_a_chunk_adds_nothing(tmp_path, monkeypatch):
    training = ready(settings(size=100), tmp_path)
    training._update(np.arange(16))
    assert any(p.grad.any() for p in training.model.parameters())
    monkeypatch.setattr(training.batches, "passes", lambda chunks, numbers: [])
    training._update(np.arange(16))
    assert training.loss == 0
    assert not any(p.grad.any() for p in training.model.parameters())


# Updates without waiting for the device


def as_on_a_gpu(training):
    """All that a GPU does but the graphs."""
    needs_heads = training.batch_loss.needs_heads
    training.on_gpu = True
    training.batches.plan = plan_for(training.run, needs_heads, on_gpu=True)
    training.batches.max_tokens = MAX_TOKENS
    parameters = [*training.model.parameters()]
    training.updates = DeviceUpdates(parameters, training.loss, training.settings)
    return training


def test_an_epoch_as_on_a_gpu_is_an_epoch(tmp_path):
    given = settings(
        size=200, chunk=4, penalty=1e-3, weight_decay=1e-3, schedule={"kind": "cosine"}
    )
    plain = ready(given, tmp_path / "plain")
    device = as_on_a_gpu(ready(given, tmp_path / "device"))
    assert device.batches.plan.packed
    for training in (plain, device):
        training._epoch()
    assert device.progress.loss == pytest.approx(plain.progress.loss, rel=1e-4)
    assert device.progress.chunks == plain.progress.chunks
    for a, b in zip(device.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-4)
    device._end_epoch()
    again = as_on_a_gpu(ready(given, tmp_path / "device", resume=True))
    assert again.progress.epoch == 1


@pytest.mark.parametrize("kind", [Updates, DeviceUpdates])
@pytest.mark.parametrize("bad", ["loss", "gradient"])
def test_what_is_not_finite_changes_nothing_and_is_found_in_its_place(kind, bad):
    parameter, loss = torch.nn.Parameter(torch.randn(3)), torch.tensor(2.0)
    parameter.grad = torch.ones(3)
    updates = kind([parameter], loss, settings(clip=1.0).training)
    updates.apply(1e-2)
    before = parameter.detach().clone()
    (loss if bad == "loss" else parameter.grad).fill_(torch.nan)
    updates.apply(1e-2)
    assert torch.equal(parameter, before)
    found = updates.read_back()
    assert found[0] == (2.0, pytest.approx(3**0.5))
    assert np.isnan(found[1]).tolist() == [bad == "loss", bad == "gradient"]
    assert updates.read_back() == []
    if kind is DeviceUpdates:  # and nothing is changed after it
        parameter.grad.fill_(1.0)
        updates.apply(1e-2)
        assert torch.equal(parameter, before)
        assert updates.optimizer.state[parameter]["step"] == 1


def test_updates_are_the_same_on_a_device():
    results = []
    for kind in (Updates, DeviceUpdates):
        torch.manual_seed(1)
        parameter, loss = torch.nn.Parameter(torch.randn(5)), torch.zeros(())
        parameter.grad = torch.zeros(5)
        updates = kind([parameter], loss, settings(clip=0.5, weight_decay=0.1).training)
        for step in range(4):
            parameter.grad.copy_(torch.randn(5))
            updates.apply(0.1 / (step + 1))
        assert len(updates.read_back()) == 4
        results.append(parameter.detach())
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("kind", [Updates, DeviceUpdates])
def test_the_average_is_that_of_all_updates_and_then_of_the_latest(kind):
    parameter, loss = torch.nn.Parameter(torch.randn(5)), torch.zeros(())
    updates = kind([parameter], loss, settings(average=0.75).training)
    seen = []
    for _ in range(6):
        parameter.grad = torch.randn(5)
        updates.apply(0.1)
        seen.append(parameter.detach().clone())
    expected = torch.stack(seen[:4]).mean(0)
    for weights in seen[4:]:
        expected = 0.75 * expected + 0.25 * weights
    with updates.averaged():
        torch.testing.assert_close(parameter.detach(), expected)
    assert torch.equal(parameter, seen[-1])


def test_a_run_judges_and_keeps_averages_and_goes_on_with_its_own_weights(tmp_path):
    training = ready(settings(average=0.9), tmp_path)
    training._epoch()
    own = {name: weights.clone() for name, weights in training.model.state_dict().items()}
    line = training._end_epoch()
    assert training.model.training, "evaluation leaves the model's mode as it was"
    kept = load_run(tmp_path)
    for name, weights in training.model.state_dict().items():
        assert torch.equal(weights, own[name])
        assert not torch.equal(weights, kept.model.state_dict()[name])
    again = evaluate(kept.model, kept.task, training.splits["dev"], training.accelerator)
    assert again == line["dev"]


def test_a_loss_that_is_not_finite_is_found_late_but_in_its_place(tmp_path):
    training = as_on_a_gpu(ready(settings(size=100), tmp_path))
    training._save()
    update, seen = training._update, []

    def poisoned(indices):
        seen.append(len(seen))
        if len(seen) == 3:
            weights = {name: p.clone() for name, p in training.model.named_parameters()}
            seen[-1] = weights
            training.model.readout.bias.register_hook(lambda gradient: gradient * torch.nan)
        update(indices)

    training._update = poisoned
    with refused("gradient's norm", "epoch 1, batch 3"):
        training._epoch()
    assert len(seen) == 7  # all batches of the epoch, as losses are read back after the last one
    for name, parameter in training.model.named_parameters():
        assert torch.equal(parameter, seen[2][name]), name
    assert len(list((tmp_path / "state").glob("step-*"))) == 1


@pytest.mark.parametrize("task", ["mlm", "tagging", "ner", "classification"])
def test_transformers_have_the_same_loss_of_packed_sentences(task, tmp_path):
    encoder = {**TRANSFORMER, "positions": "learned", "relative": None}
    training = ready(settings(task, encoder, chunk=4), tmp_path)
    losses = []
    packed = replace(training.batches.plan, packed=True, front=int(task == "classification"))
    for plan in (training.batches.plan, packed):
        training.batches.plan = plan
        batch = training.batches.build([np.arange(10)], 0)  # of 16 that have places
        assert (batch.packing is not None) == plan.packed
        losses.append(training.batch_loss(batch))
    torch.testing.assert_close(*losses)
