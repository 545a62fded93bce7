"""Wrong input to inference: one sentence naming the argument, what was given, what is allowed."""

import pytest
import torch

from helpers.messages import refused
from helpers.models import D, H, build, random_batch
from probformer import Evidence, Inference, mean_field
from probformer.crf.energy import energy
from probformer.crf.potentials import (
    UV,
    UVW,
    Full,
    Global,
    Potentials,
    Root,
    Rotary,
    SharedUV,
)
from probformer.crf.potentials.words import build_word_potential
from probformer.crf.structures import Independent
from probformer.sentinels import ROOT, UNOBSERVED

UNARY, MASK = random_batch((4, 2))


def refused_by_inference(named, unary=UNARY, mask=MASK, extras="plain", **options):
    with refused(named):
        mean_field(unary, mask, build("uv", extras), **options)


UNARIES = {
    "two axes": UNARY[0],
    "one label": UNARY[..., :1],
    "whole numbers": UNARY.long(),
    "list": UNARY.tolist(),
    "float32": UNARY.float(),
    "bfloat16": UNARY.bfloat16(),
}


@pytest.mark.parametrize("case", UNARIES)
def test_unary(case):
    refused_by_inference("unary", unary=UNARIES[case])


MASKS = {
    "float": MASK.float(),
    "long": MASK.long(),
    "fewer words": MASK[:, :3],
    "fewer sentences": MASK[:1],
    "one axis": MASK[0],
    "none": None,
    "device": MASK.to("meta"),
}


@pytest.mark.parametrize("case", MASKS)
def test_mask(case):
    refused_by_inference("mask", mask=MASKS[case])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_scores_that_are_not_finite(value):
    unary = UNARY.clone()
    unary[0, 2, 1] = value
    with refused("unary", str(value), "sentence 0", "word 2", "label 1"):
        mean_field(unary, MASK, build())


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan"), "0.1"])
def test_dropout(rate):
    refused_by_inference("dropout", dropout=rate)


@pytest.mark.parametrize("inference", [{}, 0, {"iterations": 3}, 5, Inference])
def test_inference(inference):
    refused_by_inference("inference", inference=inference)


@pytest.mark.parametrize("potentials", [None, UV, Root(D, H, 7), torch.zeros(3), "uv"])
def test_potentials_of_another_kind(potentials):
    with refused("potentials"):
        mean_field(UNARY, MASK, potentials)


def test_generator():
    refused_by_inference("generator", generator=3)


def test_devices_do_not_mix():
    with refused("unary", "meta"):
        mean_field(UNARY, MASK, build().to("meta"))


@pytest.mark.parametrize("structure", [3, "trees", ["tree", "line"], [], len, Inference])
def test_head_structures(structure):
    with refused("heads"):
        mean_field(UNARY, MASK, build(), Inference(heads=structure))


def test_a_structure_of_heads_replaces_their_normaliser():
    with refused("normaliser_h"):
        inference = Inference(heads=Independent(), normaliser_h="squares")
        mean_field(UNARY, MASK, build(), inference)


@pytest.mark.parametrize("evidence", [{}, {"labels": 1}, torch.zeros(2, 4), Evidence])
def test_evidence_of_another_kind(evidence):
    refused_by_inference("evidence", evidence=evidence)


def index(shape, where=None, value=UNOBSERVED):
    tensor = torch.full(shape, UNOBSERVED)
    if where is not None:
        tensor[where] = value
    return tensor


