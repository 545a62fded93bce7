"""A trained model's answers for new sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from probformer.errors import InputError
from probformer.tasks.mlm import MaskedLM
from probformer.tasks.tagging import Tagging
from probformer.training.run_folder import Run, load_run

MASK = "<mask>"


def predict_lines(folder: Path, lines: Iterable[str], as_json: bool = False) -> Iterator[str]:
    """One answer a sentence, as text or as JSON."""
    run = load_run(folder)
    for line in lines:
        words = line.split()
        if not words:
            continue
        answer = predict(run, words)
        yield json.dumps(answer, ensure_ascii=False) if as_json else _as_text(answer)


@torch.no_grad()
def predict(run: Run, words: list[str], top: int = 5) -> dict[str, Any]:
    """The tags of the words, or the likeliest words for each <mask>."""
    vocabulary = run.vocabulary
    ids, word_of = vocabulary.encode(words)
    ids = [vocabulary.mask if words[w] == MASK else i for i, w in zip(ids, word_of, strict=True)]
    tokens = torch.tensor([ids])
    read, _ = run.model(tokens, torch.ones_like(tokens, dtype=torch.bool))
    if isinstance(run.task, Tagging):
        firsts = [word_of.index(word) for word in range(len(words))]
        best = run.model.head(read[0, firsts]).argmax(-1).tolist()
        return {"words": words, "tags": [run.task.tags[tag] for tag in best]}
    assert isinstance(run.task, MaskedLM)
    asked = [position for position, word in enumerate(word_of) if words[word] == MASK]
    if not asked:
        raise InputError(f"a sentence must have a {MASK} to fill, got {' '.join(words)!r}")
    probabilities = run.model.head(read[0, asked]).softmax(-1)
    best = probabilities.topk(min(top, probabilities.shape[-1]))
    fillers = [
        {vocabulary.words[i]: round(p, 4) for i, p in zip(row, values, strict=True)}
        for row, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    return {"words": words, "masks": fillers}


def _as_text(answer: dict[str, Any]) -> str:
    if "tags" in answer:
        pairs = zip(answer["words"], answer["tags"], strict=True)
        return " ".join(f"{word}/{tag}" for word, tag in pairs)
    fillers = iter(answer["masks"])
    filled = [next(iter(next(fillers))) if w == MASK else w for w in answer["words"]]
    details = [", ".join(f"{w} {p:.2f}" for w, p in row.items()) for row in answer["masks"]]
    return " ".join(filled) + "".join(f"\n  {detail}" for detail in details)
