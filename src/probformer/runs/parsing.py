"""Parses of new sentences by the run of a parser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor

from probformer.data.parsed import Parse
from probformer.data.sentence import Sentence
from probformer.errors import InputError, require, require_one_of, require_whole
from probformer.models.readout import evaluation_mode
from probformer.runs.prediction import check_length, encoded_batch, explained_if_too_long
from probformer.runs.run_folder import Run
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.tasks.parse_counts import UNKNOWN
from probformer.tasks.parse_distribution import PARSE_DECODERS
from probformer.tasks.parsing import LABELS, Parsing

_WINDOW = 1000
"""Sentences that are sorted by length together, and kept in memory."""
_MAX_SENTENCES, _MAX_NUMBERS = 64, 2**22
"""The largest batch: sentences; and pairs of words with padding, times labels or samples."""


@dataclass(frozen=True)
class ParseOptions:
    """How sentences are parsed."""

    decoder: str | None = None
    """One of `PARSE_DECODERS`; None for that of the run's settings."""
    keep_heads: bool = False
    """Whether heads that sentences have are given, with the labels of their arcs."""
    samples: int | None = None
    """The number of trees that are drawn from the distribution, in place of the best one."""
    seed: int = 0
    """Of these draws."""

    def __post_init__(self) -> None:
        if self.decoder is not None:
            require_one_of("decoder", self.decoder, PARSE_DECODERS)
        if self.samples is not None:
            require_whole("samples", self.samples)
            message = "decoder chooses the best tree, so it does not go with samples"
            require(self.decoder is None, message)
        require_whole("seed", self.seed, low=0)


def parser_of(run: Run) -> Parsing | None:
    """The task of a run that was trained to parse; None for other runs."""
    return run.task if isinstance(run.task, Parsing) else None


def predict_parses(
    run: Run, sentences: Iterable[Sentence], options: ParseOptions | None = None
) -> Iterator[list[Parse]]:
    """Parse sentences on the device where the model is.

    Sentences are read 1,000 at a time, and parsed in batches of similar lengths.

    Args:
        run: The run of a parser, see `load_run`.
        sentences: Sentences with words; any number, as they are read lazily.
        options: Decoder, given heads, samples.

    Returns:
        For each sentence, in order, its parse; or all samples.

    Raises:
        InputError: The run is no parser, or a sentence is too long, or no tree has its given heads.
    """
    options = ParseOptions() if options is None else options
    task = parser_of(run)
    if task is None:
        raise InputError(f"the run must be of task.kind 'parsing', got {run.settings.task.kind!r}")
    generator = torch.Generator().manual_seed(options.seed)
    rest = iter(sentences)
    while window := list(islice(rest, _WINDOW)):
        for sentence in window:
            check_length(run, sentence.words, sentence.place())
            if options.keep_heads:
                task.check_given(sentence, options.decoder)
        found = dict[int, list[Parse]]()
        for batch in _batches(window, max(len(task.labels), options.samples or 1)):
            parses = _parse(run, task, [window[at] for at in batch], options, generator)
            found |= zip(batch, parses, strict=True)
        yield from (found[at] for at in range(len(window)))


def _batches(sentences: Sequence[Sentence], numbers: int) -> Iterator[list[int]]:
    """The indices of sentences, sorted by length, in batches that fit into memory.

    Args:
        sentences: The sentences.
        numbers: How many numbers are kept for each pair of words.
    """
    batch: list[int] = []
    for at in sorted(range(len(sentences)), key=lambda at: len(sentences[at])):
        size = (len(batch) + 1) * len(sentences[at]) ** 2 * numbers
        if batch and (len(batch) == _MAX_SENTENCES or size > _MAX_NUMBERS):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


@torch.no_grad()
def _parse(
    run: Run,
    task: Parsing,
    sentences: Sequence[Sentence],
    options: ParseOptions,
    generator: torch.Generator,
) -> list[list[Parse]]:
    device = next(run.model.parameters()).device
    words, mask, _ = encoded_batch(run.vocabulary, [sentence.words for sentence in sentences])
    words, mask = words.to(device), mask.to(device)
    known = evidence = None
    if options.keep_heads and any(sentence.heads is not None for sentence in sentences):
        known = [x.to(device) for x in _known(task, sentences, mask.shape[1])]
        evidence = task.evidence(*known)
    longest = len(sentences[-1])
    with evaluation_mode(run.model), explained_if_too_long(longest):
        output = run.model(words, mask, attention=task.needs_heads, evidence=evidence)
        found = task.distribution(output, mask)
        found = found if known is None else found.given(*known)
        if options.samples is None:
            parses = [[parse] for parse in found.best(options.decoder or task.settings.decoder)]
        else:
            parses = found.sample(options.samples, generator)
    if known is None:
        return parses
    return [
        [_with_given_labels(parse, sentence) for parse in own]
        for sentence, own in zip(sentences, parses, strict=True)
    ]


def _known(task: Parsing, sentences: Sequence[Sentence], n: int) -> tuple[Tensor, Tensor]:
    """Given heads and the labels of their arcs (B, n), as far as training has these labels."""
    heads, labels = torch.full((2, len(sentences), n), UNOBSERVED)
    for row, sentence in enumerate(sentences):
        if sentence.heads is not None:
            heads[row, : len(sentence)] = torch.tensor(sentence.heads)
        for word, label in _given_labels(sentence):
            if label in task.labels.names:
                labels[row, word] = task.labels.number(label)
    return heads, labels


def _given_labels(sentence: Sentence) -> Iterator[tuple[int, str]]:
    """The words whose head and label are both given, with these labels."""
    labels = sentence.columns.get(LABELS, ())
    for word, (head, label) in enumerate(zip(sentence.heads or (), labels, strict=False)):
        if head >= ROOT and label != UNKNOWN:
            yield word, label


def _with_given_labels(parse: Parse, sentence: Sentence) -> Parse:
    """Labels that training does not have are kept, too."""
    if parse.labels is None or parse.label_probabilities is None:
        return parse
    labels, certain = [*parse.labels], [*parse.label_probabilities]
    for word, label in _given_labels(sentence):
        labels[word], certain[word] = label, 1.0
    return replace(parse, labels=labels, label_probabilities=certain)
