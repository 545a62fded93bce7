"""Predictions of a trained model for new sentences."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from probformer.data.layout import padded
from probformer.data.vocabulary import MASK, Vocabulary
from probformer.errors import InputError, counted, is_out_of_memory, require
from probformer.models.readout import evaluation_mode
from probformer.runs.run_folder import Run, load_run
from probformer.viz.words import escaped

_BATCH = 64
_NAMED = 10
"""The maximum number of unknown words that are listed."""


def predict_lines(folder: Path, lines: Iterable[str], as_json: bool = False) -> Iterator[str]:
    """Predict line by line; blank lines stay blank.

    Args:
        folder: A run folder.
        lines: Sentences, with spaces between words.
        as_json: Whether predictions are JSON objects instead of text.

    Yields:
        The prediction for each line.

    Raises:
        InputError: The folder has no trained model, or a sentence is too long for it.
    """
    run = load_run(folder)
    run.model.to("cuda" if torch.cuda.is_available() else "cpu")
    unknown: dict[str, None] = {}
    numbered = enumerate(lines, 1)
    while chunk := [(number, line.split()) for number, line in islice(numbered, _BATCH)]:
        for number, words in chunk:
            check_length(run, words, f"line {number}")
        together = [words for _, words in chunk]
        sentences = [words for words in together if words]
        answers = iter(predict(run, sentences))
        unknown |= {w: None for words in sentences for w in words if _is_unknown(run, w)}
        for words in together:
            answer = next(answers) if words else {"words": []}
            if as_json:
                yield json.dumps(answer, ensure_ascii=False)
            else:
                yield run.task.as_text(answer) if words else ""
    note_unknown(run, unknown)


def check_length(run: Run, words: Sequence[str], where: str) -> None:
    """Check a sentence against the position table, if the encoder has one."""
    positions = run.model.encoder.settings.max_words
    if positions is not None:
        length = len(run.vocabulary.encode(words).ids)
        table = f"the position table has places for {positions}"
        require(length <= positions, f"{where} has {length} tokens, {table}")


@contextmanager
def explained_if_too_long(words: int) -> Iterator[None]:
    """Within the context, lack of memory is an `InputError` that names the sentence's length."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        what = f"a sentence of {counted(words, 'word')} is too long for this machine"
        raise InputError(f"out of memory: {what}") from None


def note_unknown(run: Run, words: Iterable[str]) -> None:
    """Print the unknown words to standard error."""
    unknown = [word for word in dict.fromkeys(words) if _is_unknown(run, word)]
    if unknown:
        listed = ", ".join(map(escaped, unknown[:_NAMED])) + (
            ", …" if len(unknown) > _NAMED else ""
        )
        print(f"note: {counted(len(unknown), 'unknown word')}: {listed}", file=sys.stderr)


def _is_unknown(run: Run, word: str) -> bool:
    return run.vocabulary.count_unknown([word]) > 0


@torch.no_grad()
def predict(run: Run, sentences: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """The task's predictions for sentences, computed on the device where the model is.

    Args:
        run: A trained model, see `load_run`.
        sentences: The words of each sentence, at least one; "<mask>" is a word to predict.

    Returns:
        A dictionary for each sentence: "words" and, by task, "masks" (for each mask, probabilities
        by word), "tags", "tags" and "entities", "label" and "probabilities", or "tags" and
        "logical_form".
    """
    if not sentences:
        return []
    tokens, mask, word_of = encoded_batch(run.vocabulary, sentences)
    device = next(run.model.parameters()).device
    with evaluation_mode(run.model):
        output = run.model(tokens.to(device), mask.to(device), attention=run.task.needs_heads)
        return [
            run.task.answer(output.sentence(row, len(own)), words, own)
            for row, (words, own) in enumerate(zip(sentences, word_of, strict=True))
        ]


def encoded_batch(
    vocabulary: Vocabulary, sentences: Sequence[Sequence[str]]
) -> tuple[Tensor, Tensor, list[list[int]]]:
    """Tokens (B, n), mask (B, n), and for each sentence the word that each token belongs to."""
    encoded = [vocabulary.encode(words) for words in sentences]
    ids = [
        vocabulary.mask if words[at] == MASK else index
        for words, (pieces, word_of) in zip(sentences, encoded, strict=True)
        for index, at in zip(pieces, word_of, strict=True)
    ]
    layout = padded(np.array([len(pieces) for pieces, _ in encoded]))
    tokens = torch.from_numpy(layout.place(np.array(ids), 0))
    mask = torch.from_numpy(layout.place(np.ones(len(ids), np.bool_), False))
    return tokens, mask, [word_of for _, word_of in encoded]
