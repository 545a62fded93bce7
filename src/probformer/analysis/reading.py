"""What a trained model believes about sentences, word by word, after every iteration."""

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
from probformer.errors import InputError, counted, is_out_of_memory, require
from probformer.models.readout import Output
from probformer.runs.prediction import encoded_batch
from probformer.runs.run_folder import Run

_TOGETHER, _PAIRS = 64, 2**17
"""Sentences that are read together: at most so many, with so many pairs of words."""
_NO_WORDS = "a sentence must have words, got none"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reading:
    """A sentence of n words as a run reads it; T iterations, h channels, d labels.

    Of a transformer the iterations are layers and the channels are attention heads. A word of
    several pieces is the dependent that its first piece is, and a head as likely as all of them.
    """

    words: tuple[str, ...]
    heads: Floats
    """(T, h, n, n): row i is the distribution over the word that heads word i."""
    root: Floats | None
    """(T, h, n): the probability that word i is headed by ROOT, or by CLS."""
    labels: Floats | None
    """(T, n, d): the distribution over the labels of each word; a transformer has none."""
    free_energy: Floats | None
    """(T,): where it is defined."""
    output: Output | None = None
    """What the model computes of this sentence, from which the task takes its answer."""

    @property
    def step(self) -> str:
        """What one of the T is called."""
        return "layer" if self.labels is None else "iteration"

    def channel(self, number: int) -> int:
        """The channel of that number, counted from 0."""
        return within("channel", number, self.heads.shape[1])

    def iteration(self, number: int) -> int:
        """The iteration of that number, counted from 1, or from the end with −1."""
        count = len(self.heads)
        if -count <= number < 0:
            return count + number
        return within(self.step, number, count, first=1) - 1

    def over_others(self, at: int) -> tuple[Floats, Floats | None]:
        """Heads (h, n, n) and root (h, n), given that no word heads itself.

        What a transformer attends to itself, a word's pieces to each other and global features
        take is no head: the rest is scaled to add up to 1. A lone word without ROOT has no rest.
        """
        others = self.heads[at] * (1 - np.eye(len(self.words)))
        root = None if self.root is None else self.root[at]
        total = others.sum(-1) if root is None else others.sum(-1) + root
        total = np.where(total > 0, total, 1)
        return others / total[..., None], None if root is None else root / total


def channel_of(given: str, *names: str) -> int | str:
    """What the option --channel of a command says: a number, or one of some names."""
    if given in names:
        return given
    try:
        return int(given)
    except ValueError:
        *first, last = map(repr, names)
        listed = f"{', '.join(first)} or {last}"
        raise InputError(f"channel must be a number, {listed}, got {given!r}") from None


def within(what: str, number: int, count: int, first: int = 0, of: str = "the model") -> int:
    if first <= number < first + count:
        return number
    found = f"{of} has {counted(count, what)}, {first} to {first + count - 1}"
    raise InputError(f"there is no {what} {number}: {found}")


def read_sentences(run: Run, sentences: Iterable[Sequence[str]]) -> Iterator[Reading]:
    """Readings in the order of the sentences."""
    for together in _batches(sentences):
        yield from _read(run, together, None)


def read_sentence(run: Run, words: Sequence[str], evidence: Evidence | None = None) -> Reading:
    """One sentence, where `evidence` has a probabilistic transformer observe some variables."""
    require(len(words) > 0, _NO_WORDS)
    (reading,) = _read(run, [tuple(words)], evidence)
    return reading


@torch.no_grad()
def _read(
    run: Run, together: Sequence[tuple[str, ...]], evidence: Evidence | None
) -> Iterator[Reading]:
    model, device = run.model.eval(), next(run.model.parameters()).device
    tokens, mask, word_of = encoded_batch(run.vocabulary, together)
    observed = {} if evidence is None else {"evidence": evidence}
    try:
        posterior = model.encoder(tokens.to(device), mask.to(device), trace=True, **observed)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        longest = max(map(len, together))
        what = f"a sentence of {counted(longest, 'word')} is too long for this machine"
        raise InputError(f"out of memory: {what}") from None
    steps = posterior.trace
    assert steps
    output = Output(model.encoder.representation(posterior), posterior, model.readout)
    for row, words in enumerate(together):
        alone = output.sentence(row, len(word_of[row]))
        yield _reading(words, np.array(word_of[row]), [_row(step, row) for step in steps], alone)


@torch.no_grad()
def answer_of(run: Run, reading: Reading) -> dict[str, Any]:
    """What the task says about the sentence, from the very inference that was read."""
    assert reading.output is not None
    word_of = run.vocabulary.encode(reading.words).word_of
    return run.task.answer(reading.output, reading.words, word_of)


def _batches(sentences: Iterable[Sequence[str]]) -> Iterator[list[tuple[str, ...]]]:
    """As they come: one long sentence must not make all others as long."""
    batch: list[tuple[str, ...]] = []
    longest = 0
    for sentence in sentences:
        words = tuple(sentence)
        require(len(words) > 0, _NO_WORDS)
        longest = max(longest, len(words))
        if batch and (len(batch) == _TOGETHER or (len(batch) + 1) * longest**2 > _PAIRS):
            yield batch
            batch, longest = [], len(words)
        batch.append(words)
    if batch:
        yield batch


def _row(posterior: Posterior, row: int) -> dict[str, Tensor]:
    names = ("head_marginals", "root_head_marginals", "z_marginals", "free_energy")
    found = {name: getattr(posterior, name) for name in names}
    return {name: value[row] for name, value in found.items() if value is not None}


def _reading(
    words: tuple[str, ...],
    word_of: NDArray[np.int64],
    steps: Sequence[dict[str, Tensor]],
    output: Output,
) -> Reading:
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
    return Reading(
        words,
        heads[:, :, :n, :n][:, :, first] @ belongs,
        None if root is None else root[:, :, first],
        None if labels is None else labels[:, first],
        over_time("free_energy"),
        output,
    )
