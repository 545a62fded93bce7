"""The marginals that a trained model infers for sentences, word by word, after every iteration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probformer.crf.evidence import Evidence
from probformer.crf.posterior import Posterior
from probformer.errors import InputError, counted, require
from probformer.models.readout import Output, evaluation_mode
from probformer.runs.prediction import encoded_batch, explained_if_too_long
from probformer.runs.run_folder import Run

_MAX_SENTENCES, _MAX_PAIRS = 64, 2**17
"""The largest batch: sentences, and pairs of words with padding."""
_NO_WORDS = "a sentence must have words, got none"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BestArcLabels:
    """The most probable label of each arc, in the channel whose arcs have labels."""

    channel: int
    numbers: NDArray[np.int64]
    """(T, n, n+1): of the arc to word i from word j, or from ROOT in the last column."""
    probabilities: Floats
    """(T, n, n+1): P(label | arc); 0 where the arc has the probability 0."""
    names: Sequence[str] = ()
    """Of the labels; none where they are latent."""

    def name(self, number: int) -> str:
        return self.names[number] if self.names else str(number)

    def texts(self, at: int) -> list[list[str]]:
        """(n, n+1) names, at the index of an iteration; "" where the arc has the probability 0."""
        rows = zip(self.numbers[at].tolist(), self.probabilities[at], strict=True)
        return [
            [self.name(number) if p > 0 else "" for number, p in zip(*row, strict=True)]
            for row in rows
        ]


@dataclass(frozen=True, eq=False)
class SentenceMarginals:
    """Marginals of one sentence of n words; T iterations, h channels, d labels.

    Of a transformer, iterations are layers, channels are attention heads, and marginals are
    attention. A word of several pieces has the heads of its first piece; as a head it has the
    summed probability of all of them.
    """

    words: tuple[str, ...]
    heads: Floats
    """(T, h, n, n): row i is the distribution over the word that heads word i."""
    root: Floats | None
    """(T, h, n): the probability that word i is headed by ROOT, or by CLS."""
    labels: Floats | None
    """(T, n, d): the distribution over the labels of each word; a transformer has none."""
    free_energy: Floats | None
    """(T,): of mean-field inference; None where it is not defined, as for a transformer."""
    output: Output | None = None
    """What the model computes of this sentence, from which the task takes its answer."""
    arc_labels: BestArcLabels | None = None
    """None where arcs have no labels."""

    @property
    def step(self) -> str:
        """ "iteration", or "layer"."""
        return "layer" if self.labels is None else "iteration"

    def channel(self, number: int) -> int:
        """`number`, counted from 0; an error if there is no such channel."""
        return check_number("channel", number, self.heads.shape[1])

    def iteration(self, number: int) -> int:
        """The index of an iteration counted from 1, or from the end with −1."""
        count = len(self.heads)
        if -count <= number < 0:
            return count + number
        return check_number(self.step, number, count, first=1) - 1

    def over_others(self, at: int) -> tuple[Floats, Floats | None]:
        """Heads (h, n, n) and root (h, n) at index `at`, given that no word heads itself.

        Attention of a word to itself, attention between its pieces, and the share of global
        features are left out, and the rest is renormalised. In a sentence of one word, nothing is
        left unless there is a ROOT: its row is 0.
        """
        others = self.heads[at] * (1 - np.eye(len(self.words)))
        root = None if self.root is None else self.root[at]
        total = others.sum(-1) if root is None else others.sum(-1) + root
        total = np.where(total > 0, total, 1)
        return others / total[..., None], None if root is None else root / total


def channel_of(given: str, *names: str) -> int | str:
    """The value of the option --channel: a number, or one of these names."""
    if given in names:
        return given
    try:
        return int(given)
    except ValueError:
        *first, last = map(repr, names)
        listed = f"{', '.join(first)} or {last}"
        raise InputError(f"channel must be a number, {listed}, got {given!r}") from None


def check_number(what: str, number: int, count: int, first: int = 0, of: str = "the model") -> int:
    """The number, if it is one of `count` that are counted from `first`."""
    if first <= number < first + count:
        return number
    found = f"{of} has {counted(count, what)}, {first} to {first + count - 1}"
    raise InputError(f"there is no {what} {number}: {found}")


def infer_sentences(run: Run, sentences: Iterable[Sequence[str]]) -> Iterator[SentenceMarginals]:
    """Run inference on sentences, in batches.

    Args:
        run: A loaded run folder.
        sentences: Each a sequence of words; any number, as they are read lazily.

    Returns:
        Marginals in the order of the sentences.

    Raises:
        InputError: A sentence has no words, or is too long for the memory.
    """
    for batch in _batches(sentences):
        yield from _infer(run, batch, None)


def infer_sentence(
    run: Run, words: Sequence[str], evidence: Evidence | None = None
) -> SentenceMarginals:
    """Run inference on one sentence.

    Args:
        run: A loaded run folder.
        words: The words of the sentence.
        evidence: Observed variables, for a batch of this one sentence; not for a transformer.

    Returns:
        The marginals after every iteration.

    Raises:
        InputError: The sentence has no words, or is too long for the memory.
    """
    require(len(words) > 0, _NO_WORDS)
    (marginals,) = _infer(run, [tuple(words)], evidence)
    return marginals


read_sentence, read_sentences = infer_sentence, infer_sentences  # their names in older notebooks


@torch.no_grad()
def task_answer(run: Run, marginals: SentenceMarginals) -> dict[str, Any]:
    """The task's answer, from the same forward pass as these marginals."""
    assert marginals.output is not None
    word_of = run.vocabulary.encode(marginals.words).word_of
    with evaluation_mode(run.model):
        return run.task.answer(marginals.output, marginals.words, word_of)


