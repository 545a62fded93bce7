"""COGS: semantic parsing as five tags for each word, from which the logical form is rebuilt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from probformer.config import CogsSettings
from probformer.data.cogs import NO_PARENT, WordTags, form_from_tags, tags_from_form
from probformer.data.encoded import EncodedSentence, Tokens
from probformer.data.layout import first_words
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.errors import InputError, require
from probformer.models.encoder import Encoder
from probformer.models.readout import Output, Pointer, SeveralReadouts
from probformer.models.transformer import Transformer
from probformer.tasks.batch import Batch, Targets
from probformer.tasks.labels import IGNORE, Labels
from probformer.tasks.patterns import Pattern, likeliest_together
from probformer.tasks.task import Counts, CountsSoFar, Task, sentence_losses, weighted_loss

KINDS = tuple(item.name for item in fields(WordTags))
"""The kinds of tags: parent, role, category, noun_type, verb_name."""
_REACH = 16
"""The largest distance with a score of its own; COGS' training data has parents within 11 words."""
_NO_PARENT, _PREVIOUS = "none", "-1"
"""Names of two classes of parents: no parent, and the previous word as a relative parent."""
_NOTHING = {"parent": _NO_PARENT, "verb_name": ""}
"""The class of words without such a tag, for the two kinds of tags that a word may be without."""


