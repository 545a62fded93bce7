"""Classification: one label for a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from probformer.data.encoded import EncodedSentence, Tokens
from probformer.data.layout import first_words
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.errors import InputError, require
from probformer.models.encoder import Encoder
from probformer.models.readout import Output, sentence_readout
from probformer.models.transformer import Transformer
from probformer.tasks.batch import Batch, Targets
from probformer.tasks.labels import Labels
from probformer.tasks.task import Counts, CountsSoFar, Task, cross_entropy, weighted_loss


class Classification(Task):
    """A layer on the representation of a sentence: ROOT's scores, or a transformer's CLS vector."""

    metric = "accuracy"

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.labels = Labels()

    @property
    def reads_single_words(self) -> bool:
        return False

    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        self.labels = Labels()
        self.labels = Labels(sorted({_label_of(sentence) for sentence in self.usable(sentences)}))
        found = ", ".join(self.labels.names)
        require(len(self.labels) > 1, f"the training data must have two labels, got only {found}")

    def state(self) -> dict[str, Any]:
        return {"labels": self.labels.names}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.labels = Labels(state["labels"])

    def build_readout(self, encoder: Encoder | Transformer) -> nn.Module:
        return sentence_readout(encoder, len(self.labels))

    def check(self, sentence: Sentence) -> None:
        label = _label_of(sentence)
        if len(self.labels) and label not in self.labels.names:
            known = ", ".join(self.labels.names)
            message = f"the label {label!r} does not occur in the training data ({known})"
            raise InputError(f"{sentence.place()}: {message}")

    def fields_of(self, sentence: Sentence, word_of: Sequence[int]) -> EncodedSentence:
        self.check(sentence)
        return {"label": [self.labels.number(_label_of(sentence))] * len(word_of)}

    def targets(self, tokens: Tokens) -> Targets:
        labels = tokens["label"][first_words(tokens.lengths)]
        return Targets(tokens["words"], of_sentences={"label": labels})

    def loss(self, output: Output, batch: Batch) -> Tensor:
        return weighted_loss(output.readout(output.representation), batch, "label")

    def count(self, output: Output, batch: Batch) -> CountsSoFar:
        logits, labels = output.readout(output.representation), batch.targets["label"]
        return {
            "loss": cross_entropy(logits, labels).sum(),
            "right": (logits.argmax(-1) == labels).sum(),
            "sentences": float(len(labels)),
        }

    def metrics(self, counts: Counts) -> dict[str, float]:
        sentences = max(counts["sentences"], 1)
        accuracy = counts["right"] / sentences
        # Rounded as published, which makes ties common: the lower loss then wins.
        return {
            "loss": counts["loss"] / sentences,
            "accuracy": accuracy,
            "score": round(accuracy, 4),
        }

    def answer(
        self, output: Output, words: Sequence[str], word_of: Sequence[int]
    ) -> dict[str, Any]:
        probabilities = output.readout(output.representation)[0].softmax(-1).tolist()
        by_label = dict(zip(self.labels.names, probabilities, strict=True))
        best = max(by_label, key=by_label.__getitem__)
        return {
            "words": words,
            "label": best,
            "probabilities": {label: round(p, 4) for label, p in by_label.items()},
        }

    def as_text(self, answer: Mapping[str, Any]) -> str:
        return f"{answer['label']} ({answer['probabilities'][answer['label']]:.2f})"


def _label_of(sentence: Sentence) -> str:
    if sentence.label is None:
        raise InputError(f"{sentence.place()}: the sentence has no label, which the task needs")
    return sentence.label