@torch.no_grad()
def _infer(
    run: Run, batch: Sequence[tuple[str, ...]], evidence: Evidence | None
) -> Iterator[SentenceMarginals]:
    model, device = run.model, next(run.model.parameters()).device
    tokens, mask, word_of = encoded_batch(run.vocabulary, batch)
    observed = {} if evidence is None else {"evidence": evidence}
    with evaluation_mode(model), explained_if_too_long(max(map(len, batch))):
        posterior = model.encoder(tokens.to(device), mask.to(device), trace=True, **observed)
        representation = model.encoder.representation(posterior)
    steps = posterior.trace
    assert steps
    output = Output(representation, posterior, model.readout)
    for row, words in enumerate(batch):
        alone = output.sentence(row, len(word_of[row]))
        traced = [_marginals_of_row(step, row) for step in steps]
        yield _by_word(run, words, np.array(word_of[row]), traced, alone)


def _batches(sentences: Iterable[Sequence[str]]) -> Iterator[list[tuple[str, ...]]]:
    """In order, so a long sentence closes its batch early instead of padding many others."""
    batch: list[tuple[str, ...]] = []
    longest = 0
    for sentence in sentences:
        words = tuple(sentence)
        require(len(words) > 0, _NO_WORDS)
        longest = max(longest, len(words))
        full = len(batch) == _MAX_SENTENCES or (len(batch) + 1) * longest**2 > _MAX_PAIRS
        if batch and full:
            yield batch
            batch, longest = [], len(words)
        batch.append(words)
    if batch:
        yield batch


def _marginals_of_row(posterior: Posterior, row: int) -> dict[str, Tensor]:
    names = ["head_marginals", "root_head_marginals", "z_marginals", "free_energy"]
    names.append("arc_label_marginals")
    found = {name: getattr(posterior, name) for name in names}
    return {name: value[row] for name, value in found.items() if value is not None}


def _by_word(
    run: Run,
    words: tuple[str, ...],
    word_of: NDArray[np.int64],
    steps: Sequence[dict[str, Tensor]],
    output: Output,
) -> SentenceMarginals:
    """From marginals over pieces, with padding, to marginals over words."""
    n = len(word_of)
    first = np.searchsorted(word_of, np.arange(len(words)))  # the first piece of each word

    def over_time(name: str) -> Floats | None:
        if name not in steps[0]:
            return None
        return torch.stack([step[name] for step in steps]).double().cpu().numpy()

    heads, root = over_time("head_marginals"), over_time("root_head_marginals")
    labels = over_time("z_marginals")
    assert heads is not None
    belongs = (word_of[:, None] == np.arange(len(words))).astype(float)  # pieces × words
    return SentenceMarginals(
        words,
        heads[:, :, :n, :n][:, :, first] @ belongs,
        None if root is None else root[:, :, first],
        None if labels is None else labels[:, first],
        over_time("free_energy"),
        output,
        _best_labels(run, steps, first, belongs),
    )


def _best_labels(
    run: Run, steps: Sequence[dict[str, Tensor]], first: NDArray[np.int64], belongs: Floats
) -> BestArcLabels | None:
    """From P(head piece, label) of the first piece of each word, (padded length, …, m)."""
    channel = run.model.encoder.labelled_channel
    if channel is None:
        return None
    numbers, probabilities = [], []
    for step in steps:
        joint = step["arc_label_marginals"].double().cpu().numpy()
        of_pieces = joint[first, : len(belongs)]
        of_words = np.tensordot(of_pieces, belongs, (1, 0)).swapaxes(1, 2)
        joint = np.concatenate([of_words, joint[first, len(joint) :]], 1)
        total = joint.sum(-1)
        numbers.append(joint.argmax(-1))
        probabilities.append(joint.max(-1) / np.where(total > 0, total, 1))
    names = run.task.arc_label_names
    return BestArcLabels(channel, np.stack(numbers), np.stack(probabilities), names)
