"""`POST /api/v1/infer`: sentences and clamps in, marginals and the task's answers out."""

from __future__ import annotations

from typing import Any

import numpy as np

from probformer.analysis.marginals import (
    Floats,
    SentenceMarginals,
    infer_sentence,
    infer_sentences,
    task_answer,
)
from probformer.errors import require
from probformer.runs.run_folder import Run
from probformer.web.evidence import evidence_of
from probformer.web.limits import SMALLEST_ARC, check_numbers, checked_words
from probformer.web.open_runs import VERSION, OpenRuns
from probformer.web.requests import InferRequest

_STRONGEST_LABELS, _SMALLEST = 5, 0.5e-4  # smaller probabilities round to 0


def infer(runs: OpenRuns, request: InferRequest) -> dict[str, Any]:
    run = runs[request.run]
    sentences = [checked_words(run, sentence) for sentence in request.sentences]
    check_numbers(run, sentences)
    clamped = bool(request.clamps.heads or request.clamps.labels)
    require(not clamped or len(sentences) == 1, "clamps go with exactly one sentence")
    if clamped:
        (words,) = sentences
        inferred = [infer_sentence(run, words, evidence_of(run, len(words), request.clamps))]
    elif run.vocabulary.subwords:  # batches are sized by words, and pieces may be many more
        inferred = (infer_sentence(run, words) for words in sentences)
    else:
        inferred = infer_sentences(run, sentences)
    return {
        "version": VERSION,
        "run": request.run,
        "step": run.model.encoder.settings.step_name,
        "results": [_result(run, marginals) for marginals in inferred],
    }


def _result(run: Run, marginals: SentenceMarginals) -> dict[str, Any]:
    words, labels, energy = marginals.words, marginals.labels, marginals.free_energy
    answer = task_answer(run, marginals)
    return {
        "words": words,
        "unknown": [at for at, word in enumerate(words) if run.vocabulary.count_unknown([word])],
        "heads": marginals.heads,
        "root": marginals.root,
        "labels": None if labels is None else _strongest(labels),
        "arc_labels": _labels_of_arcs(marginals),
        "free_energy": None if energy is None else energy.tolist(),
        "answer": {name: value for name, value in answer.items() if name != "words"},
    }


def _strongest(labels: Floats) -> list[list[list[dict[str, Any]]]]:
    """For each iteration and word of (T, n, d), the strongest labels in falling order."""
    order = np.argsort(-labels, axis=-1, kind="stable")[..., :_STRONGEST_LABELS]
    probabilities = np.take_along_axis(labels, order, axis=-1)
    return [
        [
            [{"label": a, "p": p} for a, p in zip(*word, strict=True) if p >= _SMALLEST]
            for word in zip(*step, strict=True)
        ]
        for step in zip(order.tolist(), probabilities.tolist(), strict=True)
    ]


def _labels_of_arcs(marginals: SentenceMarginals) -> list[list[list[dict[str, Any]]]] | None:
    """For each iteration and word the heads of some probability, with the best label of the arc."""
    labels = marginals.arc_labels
    if labels is None:
        return None
    arcs = marginals.heads[:, labels.channel]
    if marginals.root is not None:
        arcs = np.concatenate([arcs, marginals.root[:, labels.channel, :, None]], -1)
    found: list[list[list[dict[str, Any]]]] = [[[] for _ in step] for step in arcs]
    for t, i, j in np.argwhere(arcs >= SMALLEST_ARC).tolist():
        head = "root" if j == len(marginals.words) else j
        name = labels.name(labels.numbers[t, i, j])
        found[t][i].append({"head": head, "label": name, "p": float(labels.probabilities[t, i, j])})
    return found
