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
    build_potentials,
)
from probformer.errors import InputError
from probformer.sentinels import ROOT, UNOBSERVED

UNARY, MASK = random_batch((4, 2))


def refused_by_inference(named, unary=UNARY, mask=MASK, extras="plain", **options):
    with refused(named):
        mean_field(unary, mask, build("uv", extras), **options)


@pytest.mark.parametrize(
    ("unary", "message"),
    [
        (UNARY[0], "unary must have shape (batch, words, labels), got (4, 5)"),
        (UNARY[..., :1], "unary must have 5 labels, as the potentials have, got 1"),
        (UNARY.long(), "unary must hold floating-point numbers, got torch.int64"),
        (UNARY.tolist(), "unary must be of kind Tensor, got list"),
    ],
)
def test_unary(unary, message):
    refused_by_inference(message, unary=unary)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (MASK.float(), "mask must be of type bool, got torch.float32"),
        (MASK.long(), "mask must be of type bool, got torch.int64"),
        (MASK[:, :3], "mask must have unary's shape (2, 4), got (2, 3)"),
        (MASK[:1], "mask must have unary's shape (2, 4), got (1, 4)"),
        (MASK[0], "mask must have unary's shape (2, 4), got (4,)"),
        (None, "mask must be of kind Tensor, got NoneType"),
    ],
)
def test_mask(mask, message):
    refused_by_inference(message, mask=mask)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_scores_that_are_not_finite(value):
    unary = UNARY.clone()
    unary[0, 2, 1] = value
    refused_by_inference(
        f"unary must be finite, got {value} at sentence 0, word 2, label 1", unary=unary
    )


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan"), "0.1"])
def test_dropout(rate):
    refused_by_inference(f"dropout must be a number in [0, 1), got {rate!r}", dropout=rate)


@pytest.mark.parametrize("inference", [{}, 0, {"iterations": 3}, 5, Inference])
def test_inference(inference):
    refused_by_inference("inference must be of kind Inference, got", inference=inference)


@pytest.mark.parametrize("potentials", [None, UV, Root(D, H, 7), torch.zeros(3), "uv"])
def test_potentials_of_another_kind(potentials):
    with pytest.raises(InputError, match="potentials must be of kind Potentials or WordPotential"):
        mean_field(UNARY, MASK, potentials)