class Cogs(Task):
    """A sentence is right when all five tags of all its words are.

    With `task.parent` "absolute" or "relative", the classes of parents are the positions or the
    distances that occur in the training data. With "attention" the words of the sentence are the
    classes, and with "relative-attention" their distances have scores too. Words without a parent
    have a class of their own or, with `none_as_previous`, the class of those whose parent is the
    previous word, as in a published figure.

    The five tags of a word are chosen independently, as published, or with `by_pattern` jointly,
    among the combinations that occur in the training data.
    """

    metric = "accuracy"

    def __init__(self, settings: CogsSettings, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        needed = "the task 'cogs' must have a vocabulary of kind 'words', got 'subwords'"
        require(not vocabulary.subwords, needed)
        self.settings = settings
        self.labels = {name: Labels() for name in KINDS}
        self.patterns: list[Pattern] = []
        """Combinations of tags in the training data; only with `by_pattern`."""
        self.cases = Labels()

    @property
    def reads_single_words(self) -> bool:
        return not self.settings.points

    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        found: defaultdict[str, set[str]] = defaultdict(set)
        patterns: set[Pattern] = set()
        for sentence in self.usable(sentences):
            classes = self._classes_of(sentence)
            for name, values in classes.items():
                found[name].update(values)
            patterns.update(map(_pattern, *(classes[kind] for kind in KINDS)))
        self.labels = {name: Labels(sorted(found[name])) for name in KINDS}
        self.patterns = sorted(patterns) if self.settings.by_pattern else []

    def check(self, sentence: Sentence) -> None:
        self._classes_of(sentence)

    def state(self) -> dict[str, Any]:
        labels = {name: labels.names for name, labels in self.labels.items()}
        return {"labels": labels} | ({"patterns": self.patterns} if self.patterns else {})

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.labels = {name: Labels(names) for name, names in state["labels"].items()}
        self.patterns = [Pattern(*pattern) for pattern in state.get("patterns", ())]

    def build_readout(self, encoder: Encoder | Transformer) -> nn.Module:
        layers: dict[str, nn.Module] = {
            name: nn.Linear(encoder.width, len(labels)) for name, labels in self.labels.items()
        }
        if self.settings.points:
            reach = None if self.settings.parent == "attention" else _REACH
            layers["parent"] = Pointer(encoder.width, reach)
        return SeveralReadouts(layers)

    # Between tags and class numbers

    def _classes_of(self, sentence: Sentence) -> dict[str, list[str]]:
        if sentence.logical_form is None:
            raise InputError(f"{sentence.place()}: the sentence has no logical form")
        try:
            tags = tags_from_form(sentence.words, sentence.logical_form)
        except InputError as error:
            raise InputError(f"{sentence.place()}: {error}") from None
        classes = {name: list(getattr(tags, name)) for name in KINDS}
        classes["parent"] = [self._parent_class(i, parent) for i, parent in enumerate(tags.parent)]
        return classes

    def _parent_class(self, word: int, parent: int) -> str:
        if parent == NO_PARENT:
            return _PREVIOUS if self.settings.none_as_previous else _NO_PARENT
        return str(parent - word if self.settings.parent == "relative" else parent)

    def _parent_of(self, word: int, name: str) -> int:
        if name == _NO_PARENT:
            return NO_PARENT
        return int(name) + (word if self.settings.parent == "relative" else 0)

    def _number(self, kind: str, name: str) -> int:
        if kind == "parent" and self.settings.points:
            return 0 if name == _NO_PARENT else int(name) + 1  # the classes of a `Pointer`
        return self.labels[kind].number(name)

    def _name(self, kind: str, number: int) -> str:
        if kind == "parent" and self.settings.points:
            return str(number - 1) if number else _NO_PARENT
        return self.labels[kind].name(number)

    def _tags(self, numbers: Mapping[str, Sequence[int]]) -> WordTags:
        """The tags of a sentence from their class numbers."""
        names = {kind: [self._name(kind, n) for n in numbers[kind]] for kind in KINDS}
        parents = [self._parent_of(word, name) for word, name in enumerate(names.pop("parent"))]
        return WordTags(tuple(parents), **{kind: tuple(texts) for kind, texts in names.items()})

    def _nothing(self) -> dict[str, int]:
        """The class numbers of "no parent" and "no verb name", if the training data has them."""
        names = {kind: labels.names for kind, labels in self.labels.items()}
        if self.settings.points:
            names["parent"] = [_NO_PARENT]
        return {kind: self._number(kind, x) for kind, x in _NOTHING.items() if x in names[kind]}

    def _chosen(self, logits: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The predicted classes, (B, n) for each kind of tag."""
        if self.settings.by_pattern:
            return likeliest_together(logits, self.patterns, self._number, self._nothing())
        return {kind: of_kind.argmax(-1) for kind, of_kind in logits.items()}

    # The protocol

    def fields_of(self, sentence: Sentence, word_of: Sequence[int]) -> EncodedSentence:
        row = {
            kind: [self._number(kind, name) for name in names]
            for kind, names in self._classes_of(sentence).items()
        }
        row["case"] = [self.cases.number(sentence.label or "")] * len(sentence)
        return row

    def warnings(self) -> list[str]:
        unseen = (labels.take_warnings(f"values of {kind}") for kind, labels in self.labels.items())
        return [*super().warnings(), *chain.from_iterable(unseen)]

    def targets(self, tokens: Tokens) -> Targets:
        targets = {kind: tokens[kind] for kind in KINDS}
        cases = tokens["case"][first_words(tokens.lengths)]
        return Targets(tokens["words"], of_words=targets, of_sentences={"case": cases})

    def loss(self, output: Output, batch: Batch) -> Tensor:
        """The sum of the losses of the five kinds of tags."""
        logits = output.readout(output.representation, batch.mask)
        losses = [weighted_loss(of_kind, batch, kind) for kind, of_kind in logits.items()]
        return torch.stack(losses).sum()

    def count(self, output: Output, batch: Batch) -> CountsSoFar:
        counts: defaultdict[str, float | Tensor] = defaultdict(float)
        logits = output.readout(output.representation, batch.mask)
        predicted = self._chosen(logits)
        right = torch.ones(len(batch.words), dtype=torch.bool, device=batch.words.device)
        for kind, of_kind in logits.items():
            target = batch.targets[kind]
            counts["loss"] += sentence_losses(of_kind, target).sum()
            right &= ((predicted[kind] == target) | (target == IGNORE)).all(1)
        cases = batch.targets["case"].tolist()
        for row, (case, is_right) in enumerate(zip(cases, right.tolist(), strict=True)):
            name = self.cases.name(case)
            same_form = is_right or self._same_form(row, predicted, batch)
            for what, value in (("all", 1), ("right", is_right), ("same form", same_form)):
                counts[what] += value
                counts[f"{what}/{name}"] += value
        return counts

    def _same_form(self, row: int, predicted: Mapping[str, Tensor], batch: Batch) -> bool:
        """Whether a sentence with wrong tags has the right logical form nevertheless."""
        length = int(batch.mask[row].sum())
        if length == 1:
            return False  # the form of a single word is not rebuilt from its tags
        ids = batch.words[row, :length].tolist()
        # Unknown words count as different from each other.
        words = [self.vocabulary.words[i] if i else f"<unk {at}>" for at, i in enumerate(ids)]
        gold, guess = (
            self._tags({kind: tags[kind][row, :length].tolist() for kind in KINDS})
            for tags in (batch.targets, predicted)
        )
        return form_from_tags(words, gold) == form_from_tags(words, guess)

    def metrics(self, counts: Counts) -> dict[str, float]:
        """Over all sentences, and for each case (kind of generalisation) if there are several."""
        sentences = max(counts["all"], 1)
        accuracy = counts["right"] / sentences
        figures = {
            "loss": counts["loss"] / sentences,
            "accuracy": accuracy,
            "exact match": counts["same form"] / sentences,
            "score": round(accuracy, 4),  # rounded as published; the loss decides ties
        }
        cases = sorted(key.partition("/")[2] for key in counts if key.startswith("all/"))
        if len(cases) > 1:
            for case in cases:
                figures[f"accuracy/{case}"] = counts[f"right/{case}"] / counts[f"all/{case}"]
        return figures

    def answer(
        self, output: Output, words: Sequence[str], word_of: Sequence[int]
    ) -> dict[str, Any]:
        vectors = output.representation
        mask = torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        logits = output.readout(vectors, mask)
        chosen = self._chosen(logits)
        tags = self._tags({kind: of_kind[0].tolist() for kind, of_kind in chosen.items()})
        values = {kind: list(getattr(tags, kind)) for kind in KINDS}
        return {"words": words, "tags": values, "logical_form": form_from_tags(words, tags)}

    def as_text(self, answer: Mapping[str, Any]) -> str:
        return answer["logical_form"]


def _pattern(parent: str, role: str, category: str, noun_type: str, verb_name: str) -> Pattern:
    return Pattern(role, category, noun_type, verb_name != "", parent != _NO_PARENT)
