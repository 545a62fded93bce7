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
from probformer.crf.potentials.arc_labels import ArcLabels
from probformer.crf.potentials.factor import Factor, Variable
from probformer.crf.potentials.global_features import Global
from probformer.crf.potentials.root import Root
from probformer.crf.potentials.word_potential import WordPotential
from probformer.crf.potentials.words import build_word_potential
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
        self._check_arc_labels()
        if root is not None:
            given = (root.T.shape[1], root.T.shape[0])
            self._check_sizes("root", given)
        if globals is not None:
            channels = words.channels if globals.mode == "single-split" else globals.channels
            self._check_sizes("globals", (globals.dense().shape[-1], channels))

    def _check_arc_labels(self) -> None:
        given = [f.labelled_channel for f in self.factors if f.labelled_channel is not None]
        require(len(given) < 2, "only one factor may give labels to arcs")
        for channel in given:
            channels = self.words.channels
            message = f"the channel of arc labels must be below {channels}, got {channel}"
            require(channel < channels, message)
            heads = [factor for factor in (self.words, self.root) if factor is not None]
            message = "arcs with labels need a root, and no heads but words and ROOT"
            require(len(heads) == 2 and self.with_columns == heads, message)

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
    def labelling(self) -> Factor | None:
        """The factor that gives labels to the arcs of a channel, if there is one."""
        return next((f for f in self.factors if f.labelled_channel is not None), None)

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
        """The messages to each block of heads.

        Args:
            x: what `prepare` returned.

        Returns:
            (B, h, n, columns) for H, without the channel whose arcs have labels; for that one, if
            there is one, (B, m, n, columns); and those to the `head_variables`.
        """
        columns: list[Tensor] = []
        others: list[Tensor] = []
        of_labels: Tensor | None = None
        for factor, part in zip(self.factors, x, strict=True):
            scores = factor.head_scores(part)
            if factor.labelled_channel is not None:
                of_labels = scores
            elif scores is not None:
                (others if factor.head_variables else columns).append(scores)
        heads = columns[0] if len(columns) == 1 else torch.cat(columns, dim=-1)
        if of_labels is None:
            return [heads, *others]
        channel = self._labelled_channel()
        return [self.without_labelled(heads), heads[:, channel : channel + 1] + of_labels, *others]

    def without_labelled(self, heads: Tensor) -> Tensor:
        """(B, h, …) without the channel whose arcs have labels; all if there is none."""
        if self.labelling is None:
            return heads
        channel = self._labelled_channel()
        return torch.cat([heads[:, :channel], heads[:, channel + 1 :]], 1)

    def with_labelled(self, heads: Tensor, of_channel: Tensor) -> Tensor:
        """The inverse of `without_labelled`.

        Args:
            heads: the other channels, (B, h − 1, …).
            of_channel: the channel whose arcs have labels, (B, 1, …).

        Returns:
            (B, h, …).
        """
        channel = self._labelled_channel()
        return torch.cat([heads[:, :channel], of_channel, heads[:, channel:]], 1)

    def all_channels(self, heads: Sequence[Tensor]) -> tuple[Tensor, Tensor | None, list[Tensor]]:
        """Q_H (B, h, n, columns); that of arcs and labels (B, m, n, columns) or None; the rest."""
        h, *rest = heads
        if self.labelling is None:
            return h, None, rest
        labelled, *rest = rest
        return self.with_labelled(h, labelled.sum(1, keepdim=True)), labelled, rest

    def _labelled_channel(self) -> int:
        assert self.labelling is not None
        assert self.labelling.labelled_channel is not None
        return self.labelling.labelled_channel

    def by_factor(self, heads: Sequence[Tensor]) -> list[Tensor | None]:
        """For each factor Q of what it scores, as `Factor.label_messages` takes it."""
        h, labelled, rest = self.all_channels(heads)
        columns = iter(h.split(self.columns(h.shape[2]), dim=-1))
        others = iter(rest)
        found: list[Tensor | None] = []
        for factor in self.factors:
            if factor.labelled_channel is not None:
                found.append(labelled)
                continue
            source = others if factor.head_variables else columns
            has_some = factor.head_variables or factor.columns(1)
            found.append(next(source) if has_some else None)
        return found

    def label_messages(self, heads: Sequence[Tensor], x: Sequence[Any]) -> list[Tensor]:
        """The messages to Z (B, n, d), without S, and to the label variables of factors.

        Args:
            heads: the distributions of the blocks, in the order of `head_messages`.
            x: what `prepare` returned.
        """
        on_words, *others = self.by_factor(heads)
        (to_z,) = self.words.label_messages(on_words, x[0])
        return self.add_others(to_z, others, x[1:])

    def add_others(
        self, to_z: Tensor, heads: Sequence[Tensor | None], x: Sequence[Any]
    ) -> list[Tensor]:
        """The messages of all factors to labels, given that of the words' factor to Z.

        Args:
            to_z: the message of the words' factor, (B, n, d).
            heads: for each other factor Q of what it scores, as in `by_factor`.
            x: for each other factor what its `prepare` returned.

        Returns:
            (B, n, d), then one tensor for each label variable of factors.
        """
        to_own: list[Tensor] = []
        for factor, p, part in zip(self.factors[1:], heads, x, strict=True):
            message, *own = factor.label_messages(p, part)
            to_z = to_z + message
            to_own += own
        return [to_z, *to_own]

    def expected_score(self, heads: Sequence[Tensor], x: Sequence[Any]) -> Tensor:
        """−E(Q) without the unary scores.

        Args:
            heads: the distributions of the blocks, in the order of `head_messages`.
            x: what `prepare` returned.

        Returns:
            (B,).
        """
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
    root, globals, arcs = settings.root, settings.globals, settings.arc_labels
    others: dict[str, Factor] = {}
    if arcs is not None:
        message = "arc_labels.count is needed: only a parser takes it from its data"
        require(arcs.count is not None, message)
        assert arcs.count is not None
        others["arc_labels"] = ArcLabels(labels, arcs.count, arcs.rank, arcs.channel)
    return Potentials(
        build_word_potential(settings.potential, labels, channels),
        root and Root(labels, channels, root.labels, root.initial_scores),
        globals and Global(labels, channels, globals.count, globals.mode, globals.features),
        **others,
    )
