"""Mean-field iterations that never materialise Q_H, through the fused kernels.

Kernels go from label distributions to label messages: F, its softmax and the dropped-out Q_H never
exist as n × n matrices in memory. Only where a step size below one mixes Q_H into that of the next
iteration is it stored. Results equal those of the loop in `inference.py`, the plain path, up to
rounding; dropout draws other random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from probformer.config import Inference
from probformer.crf.devices import kernels_run_on
from probformer.crf.evidence import Evidence
from probformer.crf.normalisers import softmax
from probformer.crf.potentials import Factor, Potentials
from probformer.crf.structures import Independent, head_structure, label_structure
from probformer.crf.variables import Belief, Variables, dropout_at, padding_of
from probformer.packing import Packing

HALF = torch.bfloat16
"""The only half precision with kernels: scores divided by λ_H overflow in float16."""
FORBIDDEN = -1e30
"""The score of a forbidden column: finite, as kernels multiply it by log₂ e."""


def can_fuse(
    unary: Tensor,
    potentials: Potentials,
    inference: Inference,
    evidence: Evidence,
    trace: bool,
    attention: bool,
) -> bool:
    """Whether kernels may compute the iterations: they neither return Q_H nor take observed heads.

    With `attention`, the plain path computes the last iteration, to return its Q_H. That excludes
    step sizes that mix in the Q_H of the iteration before, which kernels do not return.
    """
    return (
        kernels_run_on(unary.device)
        and not torch.compiler.is_compiling()
        and unary.dtype != torch.float64
        and dtype_of_products(unary) in (torch.float32, HALF)
        and potentials.words.has_matrices
        and potentials.labelling is None
        and kernels_support(inference)
        and not _observes_heads(potentials, evidence)
        and not trace
        and not (attention and _mixes_heads(inference))
    )


def kernels_support(inference: Inference) -> bool:
    """Asynchronous softmax updates of heads, any step size, no damping, fixed iterations.

    Labels are independent: in a packed row, a joint structure would reach over several sentences.
    """
    return (
        inference.asynchronous
        and head_structure(inference).is_softmax
        and isinstance(label_structure(inference), Independent)
        and not inference.damping_h
        and inference.tolerance is None
    )


def _observes_heads(potentials: Potentials, evidence: Evidence) -> bool:
    """Whether evidence has indices for H or for a head variable of a factor."""
    names = {"heads", *(variable.name for variable in potentials.head_variables)}
    names |= {factor.column_evidence or "" for factor in potentials.with_columns}
    return any(name in names for name, _ in evidence.given())


def _mixes_heads(inference: Inference) -> bool:
    """Whether a step size below one mixes Q_H with that of the iteration before."""
    return any(inference.steps(t)[1] < 1 for t in range(inference.iterations))


def _forbidden_columns(factor: Factor, mask: Tensor, packing: Packing | None) -> Tensor | None:
    """(B, 1, n, m), true where a word cannot have a column of the factor as its head.

    None if that is at padding only: there the log-normaliser of kernels is +∞.
    """
    if type(factor).forbidden_columns is Factor.forbidden_columns:
        return None
    if packing is None:
        return factor.forbidden_columns(mask).unsqueeze(1)
    forbidden = factor.forbidden_columns(packing.mask())
    return packing.pack(forbidden, mask.shape[1]).unsqueeze(1)


def dtype_of_products(x: Tensor) -> torch.dtype:
    """The dtype of matrix products with x: that of autocast where it is on."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


class _Heads(NamedTuple):
    """Q_H before dropout, which the next iteration mixes into its own."""

    words: Tensor | None
    """(R, h, longest), as kernels write it."""
    others: list[Tensor | None]
    """For each factor but the words', (B, h, n, m), or None if it has no heads."""


class _Rounded(torch.autograd.Function):
    """A parameter in half precision, once per iteration; gradients add up in its own precision."""

    @staticmethod
    def forward(
        ctx: Any, parameter: Tensor, dtype: torch.dtype, iterations: int
    ) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.dtype = parameter.dtype
        rounded = parameter.to(dtype)
        return tuple(rounded.view_as(rounded) for _ in range(iterations))

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> Any:
        total: Tensor | None = None
        for gradient in grad_outputs:
            if total is None:
                total = None if gradient is None else gradient.to(ctx.dtype)
            elif gradient is not None:
                total.add_(gradient)
        return total, None, None


def _for_products(parameter: Tensor, dtype: torch.dtype, iterations: int) -> Sequence[Tensor]:
    """The parameter in the precision of matrix products, once per iteration."""
    if parameter.dtype == dtype:
        return [parameter] * iterations
    return _Rounded.apply(parameter, dtype, iterations)  # type: ignore[no-any-return]


