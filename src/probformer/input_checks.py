"""What `mean_field` refuses, before it starts. Nothing is silently broadcast or cast."""

from __future__ import annotations

import torch
from torch import Tensor

from probformer.config import Inference
from probformer.errors import InputError, require, require_between
from probformer.evidence import FREE, ROOT, Evidence
from probformer.normalisers import get_normaliser
from probformer.potentials import Potentials


def check_inputs(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    inference: Inference,
    dropout: float,
    evidence: Evidence | None,
) -> None:
    if torch.compiler.is_compiling():
        return  # messages and values do not belong in a graph
    _check_tensors(unary, mask, potentials)
    require_between("dropout", dropout, 0, 1, high_open=True)
    get_normaliser("normaliser_z", inference.normaliser_z)
    get_normaliser("normaliser_h", inference.normaliser_h)
    evidence = evidence or Evidence()
    _check_evidence_shapes(unary, potentials, evidence)
    if unary.is_cuda and torch.cuda.is_current_stream_capturing():
        return  # a graph that is being captured cannot wait for values
    finite = torch.isfinite(unary) | ~mask.unsqueeze(-1)
    if not bool(finite.all()):
        sentence, word, label = (~finite).nonzero()[0].tolist()
        value = unary[sentence, word, label].item()
        where = f"sentence {sentence}, word {word}, label {label}"
        raise InputError(f"unary must be finite, got {value} at {where}")
    _check_evidence_values(mask, unary.shape[-1], potentials, evidence)


def _check_tensors(unary: Tensor, mask: Tensor, potentials: Potentials) -> None:
    require(isinstance(unary, Tensor), f"unary must be a tensor, got {type(unary).__name__}")
    shape, d = tuple(unary.shape), potentials.words.labels
    require(unary.dim() == 3, f"unary must have shape (batch, words, labels), got {shape}")
    require(unary.is_floating_point(), f"unary must hold floating-point numbers, got {unary.dtype}")
    require(shape[-1] == d, f"unary must have {d} labels, as the potentials have, got {shape[-1]}")
    require(isinstance(mask, Tensor), f"mask must be a tensor, got {type(mask).__name__}")
    require(mask.dtype == torch.bool, f"mask must be of type bool, got {mask.dtype}")
    given = tuple(mask.shape)
    require(given == shape[:2], f"mask must have unary's shape {shape[:2]}, got {given}")


def _check_evidence_shapes(unary: Tensor, potentials: Potentials, evidence: Evidence) -> None:
    batch, n, _ = unary.shape
    has_root, features = potentials.root is not None, potentials.globals
    require(has_root or evidence.root is None, "evidence.root is given, but there is no root")
    require(
        features is not None or evidence.globals is None,
        "evidence.globals is given, but there are no global features",
    )
    wanted = {
        "labels": (batch, n),
        "heads": (batch, potentials.words.channels, n),
        "root": (batch,),
        "globals": (batch, features.channels, n) if features else (),
    }
    for name, shape in wanted.items():
        index = getattr(evidence, name)
        if index is None:
            continue
        given = tuple(index.shape)
        require(given == shape, f"evidence.{name} must have shape {shape}, got {given}")
        require(index.dtype == torch.long, f"evidence.{name} must be long, got {index.dtype}")


def _check_evidence_values(
    mask: Tensor, d: int, potentials: Potentials, evidence: Evidence
) -> None:
    n, on_words = mask.shape[1], mask.unsqueeze(1)
    if evidence.labels is not None:
        _refuse(
            "labels",
            evidence.labels,
            (evidence.labels >= d) | (evidence.labels < FREE),
            f"0 … {d - 1}",
        )
        _refuse(
            "labels",
            evidence.labels,
            (evidence.labels != FREE) & ~mask,
            "on a word, not on padding",
        )
    if evidence.root is not None and potentials.root is not None:
        top = potentials.root.labels
        _refuse(
            "root", evidence.root, (evidence.root >= top) | (evidence.root < FREE), f"0 … {top - 1}"
        )
    if evidence.heads is not None:
        heads, position = evidence.heads, torch.arange(n, device=mask.device)
        lowest = ROOT if potentials.root is not None else FREE
        _refuse("heads", heads, (heads >= n) | (heads < ROOT), f"0 … {n - 1}, or ROOT ({ROOT})")
        _refuse("heads", heads, heads < lowest, "a word: there is no root")
        _refuse("heads", heads, heads == position, "another word: no word heads itself")
        target = mask.unsqueeze(1).expand_as(heads).gather(2, heads.clamp(min=0))
        bad = (heads != FREE) & ~on_words | (heads >= 0) & ~target
        _refuse("heads", heads, bad, "from a word to a word, not padding")
    if evidence.globals is not None and potentials.globals is not None:
        index, top = evidence.globals, potentials.globals.count
        _refuse("globals", index, (index >= top) | (index < FREE), f"0 … {top - 1}")
        _refuse("globals", index, (index != FREE) & ~on_words, "on a word, not on padding")
        if potentials.globals.mode == "all-dep" and evidence.heads is not None:
            twice = (index != FREE) & (evidence.heads != FREE)
            _refuse("globals", index, twice, "free where evidence.heads already names a head")


def _refuse(name: str, index: Tensor, bad: Tensor, allowed: str) -> None:
    if bool(bad.any()):
        where = bad.nonzero()[0].tolist()
        value = index[tuple(where)].item()
        raise InputError(
            f"evidence.{name} must be {allowed}, or FREE ({FREE}); got {value} at {where}"
        )
