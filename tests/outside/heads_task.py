"""A task of one's own: the head of each word in channel 0, learned from gold heads."""

import torch
from torch import nn

from probformer.sentinels import ROOT, UNOBSERVED
from probformer.tasks import Task
from probformer.tasks.gold_heads import gold_head_loss


class Heads(Task):
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
