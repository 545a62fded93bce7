"""The conditional random field of one sentence, as dense numbers, for `reference`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Variable = tuple
Q = dict[Variable, Tensor]


@dataclass(frozen=True)
class OtherFactor:
    """A factor that is not in the paper: its variables, and their expected score."""

    labels: Mapping[Variable, int]
    """Its label variables, and how many values each has."""
    heads: Mapping[Variable, int]
    """Its head variables, likewise."""
    score: Callable[[Q], Tensor]
    """Its part of −E(Q), linear in the distribution of each variable; with columns, only they are
    the values of H."""
    forbidden: Tensor | None = None
    """(n, columns), true where word i cannot have one of its columns as head; None without."""

    @property
    def columns(self) -> int:
        """The number of values that it adds to each H."""
        return 0 if self.forbidden is None else self.forbidden.shape[1]


@dataclass(frozen=True)
class SentenceField:
    """The conditional random field of one sentence (section 2.1)."""

    S: Tensor
    """Unary scores (n, d)."""
    T: Callable[[int], Tensor]
    """From i−j to T[f(i−j)] (h, d, d): first the label of the dependent i, then of the head j."""
    T_root: Tensor | None = None
    """(h, d, d_root)."""
    B: Tensor | None = None
    """Global features (h, m, d), or (1, m, d) where a word has one G for all channels."""
    all_dep: bool = False
    """Global features are values of H; otherwise they have variables G of their own."""
    others: Sequence[OtherFactor] = ()
    arc_labels: tuple[int, int] | None = None
    """The channel whose arcs have labels, and m, their number. The values of its H are pairs: head
    j with label l is value j · m + l."""

    @property
    def n(self) -> int:
        return len(self.S)

    @property
    def channels(self) -> range:
        return range(len(self.T(1)))

    @property
    def first_global(self) -> int:
        """The value of H that means global feature 0."""
        return self.n + (self.T_root is not None)

    @property
    def first_other(self) -> int:
        """The value of H that means the first column of the first other factor with columns."""
        joint = self.B.shape[1] if self.B is not None and self.all_dep else 0
        return self.first_global + joint

    @property
    def split(self) -> Tensor | None:
        """B where global features have variables of their own."""
        return None if self.all_dep else self.B

    @property
    def labels(self) -> list[Variable]:
        root = [] if self.T_root is None else [("ROOT",)]
        others = [variable for factor in self.others for variable in factor.labels]
        return [("Z", i) for i in range(self.n)] + root + others

    @property
    def heads(self) -> list[Variable]:
        words = range(self.n)
        heads = [("H", c, i) for c in self.channels for i in words]
        split = [] if self.split is None else range(len(self.split))
        others = [variable for factor in self.others for variable in factor.heads]
        return heads + [("G", c, i) for c in split for i in words] + others

    def size(self, variable: Variable) -> int:
        """The number of values of a variable, the forbidden H_i = i included."""
        for factor in self.others:
            if variable in factor.labels or variable in factor.heads:
                return {**factor.labels, **factor.heads}[variable]
        match variable:
            case ("Z", _):
                return self.S.shape[1]
            case ("ROOT",):
                assert self.T_root is not None
                return self.T_root.shape[2]
            case ("H", c, _):
                heads = self.first_other + sum(factor.columns for factor in self.others)
                return heads * self.labels_in(c)
            case _:
                assert self.B is not None
                return self.B.shape[1]

    def forbidden(self, variable: Variable) -> Tensor:
        """True where a value cannot be taken: no word heads itself, and what a factor forbids."""
        if variable[0] != "H":
            return torch.zeros(self.size(variable), dtype=torch.bool)
        _, c, i = variable
        values = [j == i for j in range(self.first_other)]
        for factor in self.others:
            if factor.forbidden is not None:
                values += factor.forbidden[i].tolist()
        return torch.tensor(values).repeat_interleave(self.labels_in(c))

    def labels_in(self, c: int) -> int:
        """The number of labels of an arc in a channel; 1 where arcs have none."""
        channel, count = self.arc_labels or (None, 1)
        return count if c == channel else 1

    def arcs(self, q: Q, c: int, i: int) -> Tensor:
        """The probabilities of the heads of word i, summed over labels."""
        return q["H", c, i].view(-1, self.labels_in(c)).sum(1)

    def scores_of_others(self, q: Q) -> Tensor:
        """The part of −E(Q) of all other factors."""
        total, first = self.S.new_zeros(()), self.first_other
        for factor in self.others:
            last = first + factor.columns
            columns = {v: p[first:last] for v, p in q.items() if v[0] == "H" and factor.columns}
            total, first = total + factor.score(q | columns), last
        return total

    def score(self, c: int, i: int, j: int, q: Q) -> Tensor:
        """F_ic(j) (eqs. 3, 34): the score of value j of H_i in channel c."""
        if j < self.n:
            return q["Z", i] @ self.T(i - j)[c] @ q["Z", j]
        if j < self.first_global:
            assert self.T_root is not None
            return q["Z", i] @ self.T_root[c] @ q[("ROOT",)]
        assert self.B is not None
        return q["Z", i] @ self.B[c, j - self.first_global]
