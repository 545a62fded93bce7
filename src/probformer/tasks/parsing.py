"""Parsing: for each sentence a dependency tree, labels of arcs, and the tags of `task.tags`.

The heads of one channel, with their labels, are the tree. The loss is −log P(gold tree and labels)
under Q of the last iteration. Where only a part of them is known, it is −log of the sum over all
trees and labels that agree with it:

    loss = log Z(θ) − log Z(θ restricted to what is known)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from probformer.config import EncoderSettings, ParsingSettings, TransformerSettings
from probformer.crf.arc_distribution import ArcDistribution
from probformer.crf.evidence import Evidence
from probformer.crf.structures import ProjectiveTrees, SpanningTrees, Structure, structure_named
from probformer.data.attachment import is_punctuation
from probformer.data.breakdown import ScoreTable, breakdown
from probformer.data.encoded import EncodedSentence, EncodedSplit, Tokens
from probformer.data.parsed import Parse
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.errors import InputError, counted, require
from probformer.models.biaffine import Biaffine
from probformer.models.encoder import Encoder
from probformer.models.readout import Output
from probformer.models.transformer import Transformer
from probformer.sentinels import UNOBSERVED
from probformer.tasks.batch import Batch, Targets
from probformer.tasks.labels import IGNORE, Labels
from probformer.tasks.parse_counts import (
    UNKNOWN,
    GoldParse,
    count_details,
    count_scores,
    gold_parse,
    parsing_scores,
)
from probformer.tasks.parse_distribution import ParseDistribution
from probformer.tasks.task import Counts, CountsSoFar, Task, weighted_loss

_CountSentence = Callable[[GoldParse, Parse], Mapping[str, float]]
LABELS = "deprel"
"""The column of the data that has the labels of arcs."""


class Parsing(Task):
    """The classes are the labels and tags of the training data; others count as wrong."""

    name = "task.kind 'parsing'"
    counts_confidences = True

    def __init__(self, settings: ParsingSettings, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.settings = settings
        self.labels = Labels()
        self.tags = {column: Labels() for column in settings.tags}
        self.structure = structure_named(settings.heads or "tree", settings.single_root)
        self._gold = SpanningTrees(settings.single_root)
        self._has_channel, self._channels = True, 1
        self._opened = [0, 0]  # heads and sentences of which the structure has no tree

    @property
    def metric(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "las" if len(self.labels) else "uas"

    @property
    def reads_single_words(self) -> bool:
        return False

    @property
    def needs_heads(self) -> bool:
        """Whether the heads are those of a channel, and not of a layer of the task's own."""
        return self._has_channel

    @property
    def arc_label_names(self) -> Sequence[str]:
        return self.labels.names

    @property
    def predicts_trees(self) -> bool:
        return True

    @property
    def channel(self) -> int | None:
        return self.settings.channel if self._has_channel else None

    def learn_classes(self, sentences: Iterable[Sentence]) -> None:
        labels, heads = set[str](), 0
        tags: dict[str, set[str]] = {column: set() for column in self.tags}
        for sentence in self.usable(sentences):
            self.check(sentence)
            heads += sentence.heads is not None
            labels |= {*sentence.columns.get(LABELS, ())}
            for column, found in tags.items():
                found |= {*sentence.columns[column]}
        require(heads > 0, "task.kind 'parsing' needs training data with heads, got none")
        self.labels = Labels(sorted(labels - {UNKNOWN}))
        self.tags = {column: Labels(sorted(found - {UNKNOWN})) for column, found in tags.items()}

    def encoder_settings(
        self, settings: EncoderSettings | TransformerSettings
    ) -> EncoderSettings | TransformerSettings:
        channel = self.settings.channel
        given = self.settings.heads or settings.heads_of(channel) or "tree"
        if isinstance(given, Structure):
            self.structure = given.of_channel(channel)
        elif isinstance(given, str):
            self.structure = structure_named(given, self.settings.single_root)
        return settings.for_parser(channel, len(self.labels))

    def check(self, sentence: Sentence) -> None:
        _check_tree(sentence, self._gold)
        for column in self.tags:
            if column not in sentence.columns:
                known = ", ".join(sentence.columns) or "none"
                message = f"task.tags must be columns of the data ({known}), got {column!r}"
                raise InputError(message)

    def state(self) -> dict[str, Any]:
        classes = {column: labels.names for column, labels in self.tags.items()}
        return {"labels": self.labels.names, "classes": classes}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.labels = Labels(state["labels"])
        self.tags = {column: Labels(state["classes"][column]) for column in self.tags}

    def build_readout(self, encoder: Encoder | Transformer) -> nn.Module:
        self.encoder_settings(encoder.settings)
        self._has_channel, self._channels = encoder.infers_heads, encoder.settings.channels
        layers: dict[str, nn.Module] = {
            column: nn.Linear(encoder.width, len(labels)) for column, labels in self.tags.items()
        }
        if not self._has_channel:
            labels = max(len(self.labels), 1)
            layers["arcs"] = Biaffine(encoder.width, labels, encoder.settings.dropout)
        return nn.ModuleDict(layers)

    # From sentences to batches

    def fields_of(self, sentence: Sentence, word_of: Sequence[int]) -> EncodedSentence:
        self.check(sentence)
        n = len(sentence)
        gold = [UNOBSERVED] * n if sentence.heads is None else [*sentence.heads]
        labels, upos = sentence.columns.get(LABELS, (UNKNOWN,) * n), sentence.columns.get("upos")
        fields = {
            "gold_head": gold,
            "head": self._learnable(gold),
            "label": [_number(self.labels, label) for label in labels],
            "punctuation": is_punctuation(sentence.words, upos).astype(int).tolist(),
        }
        tags = {
            column: [_number(names, tag) for tag in sentence.columns[column]]
            for column, names in self.tags.items()
        }
        return fields | tags

    def _learnable(self, gold: list[int]) -> list[int]:
        """Heads with `IGNORE` where they are not known, or where no tree of the structure has them.

        A head is left to the partial likelihood until the rest is part of such a tree.
        """
        heads = gold.copy()
        while (fault := self.structure.fault(heads)) is not None:
            heads[fault[0]] = UNOBSERVED
        opened = sum(a != b for a, b in zip(gold, heads, strict=True))
        self._opened[0] += opened
        self._opened[1] += opened > 0
        return [IGNORE if head == UNOBSERVED else head for head in heads]

    def warnings(self) -> list[str]:
        found = [*super().warnings(), *self.labels.take_warnings("labels of arcs")]
        for column, names in self.tags.items():
            found += names.take_warnings(f"tags of column {column}")
        heads, sentences = self._opened
        if heads:
            where = f"{counted(heads, 'head')} in {counted(sentences, 'sentence')}"
            found.append(f"arcs cross: the loss leaves {where} open, scores do not")
        self._opened = [0, 0]
        return found

    def why_no_metrics(self, split: EncodedSplit) -> str | None:
        known = (np.asarray(split.fields["gold_head"]) != UNOBSERVED).any()
        return None if known else "has no sentence with heads to compare with"

    def targets(self, tokens: Tokens) -> Targets:
        names = [name for name in tokens.split.fields if name not in ("words", "heads")]
        return Targets(tokens["words"], of_words_by_chunk={name: tokens[name] for name in names})

    # Loss and metrics

    def arcs(self, output: Output, mask: Tensor) -> ArcDistribution:
        """The distribution over heads and labels.

        Args:
            output: Of a batch of padded sentences.
            mask: (B, n), true where there is a word.
        """
        posterior, channel = output.posterior, self.settings.channel
        if not self._has_channel:
            scores = self._layers(output)["arcs"](output.representation)
        elif posterior.arc_label_scores is not None:
            scores = posterior.arc_label_scores.permute(0, 3, 1, 2)
        else:
            assert posterior.head_scores is not None
            scores = posterior.head_scores[:, channel : channel + 1]
        return ArcDistribution.of(scores, mask, self.structure)

    def _layers(self, output: Output) -> nn.ModuleDict:
        assert isinstance(output.readout, nn.ModuleDict)
        return output.readout

    def _tag_scores(self, output: Output) -> dict[str, Tensor]:
        layers = self._layers(output)
        return {column: layers[column](output.representation) for column in self.tags}

    def loss(self, output: Output, batch: Batch) -> Tensor:
        losses = self._sentence_losses(self.arcs(output, batch.mask), batch)
        weights = batch.weights["head"].amax(1)  # one over the chunk's heads, in each sentence
        total = (losses * weights).sum().to(output.representation.dtype)
        for column, scores in self._tag_scores(output).items():
            total = total + weighted_loss(scores, batch, column)
        return total

    def _sentence_losses(self, arcs: ArcDistribution, batch: Batch) -> Tensor:
        known = arcs.given(batch.targets["head"], batch.targets["label"])
        return arcs.log_partition() - known.log_partition()

    def count(self, output: Output, batch: Batch) -> CountsSoFar:
        return self._count(output, batch, count_scores)

    def count_details(self, output: Output, batch: Batch) -> CountsSoFar:
        return self._count(output, batch, count_details)

    def _count(self, output: Output, batch: Batch, count: _CountSentence) -> CountsSoFar:
        found = self.distribution(output, batch.mask)
        total = {"loss": float(self._sentence_losses(found.arcs, batch).detach().sum())}
        total["heads"] = float((batch.targets["head"] != IGNORE).sum())
        targets = {name: target.cpu().numpy() for name, target in batch.targets.items()}
        for row, parse in enumerate(found.best(self.settings.decoder)):
            own = {name: target[row, : len(parse.heads)] for name, target in targets.items()}
            for name, value in count(gold_parse(own, self.labels, self.tags), parse).items():
                total[name] = total.get(name, 0.0) + value
        return total

    def metrics(self, counts: Counts) -> dict[str, float]:
        scores = parsing_scores(counts, self.tags)
        loss = counts["loss"] / max(counts["heads"], 1)
        return {"loss": loss, **scores, "score": scores[self.metric]}

    def details(self, counts: Counts) -> list[ScoreTable]:
        return breakdown(counts)

    # Answers

    def check_given(self, sentence: Sentence, decoder: str | None = None) -> None:
        """Check that there is a tree with the heads that a sentence is given.

        Args:
            sentence: Its `heads` may be known for some words only.
            decoder: That of the tree; by default the one of the settings.

        Raises:
            InputError: There is no such tree.
        """
        projective = [ProjectiveTrees(self.settings.single_root)]
        for structure in (self._gold, self.structure, *(projective * (decoder == "projective"))):
            _check_tree(sentence, structure)

    def evidence(self, heads: Tensor, labels: Tensor) -> Evidence | None:
        """What is known of a tree as evidence for the encoder; None if that infers no heads.

        Args:
            heads: (B, n): positions, `sentinels.ROOT` or `sentinels.UNOBSERVED`.
            labels: (B, n): labels of arcs, or `sentinels.UNOBSERVED`.
        """
        if not self._has_channel:
            return None
        observed = heads.new_full((len(heads), self._channels, heads.shape[1]), UNOBSERVED)
        observed[:, self.settings.channel] = heads
        return Evidence(heads=observed, arc_labels=labels if len(self.labels) else None)

    def distribution(self, output: Output, mask: Tensor) -> ParseDistribution:
        """The distribution over the parses of a batch.

        Args:
            output: The model's output.
            mask: (B, n), true where there is a word; words come first.
        """
        tags = {
            column: (self.tags[column], scores.float().softmax(-1))
            for column, scores in self._tag_scores(output).items()
        }
        lengths: list[int] = mask.sum(1).tolist()
        arcs = self.arcs(output, mask)
        return ParseDistribution(arcs, lengths, self.labels, tags, self.settings.single_root)

    def parses(self, output: Output, mask: Tensor, heads: Tensor | None = None) -> list[Parse]:
        """The predicted trees of a batch.

        Args:
            output: The model's output.
            mask: (B, n), true where there is a word; words come first.
            heads: (B, n), heads that the trees are to have, `UNOBSERVED` where any will do.
        """
        found = self.distribution(output, mask)
        found = found if heads is None else found.given(heads)
        return found.best(self.settings.decoder)

    def answer(
        self, output: Output, words: Sequence[str], word_of: Sequence[int]
    ) -> dict[str, Any]:
        mask = torch.ones(1, len(words), dtype=torch.bool, device=output.representation.device)
        (parse,) = self.parses(output, mask)
        return {"words": words, **parse.as_dict()}

    def as_text(self, answer: Mapping[str, Any]) -> str:
        """Each word with the number of its head, 0 for ROOT, and the label."""
        columns = [answer["words"], (str(head + 1) for head in answer["heads"])]
        columns += [answer["labels"]] if "labels" in answer else []
        return " ".join("/".join(parts) for parts in zip(*columns, strict=True))


def _check_tree(sentence: Sentence, structure: Structure) -> None:
    fault = None if sentence.heads is None else structure.fault(sentence.heads)
    if fault is not None:
        word, reason = fault
        where = f"{sentence.place(word)}: word {word + 1}, {sentence.words[word]!r},"
        raise InputError(f"{where} {reason}")


def _number(names: Labels, name: str) -> int:
    return IGNORE if name == UNKNOWN else names.number(name)
