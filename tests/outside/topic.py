"""A factor of one's own: each sentence has a topic, and every word's label scores with it."""

import torch
from torch import nn

from probformer.potentials import Factor, Variable


class Topic(Factor):
    """W[a, b] scores label a of every word with topic b of the sentence. No head takes part."""

    def __init__(self, labels, topics):
        super().__init__()
        self.W = nn.Parameter(torch.randn(labels, topics))
        topic = Variable("topic", "Y", topics, marginals="topic_marginals", scores="topic_scores")
        self.label_variables = (topic,)

    def prepare(self, q, *own):
        return q, own[0]  # (B, n, d) and (B, topics)

    def label_messages(self, p, x):
        q, topics = x
        to_words = (topics @ self.W.mT).unsqueeze(1).expand_as(q)
        return to_words, q.sum(1) @ self.W

    def expected_score(self, p, x):
        q, topics = x
        return ((q.sum(1) @ self.W) * topics).sum(-1)

    def reference_score(self, q, n):
        return sum(q["Z", i] @ self.W @ q[("Y",)] for i in range(n))
