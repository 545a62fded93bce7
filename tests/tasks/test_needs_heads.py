"""A task that learns and predicts heads fits the protocol: training, evaluation and prediction."""

import pytest

from helpers.runs import PT, TRANSFORMER, ready, settings
from outside.heads_task import Heads
from probformer.runs.prediction import predict
from probformer.runs.run_folder import Run
from probformer.tasks.objective import evaluation_plan
from probformer.training.evaluation import evaluate

ROOTED = {**PT, "root": {"labels": 16}}


@pytest.mark.parametrize("encoder", [PT, ROOTED, TRANSFORMER], ids=["pt", "root", "transformer"])
def test_a_task_that_needs_heads_has_them_in_training_evaluation_and_prediction(encoder, tmp_path):
    given = settings("tagging", encoder, size=200, epochs=1)
    training = ready(given, tmp_path, make_task=lambda _, vocabulary: Heads(vocabulary))
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
