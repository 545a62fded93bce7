"""Training from CUDA graphs goes the way of training without them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from helpers.runs import PT, TRANSFORMER, settings
from probformer.errors import InputError
from probformer.training.gradients import CapturedGradients, EagerGradients
from probformer.training.progress import Reporter
from probformer.training.start import prepare

MIXED = {**PT, "inference": {"step_h": 0.8}}
PACKED = {**TRANSFORMER, "positions": "learned", "relative": None}
ROTARY = {**PT, "potential": {"kind": "rotary", "rank": 16}}
ROTARY |= {"inference": {"iterations": 3, "normaliser_z": "squares"}}

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("encoder", [PT, MIXED, TRANSFORMER], ids=["pt", "mixed", "transformer"])
@pytest.mark.parametrize("task", ["mlm", "tagging", "ner", "classification", "cogs"])
def test_captured_steps_are_eager_steps(task, encoder, tmp_path: Path):
    runs = []
    for name in ("captured", "eager"):
        given = settings(task, encoder, size=200, chunk=4, penalty=0.0)
        run = prepare(given, tmp_path / name, Path("."), Reporter(), Accelerator())
        if name == "eager":
            run.gradients = EagerGradients(run.batch_loss, run.loss, [*run.model.parameters()])
        for step in range(12):
            run._update(np.arange(16 * step, 16 * step + 16))
            run.progress.step += 1
        run._read_back()
        runs.append(run)
    captured, eager = runs
    packed = encoder is not TRANSFORMER and task != "classification"  # in float32
    assert captured.batches.plan.packed == packed
    assert isinstance(captured.gradients, CapturedGradients)
    assert captured.gradients.graphs
    assert captured.progress.loss == pytest.approx(eager.progress.loss, rel=1e-4)
    for a, b in zip(captured.model.parameters(), eager.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize(
    ("task", "encoder"),
    [*((task, PACKED) for task in ("mlm", "tagging", "classification")), ("mlm", ROTARY)],
)
def test_half_precision_is_packed_and_captured(task, encoder, tmp_path: Path):
    """Both ways round differently; so do packed and padded sentences."""
    losses = []
    for name in ("captured", "eager", "padded"):
        given = settings(task, encoder, size=200, chunk=4, precision="bf16")
        if task == "mlm":
            given = replace(given, task=replace(given.task, tied=True))
        run = prepare(given, tmp_path / name, Path("."), Reporter(), Accelerator())
        assert run.batches.plan.packed
        if name != "captured":
            run.gradients = EagerGradients(run.batch_loss, run.loss, [*run.model.parameters()])
        if name == "padded":
            run.batches.plan = replace(run.batches.plan, packed=False)
        for step in range(12):
            run._update(np.arange(16 * step, 16 * step + 16))
            run.progress.step += 1
        run._read_back()
        losses.append(run.progress.loss)
    assert losses == pytest.approx([losses[0]] * 3, rel=2e-2)


@pytest.mark.gpu
@needs_cuda
def test_sentences_are_packed_only_for_the_kernels(tmp_path: Path):
    for damping, packed in ((0.0, True), (0.5, False)):
        inference = {"step_h": 0.8, "damping_h": damping}
        given = settings("tagging", {**PT, "inference": inference}, size=100)
        run = prepare(given, tmp_path / str(damping), Path("."), Reporter(), Accelerator())
        assert run.batches.plan.packed == packed


@pytest.mark.gpu
@needs_cuda
def test_beyond_the_limit_of_graphs_steps_are_eager(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("probformer.training.gradients._MAX_GRAPHS", 1)
    given = settings("mlm", TRANSFORMER, size=200, chunk=4)
    run = prepare(given, tmp_path, Path("."), Reporter(), Accelerator())
    for step in range(12):
        run._update(np.arange(16 if step % 2 else 8))
        run.progress.step += 1
    run._read_back()
    assert isinstance(run.gradients, CapturedGradients)
    assert len(run.gradients.graphs) == 1
    assert sorted(run.gradients.seen.values())[-2:] == [6, 6]


@pytest.mark.gpu
@needs_cuda
def test_a_run_resumes_on_the_device(tmp_path: Path):
    given = settings("tagging", size=100, epochs=2)
    run = prepare(given, tmp_path, Path("."), Reporter(), Accelerator())
    run._epoch()
    run._end_epoch()
    again = prepare(given, tmp_path, Path("."), Reporter(), Accelerator(), resume=True)
    assert again.progress.epoch == 1
    again.train()


@pytest.mark.gpu
@needs_cuda
def test_dropout_is_a_function_of_seed_and_step(tmp_path: Path):
    given = settings("tagging", {**PT, "dropout": 0.3}, size=200, chunk=4)
    losses = []
    for name in ("one", "two"):
        run = prepare(given, tmp_path / name, Path("."), Reporter(), Accelerator())
        of_steps = []
        for step in (0, 0, 0, 1, 1, 2):  # the same sentences
            before, run.progress.step = run.progress.loss, step
            run.schedule.learning_rate = 0.0
            run._update(np.arange(16))
            run._read_back()
            of_steps.append(run.progress.loss - before)
        losses.append(of_steps)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    graph = losses[0][2:]  # captured from the third time on
    assert graph[1] == pytest.approx(graph[2], rel=1e-5)
    assert abs(graph[0] - graph[1]) > 1e-4
    assert abs(graph[2] - graph[3]) > 1e-4


@pytest.mark.gpu
@needs_cuda
def test_what_is_not_finite_is_refused_by_the_device(tmp_path: Path):
    run = prepare(settings(size=200), tmp_path, Path("."), Reporter(), Accelerator())

    def update():
        run._update(np.arange(16))
        run.progress.step += 1
        run.progress.batch += 1

    for _ in range(5):
        update()
    assert run.updates.graph is not None
    run.model.readout.bias.data.fill_(float("nan"))
    before = {name: p.detach().clone() for name, p in run.model.named_parameters()}
    for _ in range(3):
        update()
    with pytest.raises(InputError, match="epoch 1, batch 6"):
        run._read_back()
    for name, parameter in run.model.named_parameters():
        torch.testing.assert_close(parameter, before[name], rtol=0, atol=0, equal_nan=True)
