"""A task that learns and predicts heads fits the protocol: training, evaluation and prediction."""

import pytest
import torch
from torch import nn

from helpers.runs import PT, TRANSFORMER, ready, settings
from probformer.runs.prediction import predict
from probformer.runs.run_folder import Run
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.tasks import Task
from probformer.tasks.gold_heads import gold_head_loss
from probformer.tasks.objective import evaluation_plan
from probformer.training.evaluation import evaluate

ROOTED = {**PT, "root": {"labels": 16}}


class Heads(Task):
    """The head of each word in channel 0, by its probability."""

    metric = "attachment"
    needs_heads = True

    def learn_classes(self, sentences):
        pass

    def check(self, sentence):
        pass

    def state(self):
        return {}

    def load_state(self, state):
        pass

    def build_readout(self, encoder):
        return nn.Identity()

    def fields_of(self, sentence, word_of):
        return {}

    def loss(self, output, batch):
        return gold_head_loss(output.posterior, batch, channel=0)

    def count(self, output, batch):
        found = self.best(output.posterior)
        known = batch.heads != UNOBSERVED
        right = ((found == batch.heads) & known).sum()
        return {"loss": self.loss(output, batch), "right": right, "words": known.sum()}

    def metrics(self, counts):
        attachment = counts["right"] / counts["words"]
        return {"loss": counts["loss"], self.metric: attachment, "score": attachment}

    def answer(self, output, words, word_of):
        return {"words": words, "heads": self.best(output.posterior)[0].tolist()}

    def as_text(self, answer):
        return " ".join(map(str, answer["heads"]))

    def best(self, posterior):
        best = posterior.head_marginals[:, 0].argmax(-1)
        if posterior.root_head_marginals is None:
            return best
        root = posterior.root_head_marginals[:, 0]
        return torch.where(root > posterior.head_marginals[:, 0].amax(-1), ROOT, best)


@pytest.fixture
def task(monkeypatch):
    """What `build_task` makes, whatever the settings say."""
    monkeypatch.setattr("probformer.training.start.build_task", lambda _, words: Heads(words))


@pytest.mark.usefixtures("task")
@pytest.mark.parametrize("encoder", [PT, ROOTED, TRANSFORMER], ids=["pt", "root", "transformer"])
def test_a_task_that_needs_heads_has_them_in_training_evaluation_and_prediction(encoder, tmp_path):
    training = ready(settings("tagging", encoder, size=200, epochs=1), tmp_path)
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
