"""What inference refuses before it starts. Nothing is silently broadcast or cast.

Shapes and kinds are looked at always; values neither in compiled code, where they would break the
graph, nor in a CUDA graph being captured, which cannot wait for them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from probformer.crf.evidence import Evidence
from probformer.crf.potentials import Potentials
from probformer.errors import InputError, require, require_between, require_kind, require_whole
from probformer.packing import Packing
from probformer.sentinels import ROOT, UNOBSERVED


def check_words(words: Tensor, mask: Tensor, vocabulary: int) -> None:
    """Indices (B, n) of words that exist; padding may hold any of them."""
    require_kind("words", words, Tensor)
    if words.dim() != 2:
        raise InputError(f"words must have shape (batch, words), got {tuple(words.shape)}")
    if words.dtype != torch.long:
        raise InputError(f"words must be of type long, got {words.dtype}")
    _check_mask(mask, words, "the words'")
    if not may_read_values(words):
        return
    bad = (words < 0) | (words >= vocabulary)
    if bool(bad.any()):
        sentence, word = bad.nonzero()[0].tolist()
        where = f"{int(words[sentence, word])} at sentence {sentence}, word {word}"
        raise InputError(f"words must be in 0 … {vocabulary - 1}, got {where}")


def check_inputs(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    dropout: float,
    generator: torch.Generator | None,
    evidence: Evidence,
) -> None:
    """What `mean_field` is given."""
    _check_unary(unary, potentials)
    _check_mask(mask, unary, "unary's")
    if not torch.compiler.is_compiling():  # a dynamic float has no text to put into a message
        require_between("dropout", dropout, 0, 1, high_open=True)
    if generator is not None:
        require_kind("generator", generator, torch.Generator)
    _check_evidence_shapes(unary, potentials, evidence)
    if not may_read_values(unary):
        return
    finite = torch.isfinite(unary) | ~mask.unsqueeze(-1)
    if not bool(finite.all()):
        sentence, word, label = (~finite).nonzero()[0].tolist()
        where = f"sentence {sentence}, word {word}, label {label}"
        raise InputError(
            f"unary must be finite, got {unary[sentence, word, label].item()} at {where}"
        )
    _check_evidence_values(mask, potentials, evidence)


def check_packing(packing: Packing, mask: Tensor, first_is_free: bool = False) -> None:
    """Kinds and shapes, and, where values may be read, that sentences follow each other.

    If the first place of each is free, there is no word.
    """
    require_kind("packing", packing, Packing)
    require(len(mask) == 1, f"with packing, mask must have one row, got {len(mask)}")
    require_whole("packing.longest", packing.longest)
    for name in ("starts", "lengths"):
        index = getattr(packing, name)
        require_kind(f"packing.{name}", index, Tensor)
        if index.dtype != torch.int32 or index.dim() != 1:
            given = f"{index.dtype} of shape {tuple(index.shape)}"
            raise InputError(f"packing.{name} must be of type int32 and shape (S,), got {given}")
        if index.device != mask.device:
            raise InputError(f"packing.{name} must be on {mask.device}, got {index.device}")
    same = packing.starts.shape == packing.lengths.shape
    require(same, "packing.starts and packing.lengths must have the same shape")
    if not may_read_values(mask):
        return
    there, ends = packing.lengths > 0, packing.lengths.cumsum(0)
    in_order = (packing.starts == ends - packing.lengths) | ~there
    words = torch.arange(mask.shape[1], device=mask.device) < packing.lengths.sum()
    if first_is_free:
        words[packing.starts[there].long()] = False
    require(bool(in_order.all()), "packed sentences must follow each other without a gap")
    require(
        bool((packing.lengths <= packing.longest).all()), "longest must be no less than lengths"
    )
    require(bool((mask[0] == words).all()), "mask must be true for the words of packed sentences")


def may_read_values(tensor: Tensor) -> bool:
    if torch.compiler.is_compiling():
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def _check_unary(unary: Tensor, potentials: Potentials) -> None:
    require_kind("unary", unary, Tensor)
    if unary.dim() != 3:
        raise InputError(f"unary must have shape (batch, words, labels), got {tuple(unary.shape)}")
    if not unary.is_floating_point():
        raise InputError(f"unary must hold floating-point numbers, got {unary.dtype}")
    d = potentials.words.labels
    if unary.shape[-1] != d:
        raise InputError(
            f"unary must have {d} labels, as the potentials have, got {unary.shape[-1]}"
        )
    for name, parameter in potentials.named_parameters():
        if parameter.device != unary.device:
            other = f"{name} of the potentials is on {parameter.device}"
            raise InputError(f"unary must be where the potentials are, got {unary.device}; {other}")
        if parameter.dtype != unary.dtype and not torch.is_autocast_enabled(unary.device.type):
            other = f"{name} of the potentials has {parameter.dtype}"
            raise InputError(f"unary must have the potentials' type, got {unary.dtype}; {other}")


def _check_mask(mask: Tensor, like: Tensor, whose: str) -> None:
    require_kind("mask", mask, Tensor)
    if mask.dtype != torch.bool:
        raise InputError(f"mask must be of type bool, got {mask.dtype}")
    if mask.shape != like.shape[:2]:
        shape, given = tuple(like.shape[:2]), tuple(mask.shape)
        raise InputError(f"mask must have {whose} shape {shape}, got {given}")
    if mask.device != like.device:
        raise InputError(f"mask must be on {whose} device {like.device}, got {mask.device}")


def _check_evidence_shapes(unary: Tensor, potentials: Potentials, evidence: Evidence) -> None:
    require_kind("evidence", evidence, Evidence)
    batch, n, _ = unary.shape
    features = potentials.globals
    wanted: dict[str, tuple[Any, ...]] = {
        "labels": (batch, n),
        "heads": (batch, potentials.words.channels, n),
        "root": (batch,),
        "globals": (batch, features.channels if features else 0, n),
    }
    missing = {"root": potentials.root is None, "globals": features is None}
    for name, shape in wanted.items():
        index = getattr(evidence, name)
        if index is None:
            continue
        if missing.get(name):
            raise InputError(f"evidence.{name} is given, but the potentials have no {name}")
        require_kind(f"evidence.{name}", index, Tensor)
        if tuple(index.shape) != shape:
            given = tuple(index.shape)
            raise InputError(f"evidence.{name} must have shape {shape}, got {given}")
        if index.dtype != torch.long:
            raise InputError(f"evidence.{name} must be of type long, got {index.dtype}")
        if index.device != unary.device:
            raise InputError(f"evidence.{name} must be on {unary.device}, got {index.device}")


def _check_evidence_values(mask: Tensor, potentials: Potentials, evidence: Evidence) -> None:
    n, on_word = mask.shape[1], mask.unsqueeze(1)
    if (labels := evidence.labels) is not None:
        _refuse_outside("labels", labels, potentials.words.labels)
        _refuse("labels", labels, (labels != UNOBSERVED) & ~mask, "on a word, not on padding")
    if (root := evidence.root) is not None and potentials.root is not None:
        _refuse_outside("root", root, potentials.root.labels)
    if (heads := evidence.heads) is not None:
        itself = heads == torch.arange(n, device=mask.device)
        head_on_word = on_word.expand_as(heads).gather(2, heads.clamp(0, max(n - 1, 0)))
        on_padding = (heads != UNOBSERVED) & ~on_word | (heads >= 0) & ~head_on_word
        no_root = (heads == ROOT) & (potentials.root is None)
        _refuse("heads", heads, (heads >= n) | (heads < UNOBSERVED), f"0 … {n - 1}, ROOT ({ROOT})")
        _refuse("heads", heads, no_root, "a word, as the potentials have no root")
        _refuse("heads", heads, itself, "another word, as no word heads itself")
        _refuse("heads", heads, on_padding, "from a word to a word, not padding")
    if (features := evidence.globals) is not None and potentials.globals is not None:
        _refuse_outside("globals", features, potentials.globals.count)
        given = features != UNOBSERVED
        _refuse("globals", features, given & ~on_word, "on a word, not on padding")
        if heads is not None and not potentials.has_split_globals:
            twice = given & (heads != UNOBSERVED)
            _refuse("globals", features, twice, "free where evidence.heads names a head already")


def _refuse_outside(name: str, index: Tensor, size: int) -> None:
    outside = (index >= size) | (index < 0) & (index != UNOBSERVED)
    _refuse(name, index, outside, f"0 … {size - 1}")


def _refuse(name: str, index: Tensor, bad: Tensor, allowed: str) -> None:
    if bool(bad.any()):
        where = bad.nonzero()[0].tolist()
        given = f"{index[tuple(where)].item()} at {where}"
        allowed = f"{allowed}, or UNOBSERVED ({UNOBSERVED})"
        raise InputError(f"evidence.{name} must be {allowed}; got {given}")
