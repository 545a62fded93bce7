"""Named entities: spans of words, as BIOES tags."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from probformer.config import NERSettings
from probformer.data.sentence import Sentence
from probformer.data.spans import (
    SchemeReader,
    Span,
    f1,
    spans_by_conlleval,
    spans_by_vote,
    spans_strict,
)
from probformer.data.vocabulary import Vocabulary
from probformer.models.readout import Output
from probformer.tasks.labels import IGNORE
from probformer.tasks.tagging import Tagging
from probformer.tasks.task import Counts, CountsSoFar

_SPANS = {"f1": spans_by_conlleval, "strict f1": spans_strict, "voted f1": spans_by_vote}
"""By metric, the function that finds the spans in a sequence of tags."""


class NER(Tagging):
    """Tagging with BIOES tags, evaluated by the F1 of spans.

    The metrics differ in how spans are taken from ill-formed sequences of predicted tags: "f1" as
    conlleval does, "strict f1" from well-formed spans only, "voted f1" as for the paper's figures.
    """

    def __init__(self, settings: NERSettings, vocabulary: Vocabulary) -> None:
        super().__init__(settings, vocabulary)
        self.metric = settings.metric
        self._reader = SchemeReader()

    def tags_of(self, sentence: Sentence) -> Sequence[str]:
        return self._reader.to_bioes(super().tags_of(sentence), sentence.place)

    def count_tags(self, logits: Tensor, targets: Tensor) -> CountsSoFar:
        counts: defaultdict[str, float | Tensor] = defaultdict(float)
        counts |= super().count_tags(logits, targets)
        for gold, guess in zip(targets.tolist(), logits.argmax(-1).tolist(), strict=True):
            positions = [i for i, tag in enumerate(gold) if tag != IGNORE]
            both = [[self.tags.name(tags[i]) for i in positions] for tags in (gold, guess)]
            for name, spans_of in _SPANS.items():
                right, guessed = map(spans_of, both)
                counts[f"{name}: gold"] += len(right)
                counts[f"{name}: guessed"] += len(guessed)
                counts[f"{name}: right"] += len(right & guessed)
        return counts

    def metrics(self, counts: Counts) -> dict[str, float]:
        figures = {
            name: f1(*(counts[f"{name}: {what}"] for what in ("right", "guessed", "gold")))
            for name in _SPANS
        }
        # Rounded as published, which makes ties common: the lower loss then wins.
        return {**super().metrics(counts), **figures, "score": round(figures[self.metric], 4)}

    def answer(
        self, output: Output, words: Sequence[str], word_of: Sequence[int]
    ) -> dict[str, Any]:
        answer = super().answer(output, words, word_of)
        spans = sorted(spans_by_conlleval(answer["tags"]))
        return {**answer, "entities": [_entity(span, words) for span in spans]}

    def as_text(self, answer: Mapping[str, Any]) -> str:
        """The sentence with its entities in brackets."""
        words = list(answer["words"])
        for entity in answer["entities"]:
            words[entity["start"]] = "[" + words[entity["start"]]
            words[entity["end"] - 1] += f" {entity['kind']}]"
        return " ".join(words)


def _entity(span: Span, words: Sequence[str]) -> dict[str, Any]:
    return {**span._asdict(), "text": " ".join(words[span.start : span.end])}