def test_generator():
    refused_by_inference("generator must be of kind Generator, got int", generator=3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_precisions_do_not_mix(dtype):
    message = f"unary must have the potentials' type, got {dtype}; words.U of the potentials has"
    refused_by_inference(message, unary=UNARY.to(dtype))


def test_devices_do_not_mix():
    potentials = build().to("meta")
    with pytest.raises(InputError, match="unary must be where the potentials are, got cpu; words"):
        mean_field(UNARY, MASK, potentials)
    refused_by_inference("mask must be on unary's device cpu, got meta", mask=MASK.to("meta"))


@pytest.mark.parametrize("evidence", [{}, {"labels": 1}, torch.zeros(2, 4), Evidence])
def test_evidence_of_another_kind(evidence):
    refused_by_inference("evidence must be of kind Evidence, got", evidence=evidence)


def index(shape, where=None, value=UNOBSERVED):
    tensor = torch.full(shape, UNOBSERVED)
    if where is not None:
        tensor[where] = value
    return tensor


LABELS, HEADS, GLOBALS = (2, 4), (2, H, 4), (2, H, 4)


@pytest.mark.parametrize(
    ("evidence", "extras", "message"),
    [
        ({"labels": [[1]]}, "plain", "evidence.labels must be of kind Tensor, got list"),
        ({"labels": index((2, 3))}, "plain", "labels must have shape (2, 4), got (2, 3)"),
        (
            {"labels": index(LABELS).float()},
            "plain",
            "labels must be of type long, got torch.float32",
        ),
        (
            {"labels": index(LABELS, (0, 1), D)},
            "plain",
            "labels must be 0 … 4, or UNOBSERVED (-2); got 5",
        ),
        (
            {"labels": index(LABELS, (0, 1), -1)},
            "plain",
            "labels must be 0 … 4, or UNOBSERVED (-2); got -1",
        ),
        ({"labels": index(LABELS, (1, 3), 0)}, "plain", "labels must be on a word, not on padding"),
        ({"heads": index(LABELS)}, "plain", "heads must have shape (2, 3, 4), got (2, 4)"),
        ({"heads": index(HEADS, (0, 1, 2), 4)}, "plain", "heads must be 0 … 3, ROOT (-1)"),
        ({"heads": index(HEADS, (0, 1, 2), -3)}, "plain", "heads must be 0 … 3, ROOT (-1)"),
        ({"heads": index(HEADS, (0, 1, 2), 2)}, "plain", "no word heads itself"),
        (
            {"heads": index(HEADS, (0, 1, 2), ROOT)},
            "plain",
            "heads must be a word, as the potentials have no root",
        ),
        ({"heads": index(HEADS, (1, 0, 0), 3)}, "plain", "from a word to a word, not padding"),
        ({"heads": index(HEADS, (1, 0, 3), 0)}, "root", "from a word to a word, not padding"),
        ({"heads": index(HEADS, (1, 0, 3), ROOT)}, "root", "from a word to a word, not padding"),
        ({"root": index((2,))}, "plain", "evidence.root is given, but the potentials have no root"),
        (
            {"root": index((2,), 1, 7)},
            "root",
            "root must be 0 … 6, or UNOBSERVED (-2); got 7 at [1]",
        ),
        ({"root": index((2, 1))}, "root", "root must have shape (2,), got (2, 1)"),
        (
            {"globals": index(GLOBALS)},
            "root",
            "evidence.globals is given, but the potentials have no globals",
        ),
        ({"globals": index(GLOBALS)}, "single-split", "must have shape (2, 1, 4), got (2, 3, 4)"),
        (
            {"globals": index(GLOBALS, (0, 0, 0), 4)},
            "dep-split",
            "globals must be 0 … 3, or UNOBSERVED",
        ),
        ({"globals": index(GLOBALS, (1, 0, 3), 0)}, "dep-split", "on a word, not on padding"),
        (
            {"globals": index(GLOBALS, (0, 0, 0), 1), "heads": index(HEADS, (0, 0, 0), 1)},
            "all-dep",
            "globals must be free where evidence.heads names a head already",
        ),
    ],
)
def test_evidence_that_does_not_exist(evidence, extras, message):
    refused_by_inference(message, extras=extras, evidence=Evidence(**evidence))


@pytest.mark.parametrize(
    ("build_it", "message"),
    [
        (lambda: UV(5, 3, 4, gamma=-1), "gamma must be a whole number of at least 0"),
        (lambda: Full(5, 3, gamma=1.5), "gamma must be a whole number of at least 0"),
        (lambda: UV(5, 3, 4, gamma=True), "gamma must be a whole number of at least 0, got True"),
        (lambda: Potentials(None), "words must be of kind WordPotential, got NoneType"),
        (lambda: Potentials(UV), "words must be of kind WordPotential, got the class UV"),
        (lambda: Potentials(UV(5, 3, 4), globals=Root(5, 3, 2)), "globals must be of kind Global"),
        (lambda: build_potentials(5, 3, "uv"), "words must be settings of a potential, got 'uv'"),
        (lambda: UV(5, 3, 0), "rank must be a whole number of at least 1, got 0"),
        (lambda: UVW(5, 3, 0), "rank must be a whole number of at least 1, got 0"),
        (lambda: SharedUV(5, 3, -1), "rank must be a whole number of at least 1, got -1"),
        (lambda: Rotary(5, 3, 3), "rank must be even for a rotary potential, got 3"),
        (lambda: UV(0, 3, 4), "labels must be a whole number of at least 1, got 0"),
        (lambda: UV(5, 0, 4), "channels must be a whole number of at least 1, got 0"),
        (lambda: Root(5, 3, 0), "root_labels must be a whole number of at least 1, got 0"),
        (lambda: Root(5, 3, None), "root_labels must be a whole number of at least 1, got None"),
        (lambda: Global(5, 3, 4, "split"), "mode must be one of 'all-dep', 'dep-split'"),
        (lambda: Global(5, 3, 0), "count must be a whole number of at least 1, got 0"),
        (lambda: Global(5, 3, 4, "dep-split", features=True), "features goes with mode 'all-dep'"),
    ],
)
def test_potentials(build_it, message):
    with pytest.raises(InputError) as error:
        build_it()
    assert message in str(error.value)


def test_a_posterior_without_heads_has_no_energy():
    potentials = build()
    posterior = mean_field(UNARY, MASK, potentials, attention=False)
    with refused("posterior"):
        energy(UNARY, MASK, potentials, posterior)