class FusedIterations:
    """Iterations that return beliefs about labels, not about heads."""

    def __init__(
        self,
        unary: Tensor,
        mask: Tensor,
        packing: Packing | None,
        potentials: Potentials,
        inference: Inference,
        labels: Sequence[Variables],
        rate: float,
        generator: torch.Generator | None,
    ) -> None:
        self.unary = unary
        self.potentials = potentials
        self.inference = inference
        self.labels = labels
        self.weight = inference.lambda_h_for(potentials.words.labels)
        self.rate = rate
        self.drop = dropout_at(rate, generator)
        self.mask = mask.contiguous().flatten()
        self.packing = Packing.of_padded(mask)
        if packing is not None:
            self.packing = packing.covering(len(self.mask))
        others = potentials.factors[1:]
        self.forbidden = [_forbidden_columns(factor, mask, packing) for factor in others]
        self.padding = {
            i: padding_of(variable, mask)
            for i, factor in enumerate(others)
            for variable in factor.head_variables
        }
        self.dtype = dtype_of_products(unary)
        matrices = potentials.words.matrices(self.packing.longest)
        self.scale, self.angles = matrices.scale, matrices.angles
        self.dependents = _for_products(matrices.dependents, self.dtype, inference.iterations)
        self.heads: Sequence[Tensor | None] = [None] * inference.iterations
        if matrices.heads is not None:
            self.heads = _for_products(matrices.heads, self.dtype, inference.iterations)
        self.seeds = None
        if rate:
            size = (inference.iterations, 2, 1)  # for heads and for labels
            self.seeds = torch.randint(2**62, size, device=unary.device, generator=generator)

    def up_to(self, count: int, beliefs: Sequence[Belief]) -> list[Belief]:
        """Beliefs about the labels after the first `count` iterations."""
        beliefs, heads = list(beliefs), None
        for t in range(count):
            is_sent = t + 1 < self.inference.iterations
            remember = t + 1 < count and self.inference.steps(t + 1)[1] < 1
            labels = [belief.sent for belief in beliefs]
            (to_z, *to_others), heads = self._messages(labels, heads, t, remember)
            step, _ = self.inference.steps(t)
            z, *others = self.labels
            if t + 1 < count and self._labels_are_plain(t):
                beliefs[0] = beliefs[0]._replace(sent=self._updated(to_z, t))
            else:
                beliefs[0] = z.update(beliefs[0], self.unary + to_z, step, is_sent)
            for i, (kind, message) in enumerate(zip(others, to_others, strict=True), 1):
                beliefs[i] = kind.update(beliefs[i], message, step, is_sent)
        return beliefs

    def _labels_are_plain(self, t: int) -> bool:
        """Whether Q_Z of iterations t and t + 1 is just a softmax of that iteration's S + G."""
        inference, z = self.inference, self.labels[0]
        plain = label_structure(inference).is_softmax and z.observed is None
        whole = inference.steps(t)[0] == inference.steps(t + 1)[0] == 1
        return plain and whole and not inference.damping_z

    def _updated(self, message: Tensor, t: int) -> Tensor:
        from probformer.kernels.crf.label_update import updated_labels

        rows, weight = self.mask, self.inference.lambda_z
        seed = None if self.seeds is None else self.seeds[t, 1]
        sent = updated_labels(
            self.unary.flatten(0, 1), message.flatten(0, 1), rows, weight, self.rate, seed
        )
        return sent.view_as(message)

    def _messages(
        self, labels: Sequence[Tensor], old: _Heads | None, t: int, remember: bool
    ) -> tuple[list[Tensor], _Heads | None]:
        """Messages of iteration t to Z (B, n, d), without S, and to the factors' label variables.

        Also Q_H, if `remember` says that the next iteration mixes it into its own.
        """
        factors = self.potentials.factors[1:]
        x = self.potentials.prepare_others(labels)
        scores = [f.head_scores(part) for f, part in zip(factors, x, strict=True)]
        scores = [None if s is None else s.float() / self.weight for s in scores]
        scores = [
            s if s is None or excluded is None else s.masked_fill(excluded, FORBIDDEN)
            for s, excluded in zip(scores, self.forbidden, strict=True)
        ]
        columns = [s for i, s in enumerate(scores) if i not in self.padding and s is not None]
        to_z, normaliser, words = self._word_messages(labels[0], columns, old, t, remember)

        def marginals(score: Tensor, i: int) -> Tensor:
            if i in self.padding:  # of a head variable of the factor's own
                return softmax(score, self.padding[i])
            p, excluded = (score - normaliser).exp(), self.forbidden[i]
            return p if excluded is None else p.masked_fill(excluded, 0.0)

        heads = [None if s is None else marginals(s, i) for i, s in enumerate(scores)]
        if old is not None:
            _, step = self.inference.steps(t)
            pairs = zip(heads, old.others, strict=True)
            heads = [
                None if p is None or q is None else step * p + (1 - step) * q for p, q in pairs
            ]
        kept = _Heads(words, heads) if remember else None
        if self.drop is not None:
            heads = [None if p is None else self.drop(p) for p in heads]
        heads = [None if p is None else p.to(self.unary.dtype) for p in heads]
        return self.potentials.add_others(to_z, heads, x), kept

    def _word_messages(
        self, q: Tensor, columns: Sequence[Tensor], old: _Heads | None, t: int, remember: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Messages between words (B, n, d), H's log-normaliser (B, h, n, 1), Q_H to remember.

        `columns` (B, h, n, m) are the scores of values of H that are not words, such as ROOT.
        """
        from probformer.kernels.crf.messages import word_messages
        from probformer.kernels.crf.problem import Problem

        problem = Problem(
            packing=self.packing,
            mask=self.mask,
            channels=self.potentials.words.channels,
            gamma=self.potentials.words.buckets.gamma,
            weight=self.weight,
            angles=self.angles,
            rate=self.rate,
            seed=None if self.seeds is None else self.seeds[t, 0],
            step=self.inference.steps(t)[1],
            remembers=remember,
        )
        rest = None
        if columns:
            rest = torch.cat(tuple(columns), -1).logsumexp(-1).transpose(1, 2).flatten(0, 1)
        before = None if old is None else old.words
        message, normaliser, words = word_messages(
            q.flatten(0, 1), self.dependents[t], self.heads[t], self.scale, rest, before, problem
        )
        normaliser = normaliser.unflatten(0, q.shape[:2]).transpose(1, 2).unsqueeze(-1)
        return message.view_as(q), normaliser, words
