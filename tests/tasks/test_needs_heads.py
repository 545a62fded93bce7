"""A task that learns and predicts heads fits the protocol: training, evaluation and prediction."""

import signal

import pytest

from helpers.messages import refused
from helpers.runs import PT, TRANSFORMER, assert_same_runs, ready, settings
from outside.heads_task import Heads
from probformer.runs.prediction import predict
from probformer.runs.run_folder import Run, load_run
from probformer.tasks.objective import evaluation_plan
from probformer.training.evaluation import evaluate
from probformer.training.stopping import Stopped, StopSignal

ROOTED = {**PT, "root": {"labels": 16}}


def make_heads(settings, vocabulary):
    return Heads(vocabulary)


@pytest.mark.parametrize("encoder", [PT, ROOTED, TRANSFORMER], ids=["pt", "root", "transformer"])
def test_a_task_that_needs_heads_has_them_in_training_evaluation_and_prediction(encoder, tmp_path):
    given = settings("tagging", encoder, size=200, epochs=1)
    training = ready(given, tmp_path, make_task=make_heads)
    run, dev, accelerator = training.run, training.splits["dev"], training.accelerator
    plan = evaluation_plan(run.task, run.model.encoder)
    batch = run.task.evaluation_batch(dev, range(len(dev)), plan)
    assert ((batch.weights["heads"] > 0) == (batch.heads >= plan.lowest_head)).all()
    before = evaluate(run.model, run.task, dev, accelerator)
    training._epoch()
    after = evaluate(run.model, run.task, dev, accelerator)
    assert after["loss"] < before["loss"]
    sentences = [["the", "dogs", "sleep", "."], ["she", "sleeps"]]
    both = predict(Run(*vars(run).values()), sentences)
    assert [len(answer["heads"]) for answer in both] == [4, 2]
    assert both == [answer for words in sentences for answer in predict(run, [words])]


def test_a_run_for_a_task_of_ones_own_can_be_loaded_stopped_and_resumed(tmp_path):
    given = settings("tagging", ROOTED)
    whole = ready(given, tmp_path / "whole", make_task=make_heads)
    whole.train()
    loaded = load_run(tmp_path / "whole", make_task=make_heads)
    assert isinstance(loaded.task, Heads)
    sentences = [["the", "dogs", "sleep", "."]]
    assert predict(loaded, sentences) == predict(whole.run, sentences)

    folder, stop = tmp_path / "stopped", StopSignal()

    def stop_it(line):
        stop.received = signal.SIGTERM

    with pytest.raises(Stopped):
        ready(given, folder, make_task=make_heads, stop=stop, after_epoch=stop_it).train()
    for without in (lambda: load_run(folder), lambda: ready(given, folder, resume=True)):
        with refused("outside.heads_task.Heads", "make_task"):
            without()
    ready(given, folder, resume=True, make_task=make_heads).train()
    assert_same_runs(tmp_path / "whole", folder)
