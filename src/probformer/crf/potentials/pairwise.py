"""Scores and contexts of all pairs of words, computed in the same way for every potential.

A potential projects the label distributions to two vectors per word, one as a dependent (A) and
one as a head (B), for each distance bucket k and channel c. Given these, inference computes

    F[c,i,j] = Σ_l A[k]_icl B[k]_jcl            the score of j as the head of i      (eq. 3)
    to i as a dependent: Σ_j P[c,i,j] B[k]_j    to j as a head: Σ_i P[c,i,j] A[k]_i  (eq. 4)

with k = f(i−j). Both are gradients of Σ P F, which is linear in P, in A and in B. So the gradients
of scores are contexts, and those of contexts are scores and contexts again. They are written out
here, as automatic differentiation would copy whole tensors to put their buckets together.

Only the two open-ended buckets need all n × n pairs. A near bucket is one diagonal, so it costs n
products: those of A and of B shifted by the distance, over all sentences of the batch in one row.
Products with the sentence before or behind land outside the matrix, where scores are dropped and P
is zero.

Shapes: A (B, n, K, h, r); B the same, with 1 for K or h where all buckets or channels share it;
F, P (B, h, n, n). Contractions have two operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from probformer.crf.potentials.buckets import Buckets, band_from_matrix, matrix_from_band


@dataclass(frozen=True)
class Pairs:
    """The vectors of words, and the scores of all pairs."""

    scores: Tensor
    """F (B, h, n, n). The diagonal is arbitrary: no word heads itself."""
    dependents: Tensor
    """A."""
    heads: Tensor
    """B."""
    rules: _Rules

    @classmethod
    def of(cls, dependents: Tensor, heads: Tensor, buckets: Buckets) -> Pairs:
        dtype = torch.promote_types(dependents.dtype, heads.dtype)
        device = dependents.device.type
        autocast = torch.is_autocast_enabled(device)
        rules = _Rules(buckets, torch.get_autocast_dtype(device) if autocast else dtype)
        scores, a, b = _Scores.apply(dependents.to(dtype), heads.to(dtype), rules)
        return cls(scores, a, b, rules)

    def contexts(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """The contexts of dependents and heads (eq. 4), shaped as A and B."""
        p = p.to(self.dependents.dtype)
        return _Contexts.apply(p, self.dependents, self.heads, self.rules)


@dataclass(frozen=True)
class _Rules:
    buckets: Buckets
    products: torch.dtype
    """Dtype of matrix products: autocast does not apply to backward passes written by hand."""


class _Scores(torch.autograd.Function):
    """F; also A and B for `_Contexts`, so that gradients of both uses add up in place."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, rules: _Rules) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(a, b)
        ctx.rules = rules
        return _scores(a, b, rules), a.view_as(a), b.view_as(b)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, None]:
        (a, b), (of_scores, of_a, of_b) = ctx.saved_tensors, grad_outputs
        _put_contexts(of_scores, a, b, ctx.rules, of_a, of_b, fresh=False)
        return of_a, of_b, None


class _Contexts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, p: Tensor, a: Tensor, b: Tensor, rules: _Rules) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(p, a, b)
        ctx.rules = rules
        return _contexts(p, a, b, rules)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (p, a, b), (of_a, of_b) = ctx.saved_tensors, grad_outputs
        of_p = _scores(of_a, b, ctx.rules) + _scores(a, of_b, ctx.rules)
        return of_p, *_contexts(p, of_a, of_b, ctx.rules), None


def _scores(a: Tensor, b: Tensor, rules: _Rules) -> Tensor:
    gamma, b = rules.buckets.gamma, b.expand_as(a)
    far = [_far(a, k, rules) @ _far(b, k, rules).mT for k in rules.buckets.far]
    if gamma is None:
        return far[0]
    scores = far[0].triu_(gamma + 1).add_(far[1].tril_(-gamma - 1))
    if gamma == 0:
        return scores
    sentences, (a, b) = a.shape[:2], (a.flatten(0, 1), b.flatten(0, 1))
    band = a.new_zeros(len(a), a.shape[2], 2 * gamma + 1)  # from j−i = −γ to γ
    for k, shift, here, there in _near(rules, len(a)):
        band[here, :, gamma + shift] = (a[here, k] * b[there, k]).sum(-1)
    return scores + matrix_from_band(band.unflatten(0, sentences).transpose(1, 2))


