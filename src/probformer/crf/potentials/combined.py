"""All potentials of a model together: the messages between its label and its head variables.

Label variables are Z and, with a root, Z_ROOT. Head variables are H and, with split globals, G.
H's columns are the n words, then ROOT, then the all-dep globals, as far as they are there.
The energy is multilinear, E = −⟨S, Q_Z⟩ − ⟨Q_H, F(Q_Z, Q_ROOT)⟩ − ⟨Q_G, F_G(Q_Z)⟩, so the
messages to the heads are F, and those to the labels its adjoint, weighted by the heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from probformer.config.settings import GlobalSettings, PotentialSettings, RootSettings
from probformer.crf.potentials.global_features import Global
from probformer.crf.potentials.root import Root
from probformer.crf.potentials.words import WordPotential, build_word_potential
from probformer.errors import require, require_kind


class Potentials(nn.Module):
    """The factors of the conditional random field, without the unary scores."""

    def __init__(
        self, words: WordPotential, root: Root | None = None, globals: Global | None = None
    ) -> None:
        super().__init__()
        require_kind("words", words, WordPotential)
        require_kind("root", root, Root, type(None))
        require_kind("globals", globals, Global, type(None))
        self.words = words
        self.root = root
        self.globals = globals
        if root is not None:
            given = (root.T.shape[1], root.T.shape[0])
            self._check_sizes("root", given)
        if globals is not None:
            channels = words.channels if globals.mode == "single-split" else globals.channels
            self._check_sizes("globals", (globals.dense().shape[-1], channels))

    def _check_sizes(self, name: str, given: tuple[int, int]) -> None:
        wanted = (self.words.labels, self.words.channels)
        message = f"{name} must have the words' (labels, channels) {wanted}, got {given}"
        require(given == wanted, message)

    @property
    def factors(self) -> list[Any]:
        """In the order of H's columns; split globals, which have their own variable, are last."""
        return [f for f in (self.words, self.root, self.globals) if f is not None]

    @property
    def has_split_globals(self) -> bool:
        return self.globals is not None and self.globals.mode != "all-dep"

    def columns(self, n: int) -> list[int]:
        """How many columns of H belong to each factor that has some."""
        root = [1] if self.root is not None else []
        joint = self.globals is not None and not self.has_split_globals
        return [n, *root, *([self.globals.count] if joint and self.globals else [])]

    def project(self, labels: Sequence[Tensor]) -> list[Any]:
        """What the factors need of the label distributions, for both messages."""
        return [self.words.pairs(labels[0]), *self.project_others(labels)]

    def project_others(self, labels: Sequence[Tensor]) -> list[Any]:
        """The same for all factors but the words'."""
        z, *root = labels
        x: list[Any] = []
        if self.root is not None:
            x.append(self.root.project(z, *root))
        if self.globals is not None:
            x.append(self.globals.project(z))
        return x

    def head_messages(self, x: Sequence[Any]) -> list[Tensor]:
        """To H (B, h, n, columns) and, with split globals, to G (B, h or 1, n, m)."""
        scores = [f.head_scores(part) for f, part in zip(self.factors, x, strict=True)]
        split = [scores.pop()] if self.has_split_globals else []
        return [scores[0] if len(scores) == 1 else torch.cat(scores, dim=-1), *split]

    def label_messages(self, heads: Sequence[Tensor], x: Sequence[Any]) -> list[Tensor]:
        """To Z (B, n, d), without S, and, with a root, to Z_ROOT (B, d_root)."""
        h, *split = heads
        on_words, *parts = [*h.split(self.columns(h.shape[2]), dim=-1), *split]
        (to_z,) = self.words.label_messages(on_words, x[0])
        return self.add_others(to_z, parts, x[1:])

    def add_others(self, to_z: Tensor, heads: Sequence[Tensor], x: Sequence[Any]) -> list[Tensor]:
        """The messages to Z and ROOT, given that from words to Z."""
        to_root: list[Tensor] = []
        for factor, p, part in zip(self.factors[1:], heads, x, strict=True):
            message, *others = factor.label_messages(p, part)
            to_z = to_z + message
            to_root += others
        return [to_z, *to_root]


def as_potentials(potentials: Potentials | WordPotential) -> Potentials:
    """A potential between words is a model by itself."""
    require_kind("potentials", potentials, Potentials, WordPotential)
    return potentials if isinstance(potentials, Potentials) else Potentials(potentials)


def build_potentials(
    labels: int,
    channels: int,
    words: PotentialSettings,
    root: RootSettings | None = None,
    globals: GlobalSettings | None = None,
) -> Potentials:
    """Potentials with the published initialisation."""
    return Potentials(
        build_word_potential(words, labels, channels),
        Root(labels, channels, root.labels) if root else None,
        Global(labels, channels, globals.count, globals.mode, globals.features)
        if globals
        else None,
    )
