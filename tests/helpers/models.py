"""Small models for tests, one of every kind."""

from __future__ import annotations

import torch

from outside.idle import Idle
from outside.topic import Topic
from probformer.crf.potentials import (
    UV,
    UVW,
    ArcLabels,
    Full,
    Global,
    Potentials,
    Root,
    Rotary,
    SharedUV,
    WordPotential,
)

D, H, R = 5, 3, 4

WORDS = {
    "full": lambda: Full(D, H),
    "full-blind": lambda: Full(D, H, gamma=None),
    "full-direction": lambda: Full(D, H, gamma=0),
    "full-one-channel": lambda: Full(D, 1, gamma=1),
    "uv": lambda: UV(D, H, R),
    "uv-blind": lambda: UV(D, H, R, gamma=None),
    "uv-direction": lambda: UV(D, H, R, gamma=0),
    "uv-gamma-8": lambda: UV(D, H, R, gamma=8),
    "uvw": lambda: UVW(D, H, R, gamma=1),
    "uvw-blind": lambda: UVW(D, H, R, gamma=None),
    "shared-uv": lambda: SharedUV(D, H, R, gamma=2),
    "shared-uv-blind": lambda: SharedUV(D, H, R, gamma=None),
    "shared-uv-direction": lambda: SharedUV(D, H, R, gamma=0),
    "rotary": lambda: Rotary(D, H, R),
}

EXTRAS = {
    "plain": lambda h: {},
    "root": lambda h: {"root": Root(D, h, 7)},
    "all-dep": lambda h: {"globals": Global(D, h, 4, "all-dep")},
    "all-dep-features": lambda h: {"globals": Global(D, h, 4, "all-dep", features=True)},
    "dep-split": lambda h: {"globals": Global(D, h, 4, "dep-split")},
    "single-split": lambda h: {"globals": Global(D, h, 4, "single-split")},
    "root-all-dep": lambda h: {"root": Root(D, h, 7), "globals": Global(D, h, 4, "all-dep")},
    "root-dep-split": lambda h: {"root": Root(D, h, 7), "globals": Global(D, h, 4, "dep-split")},
    "root-single-split": lambda h: {"root": Root(D, h, 7), "globals": Global(D, h, 4)},
    "all-dep-idle": lambda h: {"globals": Global(D, h, 4, "all-dep"), "idle": Idle(D, h)},
    "root-arc-labels": lambda h: {
        "root": Root(D, h, 7),
        "arc_labels": ArcLabels(D, 4, rank=2, channel=h // 2),
    },
    "root-topic": lambda h: {"root": Root(D, h, 7), "topic": Topic(D, 4)},
}


def build(words: str = "uv", extras: str = "plain", dtype=torch.float64) -> Potentials:
    potential: WordPotential = WORDS[words]()
    return Potentials(potential, **EXTRAS[extras](potential.channels)).to(dtype)


def random_batch(lengths=(6, 3, 1), d: int = D, dtype=torch.float64):
    """Unary scores and mask of a padded batch."""
    n = max(lengths)
    mask = torch.arange(n) < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), n, d, dtype=dtype), mask
