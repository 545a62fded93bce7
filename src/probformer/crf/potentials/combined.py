"""All factors of a model together: the messages between its label and its head variables.

Label variables are Z and those that factors add, such as ROOT's label. Head variables are H and
those that factors add, such as split global features. H's columns are the n words, then those of
the other factors that have some: ROOT, all-dep global features. The energy is multilinear,
E = −⟨S, Q_Z⟩ − ⟨Q_H, F(Q_Z, Q_ROOT)⟩ − ⟨Q_G, F_G(Q_Z)⟩ − …, so the messages to the heads are F,
and those to the labels its adjoint, weighted by the heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from probformer.config.settings import EncoderSettings
from probformer.crf.potentials.factor import Factor, Variable
from probformer.crf.potentials.global_features import Global
from probformer.crf.potentials.root import Root
from probformer.crf.potentials.words import WordPotential, build_word_potential
from probformer.errors import require, require_kind


class Potentials(nn.Module):
    """The factors of the conditional random field, without the unary scores.

    Args:
        words: between a word and its head, another word.
        root: between a word and ROOT.
        globals: between a word and global features.
        others: factors of your own; a keyword is the first part of the names of its parameters.

    Raises:
        InputError: an argument has the wrong type, or other sizes than `words`.
    """

    def __init__(
        self,
        words: WordPotential,
        root: Root | None = None,
        globals: Global | None = None,
        **others: Factor | None,
    ) -> None:
        super().__init__()
        require_kind("words", words, WordPotential)
        require_kind("root", root, Root, type(None))
        require_kind("globals", globals, Global, type(None))
        self.words = words
        self.root = root
        self.globals = globals
        for name, factor in others.items():
            require_kind(name, factor, Factor, type(None))
            self.add_module(name, factor)
        self._names = ("words", "root", "globals", *others)
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
    def factors(self) -> list[Factor]:
        """All factors, that of the words first."""
        found = (getattr(self, name) for name in self._names)
        return [factor for factor in found if factor is not None]

    @property
    def with_columns(self) -> list[Factor]:
        """The factors that add values to H, in the order of its columns."""
        return [factor for factor in self.factors if factor.columns(1)]

    @property
    def label_variables(self) -> list[Variable]:
        """Z, then the label variables of the factors."""
        z = Variable("labels", "Z", self.words.labels, "z_marginals", "z_scores", per_word=True)
        return [z, *(variable for f in self.factors for variable in f.label_variables)]

    @property
    def head_variables(self) -> list[Variable]:
        """The head variables of the factors; H is not among them."""
        return [variable for f in self.factors for variable in f.head_variables]

    @property
    def is_by_word(self) -> bool:
        """Whether every label variable belongs to a word; ROOT's, for example, does not."""
        return all(variable.per_word for variable in self.label_variables)

    def heads(self, n: int) -> Variable:
        """H, whose values depend on the length of the sentence."""
        channels = self.words.channels
        return Variable("heads", "H", sum(self.columns(n)), "", per_word=True, channels=channels)

    def columns(self, n: int) -> list[int]:
        """The number of columns of H of each factor in `with_columns`."""
        return [factor.columns(n) for factor in self.with_columns]

    def prepare(self, labels: Sequence[Tensor]) -> list[Any]:
        """What each factor computes both of its messages from.

        Args:
            labels: the distributions of `label_variables`, in their order; Q_Z (B, n, d) first.
        """
        return [self.words.prepare(labels[0]), *self.prepare_others(labels)]

    def prepare_others(self, labels: Sequence[Tensor]) -> list[Any]:
        """`prepare` for all factors but the words'."""
        z, *own = labels
        x: list[Any] = []
        for factor in self.factors[1:]:
            count = len(factor.label_variables)
            x.append(factor.prepare(z, *own[:count]))
            own = own[count:]
        return x

    def head_messages(self, x: Sequence[Any]) -> list[Tensor]:
        """The messages to H (B, h, n, columns), and to the `head_variables`.

        Args:
            x: what `prepare` returned.
        """
        columns: list[Tensor] = []
        others: list[Tensor] = []
        for factor, part in zip(self.factors, x, strict=True):
            scores = factor.head_scores(part)
            if scores is not None:
                (others if factor.head_variables else columns).append(scores)
        return [columns[0] if len(columns) == 1 else torch.cat(columns, dim=-1), *others]

    def by_factor(self, heads: Sequence[Tensor]) -> list[Tensor | None]:
        """For each factor Q of its columns of H or of its head variables; None without either."""
        h, *own = heads
        columns = iter(h.split(self.columns(h.shape[2]), dim=-1))
        others = iter(own)
        found: list[Tensor | None] = []
        for factor in self.factors:
            source = others if factor.head_variables else columns
            has_some = factor.head_variables or factor.columns(1)
            found.append(next(source) if has_some else None)
        return found

    def label_messages(self, heads: Sequence[Tensor], x: Sequence[Any]) -> list[Tensor]:
        """The messages to Z (B, n, d), without S, and to the label variables of factors.

        Args:
            heads: Q_H (B, h, n, columns), then the distributions of `head_variables`.
            x: what `prepare` returned.
        """
        on_words, *others = self.by_factor(heads)
        (to_z,) = self.words.label_messages(on_words, x[0])
        return self.add_others(to_z, others, x[1:])

    def add_others(
        self, to_z: Tensor, heads: Sequence[Tensor | None], x: Sequence[Any]
    ) -> list[Tensor]:
        """The messages of all factors to labels, given that of the words' factor to Z."""
        to_own: list[Tensor] = []
        for factor, p, part in zip(self.factors[1:], heads, x, strict=True):
            message, *own = factor.label_messages(p, part)
            to_z = to_z + message
            to_own += own
        return [to_z, *to_own]

    def expected_score(self, heads: Sequence[Tensor], x: Sequence[Any]) -> Tensor:
        """−E(Q) without the unary scores, (B,); arguments as for `label_messages`."""
        parts = zip(self.factors, self.by_factor(heads), x, strict=True)
        scores = [factor.expected_score(p, part) for factor, p, part in parts]
        return cast(Tensor, sum(scores))


def as_potentials(potentials: Potentials | WordPotential) -> Potentials:
    """`potentials` itself, or the `Potentials` whose only factor is this word potential."""
    require_kind("potentials", potentials, Potentials, WordPotential)
    return potentials if isinstance(potentials, Potentials) else Potentials(potentials)


def build_potentials(settings: EncoderSettings) -> Potentials:
    """The factors that the settings of an encoder describe, with the published initialisation."""
    labels, channels = settings.labels, settings.channels
    root, globals = settings.root, settings.globals
    return Potentials(
        build_word_potential(settings.potential, labels, channels),
        root and Root(labels, channels, root.labels),
        globals and Global(labels, channels, globals.count, globals.mode, globals.features),
    )