LABELS, HEADS, GLOBALS = (2, 4), (2, H, 4), (2, H, 4)
EVIDENCE = {  # factors, index, its value
    "labels: list": ("plain", "labels", [[1]]),
    "labels: shape": ("plain", "labels", index((2, 3))),
    "labels: type": ("plain", "labels", index(LABELS).float()),
    "labels: too large": ("plain", "labels", index(LABELS, (0, 1), D)),
    "labels: -1": ("plain", "labels", index(LABELS, (0, 1), -1)),
    "labels: padding": ("plain", "labels", index(LABELS, (1, 3), 0)),
    "heads: shape": ("plain", "heads", index(LABELS)),
    "heads: too large": ("plain", "heads", index(HEADS, (0, 1, 2), 4)),
    "heads: -3": ("plain", "heads", index(HEADS, (0, 1, 2), -3)),
    "heads: itself": ("plain", "heads", index(HEADS, (0, 1, 2), 2)),
    "heads: no root": ("plain", "heads", index(HEADS, (0, 1, 2), ROOT)),
    "heads: on padding": ("plain", "heads", index(HEADS, (1, 0, 0), 3)),
    "heads: of padding": ("root", "heads", index(HEADS, (1, 0, 3), 0)),
    "heads: root of padding": ("root", "heads", index(HEADS, (1, 0, 3), ROOT)),
    "root: none": ("plain", "root", index((2,))),
    "root: too large": ("root", "root", index((2,), 1, 7)),
    "root: -1": ("root", "root", index((2,), 1, -1)),
    "root: shape": ("root", "root", index((2, 1))),
    "globals: none": ("root", "globals", index(GLOBALS)),
    "globals: shape": ("single-split", "globals", index(GLOBALS)),
    "globals: too large": ("dep-split", "globals", index(GLOBALS, (0, 0, 0), 4)),
    "globals: -1": ("all-dep", "globals", index(GLOBALS, (0, 0, 0), -1)),
    "globals: padding": ("dep-split", "globals", index(GLOBALS, (1, 0, 3), 0)),
}


@pytest.mark.parametrize("case", EVIDENCE)
def test_evidence_that_does_not_exist(case):
    extras, name, value = EVIDENCE[case]
    refused_by_inference(f"evidence.{name}", extras=extras, evidence=Evidence(**{name: value}))


def test_evidence_of_a_factor_that_is_not_there():
    refused_by_inference("evidence.topic", evidence=Evidence(others={"topic": index((2,))}))


def test_a_head_is_observed_once():
    place = (0, 0, 0)
    evidence = Evidence(globals=index(GLOBALS, place, 1), heads=index(HEADS, place, 1))
    refused_by_inference("evidence.globals", extras="all-dep", evidence=evidence)


FACTORS = {
    "gamma: negative": ("gamma", lambda: UV(5, 3, 4, gamma=-1)),
    "gamma: part": ("gamma", lambda: Full(5, 3, gamma=1.5)),
    "gamma: true": ("gamma", lambda: UV(5, 3, 4, gamma=True)),
    "words: none": ("words", lambda: Potentials(None)),
    "words: class": ("words", lambda: Potentials(UV)),
    "words: settings": ("words", lambda: build_word_potential("uv", 5, 3)),
    "globals: root": ("globals", lambda: Potentials(UV(5, 3, 4), globals=Root(5, 3, 2))),
    "others: text": ("topic", lambda: Potentials(UV(5, 3, 4), topic="uv")),
    "rank: uv": ("rank", lambda: UV(5, 3, 0)),
    "rank: uvw": ("rank", lambda: UVW(5, 3, 0)),
    "rank: shared-uv": ("rank", lambda: SharedUV(5, 3, -1)),
    "rank: odd": ("rank", lambda: Rotary(5, 3, 3)),
    "labels: 0": ("labels", lambda: UV(0, 3, 4)),
    "channels: 0": ("channels", lambda: UV(5, 0, 4)),
    "root: 0": ("root_labels", lambda: Root(5, 3, 0)),
    "root: none": ("root_labels", lambda: Root(5, 3, None)),
    "mode": ("mode", lambda: Global(5, 3, 4, "split")),
    "count": ("count", lambda: Global(5, 3, 0)),
    "features": ("features", lambda: Global(5, 3, 4, "dep-split", features=True)),
}


@pytest.mark.parametrize("case", FACTORS)
def test_factors(case):
    named, build_it = FACTORS[case]
    with refused(named):
        build_it()


def test_a_posterior_without_heads_has_no_energy():
    potentials = build()
    posterior = mean_field(UNARY, MASK, potentials, attention=False)
    with refused("posterior"):
        energy(UNARY, MASK, potentials, posterior)
