"""An iteration's messages between words as one differentiable function of the label beliefs.

    A = Q Uᵀ, B = Q Vᵀ;   P = dropout(softmax(A Bᵀ / λ));   G = (P B) U + (Pᵀ A) V

PyTorch computes the products with U and V, and one kernel what lies between them. For the backward
pass only Q and the softmax's denominators are kept: to compute A and B again costs less than to
store them for all iterations. With a step size below one, the Q_H that is mixed in is kept, too.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from probformer.errors import InputError
from probformer.kernels.crf import short, tiled
from probformer.kernels.crf.problem import Contexts, Gradients, Problem, Vectors


def word_messages(
    q: Tensor,
    dependents: Tensor,
    heads: Tensor | None,
    scale: Tensor | None,
    rest: Tensor | None,
    old: Tensor | None,
    problem: Problem,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """G (R, d) from Q (R, d), the logarithm of the softmax's denominator (R, h), and Q_H.

    dependents U and heads V are (K or 1, h or 1, r, d); without V, B is Q itself. Products are
    computed in the precision of U. The denominator is differentiable only with a `rest`, as nothing
    else is computed from it. Q_H (R, h, longest) is None unless the problem remembers it, to be the
    next iteration's `old`.
    """
    width = problem.buckets * dependents.shape[2]
    if old is not None or problem.remembers:
        width = max(width, problem.packing.longest)
    most = 2**31 // (problem.channels * width)
    if problem.packing.longest >= most:  # kernels index from a sentence's start with 32 bits
        raise InputError(f"a sentence of {problem.packing.longest:,} words is too long for kernels")
    q, dependents = q.contiguous(), dependents.contiguous()  # kernels assume contiguous memory
    heads, scale, rest = (x if x is None else x.contiguous() for x in (heads, scale, rest))
    return _WordMessages.apply(q, dependents, heads, scale, rest, old, problem)


class _WordMessages(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        u: Tensor,
        v: Tensor | None,
        scale: Tensor | None,
        rest: Tensor | None,
        old: Tensor | None,
        problem: Problem,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        q = q.to(u.dtype)
        vectors = Vectors(_project(q, u), _project(q, v), scale, rest, old)
        found = Contexts.empty(problem, vectors)
        for kernels, part in kernels_for(problem, u.dtype):
            kernels.forward(part, vectors, found)
        ctx.save_for_backward(q, u, v, scale, rest, old, found.normaliser)
        ctx.problem = problem
        message = _collect(found.to_dependents, u, found.to_heads, v)
        return message, found.normaliser, found.beliefs

    @staticmethod
    @once_differentiable  # else second derivatives would be wrong without an error
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, d_message: Tensor, d_normaliser: Tensor, d_beliefs: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        q, u, v, scale, rest, old, normaliser = ctx.saved_tensors
        d_message = d_message.to(q.dtype).contiguous()
        vectors = Vectors(_project(q, u), _project(q, v), scale, rest, old)
        of_contexts = _project(d_message, u), _project(d_message, v)
        d_beliefs = None if d_beliefs is None else d_beliefs.contiguous()
        by_found = Contexts(*of_contexts, d_normaliser.contiguous(), d_beliefs)
        found = Gradients.empty(ctx.problem, vectors)
        for kernels, part in kernels_for(ctx.problem, u.dtype):
            kernels.backward(part, vectors, normaliser, by_found, found)
        both = torch.cat([q, d_message])  # G = Y U and A = Q Uᵀ each give a part of U's gradient
        dq = _collect(found.dependents[0], u, found.heads[0], v)
        du = _weight_gradient(found.dependents, both, u)
        dv = None if v is None else _weight_gradient(found.heads, both, v)
        return dq, du, dv, found.scale, found.rest, found.old, None


def kernels_for(problem: Problem, dtype: torch.dtype) -> list[tuple[ModuleType, Problem]]:
    """The fastest kernels, and the sentences for each: one long sentence does not slow others."""
    packing, most = problem.packing, short.most_words(dtype)
    if packing.longest <= most:
        return [(short, problem)]
    if packing.alike:
        return [(tiled, problem)]
    rest = replace(problem, packing=packing.longer_than(most))
    return [(short, problem), (tiled, rest)]


def _project(q: Tensor, weight: Tensor | None) -> Tensor:
    """(R, d), (K, h, r, d) -> (R, K, h, r)."""
    if weight is None:
        return q[:, None, None]
    return (q @ weight.flatten(0, 2).mT).unflatten(-1, weight.shape[:3])


def _collect(x: Tensor, u: Tensor, y: Tensor, v: Tensor | None) -> Tensor:
    """x U + y V: the adjoint of both projections; channels that share a matrix are summed first."""
    if v is None:  # y is not multiplied, so it stays in float32
        return y.sum(2).flatten(1) + _shared(x, u).flatten(1) @ u.flatten(0, 2)
    first = _shared(y, v).flatten(1) @ v.flatten(0, 2)
    return first.addmm_(_shared(x, u).flatten(1), u.flatten(0, 2))


def _weight_gradient(x: Tensor, q: Tensor, weight: Tensor) -> Tensor:
    """The gradient of U or V, from x (2, R, K, h, r) and its other factor (2R, d)."""
    return (_shared(x.flatten(0, 1), weight).flatten(1).mT @ q).view_as(weight)


def _shared(x: Tensor, weight: Tensor) -> Tensor:
    return x.sum(2, keepdim=True).to(weight.dtype) if weight.shape[1] < x.shape[2] else x
