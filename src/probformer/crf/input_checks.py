"""Checks of the arguments of inference. Nothing is silently broadcast or cast.

Shapes and types are always checked. Values are checked neither in compiled code, where that would
break the graph, nor while a CUDA graph is captured, as that cannot wait for the GPU.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from probformer.config import Inference
from probformer.crf.evidence import Evidence
from probformer.crf.potentials import Potentials
from probformer.crf.structures import head_structure
from probformer.errors import InputError, require, require_between, require_kind, require_whole
from probformer.packing import Packing
from probformer.sentinels import ROOT, UNOBSERVED


def check_words(words: Tensor, mask: Tensor, vocabulary: int) -> None:
    """Words must be indices (B, n) from 0 to `vocabulary` − 1, at padding too."""
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
    """The arguments of `mean_field`."""
    _check_unary(unary, potentials)
    _check_mask(mask, unary, "unary's")
    if not torch.compiler.is_compiling():  # a symbolic float cannot be formatted in a message
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


def check_head_structure(potentials: Potentials, inference: Inference) -> None:
    """Trees need ROOT and no other heads but words; a list has a structure for each channel."""
    if isinstance(inference.heads, tuple):
        count, channels = len(inference.heads), potentials.words.channels
        message = f"heads must have a name for each of the {channels} channels, got {count}"
        require(count == channels, message)
    if potentials.labelling is not None:
        message = "normaliser_h must be 'softmax' where arcs have labels"
        require(inference.normaliser_h == "softmax", message)
    if inference.has_trees:
        message = f"heads {inference.heads!r} needs potentials with a root, which heads a word"
        require(potentials.root is not None, message)
        others = [factor for factor in potentials.with_columns if factor.column_field not in _TREE]
        message = "heads that form trees are words and ROOT alone, but the potentials have others"
        require(not others, f"{message}, such as global features with mode 'all-dep'")


def check_observed_trees(inference: Inference, mask: Tensor, evidence: Evidence) -> None:
    """Observed heads must be part of an assignment that the structure of heads allows."""
    if evidence.heads is None or not may_read_values(evidence.heads):
        return
    structure = head_structure(inference)
    observed: list[list[list[int]]] = evidence.heads.tolist()
    for sentence, channels in enumerate(observed):
        words: list[int] = mask[sentence].nonzero().flatten().tolist()
        place = {word: i for i, word in enumerate(words)}  # padding may be in front
        for channel, heads in enumerate(channels):
            known = [place.get(head, head) for head in (heads[word] for word in words)]
            fault = structure.of_channel(channel).fault(known)
            if fault is not None:
                where = f"in sentence {sentence}, channel {channel}, word {fault[0]}"
                raise InputError(f"evidence.heads must be part of a tree, but {where} {fault[1]}")


_TREE = ("head_marginals", "root_head_marginals")


def check_packing(packing: Packing, mask: Tensor, first_is_free: bool = False) -> None:
    """Types and shapes, and, where values may be read, that sentences follow each other.

    With `first_is_free` the first place of each sentence is for CLS, and the mask is false there.
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
        bool((packing.lengths <= packing.longest).all()),
        "packing.longest must be no less than any of packing.lengths",
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
            raise InputError(
                f"unary must be on the potentials' device, got {unary.device}; {other}"
            )
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


class _Observable(NamedTuple):
    """The indices that evidence may have under one name."""

    shape: tuple[int, ...]
    """The shape of the tensor of indices."""
    values: int
    """Indices are from 0 to values − 1."""
    per_word: bool
    """Whether variables belong to words, so that none is observed at padding."""


def _observables(potentials: Potentials, batch: int, n: int) -> dict[str, _Observable]:
    variables = [*potentials.label_variables, potentials.heads(n), *potentials.head_variables]
    found = {v.name: _Observable(v.shape(batch, n), v.values, v.per_word) for v in variables}
    heads = potentials.heads(n).shape(batch, n)
    for factor in potentials.with_columns:
        if factor.column_evidence is not None:
            found[factor.column_evidence] = _Observable(heads, factor.columns(n), True)
    if potentials.labelling is not None:
        found["arc_labels"] = _Observable((batch, n), potentials.labelling.label_count, True)
    return found


def _check_evidence_shapes(unary: Tensor, potentials: Potentials, evidence: Evidence) -> None:
    require_kind("evidence", evidence, Evidence)
    batch, n, _ = unary.shape
    observables = _observables(potentials, batch, n)
    for name, index in evidence.given():
        if name not in observables:
            raise InputError(f"evidence.{name} is given, but the potentials have no {name}")
        require_kind(f"evidence.{name}", index, Tensor)
        shape = observables[name].shape
        if tuple(index.shape) != shape:
            given = tuple(index.shape)
            raise InputError(f"evidence.{name} must have shape {shape}, got {given}")
        if index.dtype != torch.long:
            raise InputError(f"evidence.{name} must be of type long, got {index.dtype}")
        if index.device != unary.device:
            raise InputError(f"evidence.{name} must be on {unary.device}, got {index.device}")


def _check_evidence_values(mask: Tensor, potentials: Potentials, evidence: Evidence) -> None:
    observables = _observables(potentials, *mask.shape)
    for name, index in evidence.given():
        if name == "heads":
            _check_heads(index, mask, potentials)
            continue
        _refuse_outside(name, index, observables[name].values)
        if observables[name].per_word:
            words = mask if index.dim() == 2 else mask.unsqueeze(1)
            on_padding = (index != UNOBSERVED) & ~words
            _refuse(name, index, on_padding, f"must be {_NONE} on padding")
    for factor in potentials.with_columns:
        name = factor.column_evidence
        index = None if name is None else evidence.index(name)
        if name is not None and index is not None and evidence.heads is not None:
            twice = (index != UNOBSERVED) & (evidence.heads != UNOBSERVED)
            both = "and evidence.heads must not both be given for a word and channel"
            _refuse(name, index, twice, both)


def _check_heads(heads: Tensor, mask: Tensor, potentials: Potentials) -> None:
    n, on_word = mask.shape[1], mask.unsqueeze(1)
    itself = heads == torch.arange(n, device=mask.device)
    head_on_word = on_word.expand_as(heads).gather(2, heads.clamp(0, max(n - 1, 0)))
    on_padding = (heads != UNOBSERVED) & ~on_word | (heads >= 0) & ~head_on_word
    no_root = (heads == ROOT) & (potentials.root is None)
    outside = (heads >= n) | (heads < UNOBSERVED)
    no_root_here = f"must be 0 … {n - 1}, or {_NONE}, as the potentials have no root"
    _refuse("heads", heads, no_root, no_root_here)
    _refuse("heads", heads, outside, f"must be 0 … {n - 1}, ROOT ({ROOT}), or {_NONE}")
    _refuse("heads", heads, itself, "must be another word: no word heads itself")
    from_word_to_word = f"must go from a word to a word, and be {_NONE} on padding"
    _refuse("heads", heads, on_padding, from_word_to_word)


def _refuse_outside(name: str, index: Tensor, size: int) -> None:
    outside = (index >= size) | (index < 0) & (index != UNOBSERVED)
    _refuse(name, index, outside, f"must be 0 … {size - 1}, or {_NONE}")


def _refuse(name: str, index: Tensor, bad: Tensor, rule: str) -> None:
    if bool(bad.any()):
        where = bad.nonzero()[0].tolist()
        given = f"{index[tuple(where)].item()} at {where}"
        raise InputError(f"evidence.{name} {rule}; got {given}")


_NONE = f"UNOBSERVED ({UNOBSERVED})"