def _contexts(p: Tensor, a: Tensor, b: Tensor, rules: _Rules) -> tuple[Tensor, Tensor]:
    if a.shape != b.shape:  # contexts of heads are sums over the buckets or channels that share B
        to_a, to_b = a.new_zeros(a.shape), b.new_zeros(b.shape)
        _put_contexts(p, a, b, rules, to_a, to_b, fresh=False)
        return to_a, to_b
    to_a, to_b = a.new_empty(a.shape), b.new_empty(b.shape)
    gamma = rules.buckets.gamma or 0
    for rows in (to_a.flatten(0, 1), to_b.flatten(0, 1)):  # near buckets do not write to the ends
        rows[:gamma] = 0
        rows[len(rows) - gamma :] = 0
    _put_contexts(p, a, b, rules, to_a, to_b, fresh=True)
    return to_a, to_b


def _put_contexts(
    p: Tensor, a: Tensor, b: Tensor, rules: _Rules, to_a: Tensor, to_b: Tensor, fresh: bool
) -> None:
    """Write contexts to `to_a` and `to_b`: replace what they hold if `fresh`, else add to it."""
    gamma, b = rules.buckets.gamma, b.expand_as(a)
    parts = [p] if gamma is None else [p.triu(gamma + 1), p.tril(-gamma - 1)]
    for k, part in zip(rules.buckets.far, parts, strict=True):
        part, k_b = part.to(rules.products), k % to_b.shape[2]
        _put(to_a[:, :, k], (part @ _far(b, k, rules)).transpose(1, 2), fresh)
        _put(to_b[:, :, k_b], _to_heads(part, _far(a, k, rules), to_b.shape[3]), fresh)
    if gamma:
        weights = band_from_matrix(p, gamma).transpose(1, 2).flatten(0, 1)  # (B·n, h, 2γ+1)
        a, b, to_a, to_b = (x.flatten(0, 1) for x in (a, b, to_a, to_b))
        for k, shift, here, there in _near(rules, len(a)):
            weight, k_b = weights[here, :, gamma + shift, None], k % to_b.shape[1]
            _put_product(to_a[here, k], weight, b[there, k], fresh)
            _put_product(to_b[there, k_b], weight, a[here, k], fresh)


def _to_heads(p: Tensor, a: Tensor, channels: int) -> Tensor:
    """(B, n, h or 1, r)."""
    if channels == 1:  # one product sums over channels, without rounding each channel's part
        return (p.flatten(1, 2).mT @ a.flatten(1, 2)).unsqueeze(2)
    return (p.mT @ a).transpose(1, 2)


def _put(target: Tensor, value: Tensor, fresh: bool) -> None:
    if fresh:
        target.copy_(value)
    else:
        target.add_(value)


def _put_product(target: Tensor, x: Tensor, y: Tensor, fresh: bool) -> None:
    """`_put` of x·y, without a temporary tensor where that is possible."""
    # Neither double backward nor the compiler supports a view as `out`.
    plain = not torch.is_grad_enabled() and not torch.compiler.is_compiling()
    if fresh and plain:
        torch.mul(x, y, out=target)
    elif not fresh and target.shape == y.shape:
        target.addcmul_(x, y)
    else:
        _put(target, (x * y).sum_to_size(target.shape), fresh)


def _far(x: Tensor, k: int, rules: _Rules) -> Tensor:
    """(B, n, K, h, r) -> (B, h, n, r), laid out for batched products."""
    return x[:, :, k].transpose(1, 2).to(rules.products).contiguous()


def _near(rules: _Rules, rows: int) -> Iterator[tuple[int, int, slice, slice]]:
    """For each near bucket: k, j−i, the rows of dependents, and those of their heads."""
    for k, shift in enumerate(rules.buckets.near, start=1):
        width = max(rows - abs(shift), 0)
        first, last = slice(0, width), slice(rows - width, rows)
        yield k, shift, *((first, last) if shift > 0 else (last, first))
