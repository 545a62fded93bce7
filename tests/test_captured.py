"""Training from CUDA graphs goes the way of training without them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from probformer.training.captured import CapturedGradients, Gradients
from probformer.training.report import Reporter
from probformer.training.start import prepare
from runs import PT, TRANSFORMER, settings

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
@pytest.mark.parametrize("task", ["mlm", "tagging", "ner", "classification", "cogs"])
def test_captured_steps_are_eager_steps(task, encoder, tmp_path: Path):
    runs = []
    for name in ("captured", "eager"):
        given = settings(task, encoder, size=200, chunk=4, penalty=0.0)
        run = prepare(given, tmp_path / name, Path("."), Reporter(), Accelerator())
        if name == "eager":
            run.gradients = Gradients(run.batch_loss, run.accelerator.device)
        for step in range(12):
            run._update(np.arange(16 * step, 16 * step + 16))
            run.progress.step += 1
        run._settle()
        runs.append(run)
    captured, eager = runs
    assert isinstance(captured.gradients, CapturedGradients)
    assert captured.gradients.graphs
    assert captured.progress.loss == pytest.approx(eager.progress.loss, rel=1e-4)
    for a, b in zip(captured.model.parameters(), eager.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


@pytest.mark.gpu
@needs_cuda
def test_a_run_resumes_on_the_device(tmp_path: Path):
    given = settings("tagging", size=100, epochs=2)
    run = prepare(given, tmp_path, Path("."), Reporter(), Accelerator())
    run._epoch()
    run._judge()
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
            run._settle()
            of_steps.append(run.progress.loss - before)
        losses.append(of_steps)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    graph = losses[0][2:]  # captured from the third time on
    assert graph[1] == pytest.approx(graph[2], rel=1e-5)
    assert abs(graph[0] - graph[1]) > 1e-4
    assert abs(graph[2] - graph[3]) > 1e-4
