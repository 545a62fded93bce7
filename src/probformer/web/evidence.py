"""Clamps of a request as the evidence of inference."""

from __future__ import annotations

import torch

from probformer.analysis.marginals import check_number
from probformer.crf.evidence import Evidence
from probformer.errors import InputError, require
from probformer.runs.run_folder import Run
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.web.requests import Clamps, HeadClamp


def supports_clamps(run: Run) -> bool:
    """False where words are split, as each piece of a word has a head and a label."""
    return run.model.encoder.supports_evidence and not run.vocabulary.subwords


def evidence_of(run: Run, n: int, clamps: Clamps) -> Evidence | None:
    """For one sentence of n words: labels (1, n) and heads (1, h, n); None without clamps."""
    if not clamps.heads and not clamps.labels:
        return None
    encoder = run.model.encoder
    if encoder.settings.label_count is None or not encoder.supports_evidence:
        raise InputError("only a probabilistic transformer can be clamped, this is a transformer")
    require(not run.vocabulary.subwords, "a run that splits words into pieces cannot be clamped")
    heads = torch.full((1, encoder.settings.channels, n), UNOBSERVED)
    for clamp in clamps.heads:
        chosen = _channels(clamp, encoder.settings.channels)
        heads[0, chosen, _word(clamp.word, n)] = _head(clamp, n, encoder.settings.has_root)
    labels = torch.full((1, n), UNOBSERVED)
    for clamp in clamps.labels:
        label = check_number("label", clamp.label, encoder.settings.label_count)
        labels[0, _word(clamp.word, n)] = label
    return Evidence(labels=labels, heads=heads)


def _channels(clamp: HeadClamp, h: int) -> slice | int:
    return slice(None) if clamp.channel == "all" else check_number("channel", clamp.channel, h)


def _head(clamp: HeadClamp, n: int, has_root: bool) -> int:
    if clamp.head == "root":
        require(has_root, "this run has no ROOT that could be a head")
        return ROOT
    require(clamp.head != clamp.word, f"no word heads itself: word {clamp.word} must have another")
    return _word(clamp.head, n)


def _word(number: int, n: int) -> int:
    return check_number("word", number, n, of="the sentence")
