"""A trained model's answers for new sentences."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from probformer.data.vocabulary import MASK, Vocabulary
from probformer.errors import counted, require
from probformer.runs.run_folder import Run, load_run
from probformer.viz.words import shown

_TOGETHER = 64
_SHOWN = 10


def predict_lines(folder: Path, lines: Iterable[str], as_json: bool = False) -> Iterator[str]:
    """One answer a line, as text or as JSON; a blank line has a blank answer."""
    run = load_run(folder)
    run.model.to("cuda" if torch.cuda.is_available() else "cpu")
    unknown: dict[str, None] = {}
    numbered = enumerate(lines, 1)
    while chunk := [(number, line.split()) for number, line in islice(numbered, _TOGETHER)]:
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
    """That the words fit into the positions a transformer has learned, if it has."""
    places = run.model.encoder.settings.max_words
    if places is not None:
        length = len(run.vocabulary.encode(words).ids)
        table = f"the position table has places for {places}"
        require(length <= places, f"{where} has {length} tokens, {table}")


def note_unknown(run: Run, words: Iterable[str]) -> None:
    """Name on standard error the words that the model does not know."""
    unknown = [word for word in dict.fromkeys(words) if _is_unknown(run, word)]
    if unknown:
        listed = ", ".join(map(shown, unknown[:_SHOWN])) + (", …" if len(unknown) > _SHOWN else "")
        print(f"note: {counted(len(unknown), 'unknown word')}: {listed}", file=sys.stderr)


def _is_unknown(run: Run, word: str) -> bool:
    return run.vocabulary.count_unknown([word]) > 0


@torch.no_grad()
def predict(run: Run, sentences: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """The task's answers for sentences of words; "<mask>" is a word to be guessed."""
    if not sentences:
        return []
    tokens, mask, word_of = encoded_batch(run.vocabulary, sentences)
    device = next(run.model.parameters()).device
    output = run.model(tokens.to(device), mask.to(device), attention=run.task.needs_heads)
    return [
        run.task.answer(output.sentence(row, len(own)), words, own)
        for row, (words, own) in enumerate(zip(sentences, word_of, strict=True))
    ]


def encoded_batch(
    vocabulary: Vocabulary, sentences: Sequence[Sequence[str]]
) -> tuple[Tensor, Tensor, list[list[int]]]:
    """Tokens and mask of a padded batch, and the word that each token belongs to."""
    encoded = [vocabulary.encode(words) for words in sentences]
    longest = max(len(ids) for ids, _ in encoded)
    tokens = torch.zeros(len(sentences), longest, dtype=torch.long)
    mask = torch.zeros(len(sentences), longest, dtype=torch.bool)
    for row, (words, (ids, word_of)) in enumerate(zip(sentences, encoded, strict=True)):
        masked = [
            vocabulary.mask if words[w] == MASK else i for i, w in zip(ids, word_of, strict=True)
        ]
        tokens[row, : len(ids)] = torch.tensor(masked)
        mask[row, : len(ids)] = True
    return tokens, mask, [word_of for _, word_of in encoded]
