"""The paper's equations as plain loops, and exact enumeration: what tests compare the rest with.

One sentence at a time, potentials as dense numbers. A variable is named by a tuple:
("Z", i) the label of word i, ("ROOT",) the label of ROOT, ("H", c, i) the head of word i in
channel c, ("G", c, i) its split global feature. The values of H are the words 0 … n−1, then ROOT,
then the all-dep global features, then the columns of other factors, if the model has these. Q maps
each variable to its distribution. Everything but `enumerate_exactly` is differentiable. Speed is no
aim here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probformer.config import Inference
from probformer.crf.sentence_field import Q, SentenceField, Variable
from probformer.crf.structures import (
    Independent,
    Structure,
    head_structure,
    label_structure,
    row_structure,
)
from probformer.sentinels import ROOT

Observed = Mapping[Variable, int | Sequence[int]]
"""For observed variables their value, or the values that are left."""


def energy(crf: SentenceField, q: Q) -> Tensor:
    """E(Q) of appendix A.4, a scalar."""
    total = crf.S.new_zeros(())
    for i in range(crf.n):
        total = total - q["Z", i] @ crf.S[i]
    for variable in crf.heads:
        match variable:
            case ("G", c, i):
                assert crf.B is not None
                total = total - q[variable] @ crf.B[c] @ q["Z", i]
            case ("H", c, i):
                arcs = crf.arcs(q, c, i)
                for j in range(crf.first_other):
                    if j != i:
                        total = total - arcs[j] * crf.score(c, i, j, q)
    return total - crf.scores_of_others(q)


def free_energy(
    crf: SentenceField,
    q: Q,
    lambda_z: float = 1.0,
    lambda_h: float = 1.0,
    entropy_of_heads: Tensor | None = None,
) -> Tensor:
    """E(Q) − Σ λ H(Q), a scalar. With λ = 1 it is never below −log Z.

    Args:
        crf: a sentence.
        q: the distribution of every variable.
        lambda_z: the message weight of labels.
        lambda_h: the message weight of heads.
        entropy_of_heads: the joint entropy of all ("H", c, i), if they are not independent.
    """
    total = energy(crf, q)
    for weight, variables in ((lambda_z, crf.labels), (lambda_h, crf.heads)):
        for variable in variables:
            if variable[0] != "H" or entropy_of_heads is None:
                total = total - weight * torch.special.entr(q[variable]).sum()
    return total if entropy_of_heads is None else total - lambda_h * entropy_of_heads


def message(crf: SentenceField, variable: Variable, q: Q) -> Tensor:
    """The message to a variable from all factors, the unary scores included: −∂E/∂Q."""
    total = _paper_message(crf, variable, q)
    return total + _slope(crf, variable, q) if crf.others else total


def _slope(crf: SentenceField, variable: Variable, q: Q) -> Tensor:
    """The message from other factors: as scores are linear in Q, differences from zero suffice."""
    values = torch.eye(crf.size(variable), dtype=q[variable].dtype)
    at_zero = crf.scores_of_others(q | {variable: torch.zeros_like(values[0])})
    return torch.stack([crf.scores_of_others(q | {variable: value}) - at_zero for value in values])


def _paper_message(crf: SentenceField, variable: Variable, q: Q) -> Tensor:
    words = range(crf.n)
    if variable[0] not in ("Z", "ROOT", "H", "G"):
        return crf.S.new_zeros(crf.size(variable))
    match variable:
        case ("H", c, i):  # F, eqs. 3 and 34
            zero, labels = crf.S.new_zeros(()), crf.labels_in(c)
            rest = crf.size(variable) // labels - crf.first_other
            values = range(crf.first_other)
            scores = [crf.score(c, i, j, q) if j != i else zero for j in values]
            return torch.stack(scores + rest * [zero]).repeat_interleave(labels)
        case ("G", c, i):  # eqs. 40 and 48
            assert crf.B is not None
            return crf.B[c] @ q["Z", i]
        case ("ROOT",):
            assert crf.T_root is not None
            pairs = [(c, i) for c in crf.channels for i in words]
            return _sum(crf.arcs(q, c, i)[crf.n] * (q["Z", i] @ crf.T_root[c]) for c, i in pairs)
    i = variable[1]
    total = crf.S[i]
    for c in crf.channels:  # G, eqs. 4, 35, 41 and 49
        own = crf.arcs(q, c, i)
        for j in words:
            if j != i:
                total = total + own[j] * (crf.T(i - j)[c] @ q["Z", j])
                total = total + crf.arcs(q, c, j)[i] * (q["Z", j] @ crf.T(j - i)[c])
        if crf.T_root is not None:
            total = total + own[crf.n] * (crf.T_root[c] @ q[("ROOT",)])
        if crf.B is not None and crf.all_dep:
            total = total + own[crf.first_global : crf.first_other] @ crf.B[c]
    if crf.split is not None:
        for c, b in enumerate(crf.split):
            total = total + q["G", c, i] @ b
    return total


def mean_field(
    crf: SentenceField, inference: Inference, observed: Observed | None = None
) -> tuple[Q, Q]:
    """Marginals and scores after inference (sections 2.2, 2.3.2, 2.3.3 and appendix B).

    Args:
        crf: a sentence.
        inference: iterations, schedule, message weights, structures.
        observed: the values of observed variables; of some, several values may be left, such as
            all labels of an arc whose head is observed.
    """
    observed = observed or {}
    lambda_h = inference.lambda_h_for(crf.S.shape[1])
    of_labels = (inference.lambda_z, inference.damping_z)
    of_heads = (lambda_h, inference.damping_h)
    rules = dict.fromkeys(crf.labels, of_labels) | dict.fromkeys(crf.heads, of_heads)
    structures = dict.fromkeys(crf.labels, label_structure(inference))
    structures |= dict.fromkeys(crf.heads, row_structure(inference))
    joint_heads = head_structure(inference)
    structures |= {v: joint_heads.of_channel(v[1]) for v in crf.heads if v[0] == "H"}

    def distributions(variables: list[Variable], scores: Q) -> Q:
        found: Q = {}
        for v in variables:
            given = observed.get(v)
            if not isinstance(structures[v], Independent):
                if v not in found:
                    block = [other for other in variables if _block(other) == _block(v)]
                    found |= joint(crf, structures[v], block, scores, observed).marginals
            elif isinstance(given, int):
                found[v] = torch.eye(len(scores[v]), dtype=scores[v].dtype)[given]
            else:
                left = torch.ones(len(scores[v]), dtype=torch.bool)
                if given is not None:
                    left[:] = False
                    left[list(given)] = True
                found[v] = structures[v].marginals(scores[v], crf.forbidden(v) | ~left)
        return found

    messages = {v: crf.S.new_zeros(crf.size(v)) for v in rules}  # M
    messages |= {("Z", i): crf.S[i] for i in range(crf.n)}
    q = distributions([*rules], messages)  # eqs. 7, 8
    scores = dict(messages)

    def update(variables: list[Variable], old: Q, step: float) -> Q:
        for v in variables:
            weight, damping = rules[v]
            messages[v] = (1 - damping) * message(crf, v, old) + damping * messages[v]
            scores[v] = messages[v] / weight
        new = distributions(variables, scores)
        return {v: step * new[v] + (1 - step) * old[v] for v in variables}

    for t in range(inference.iterations):
        decay = 2 / (t + 2) if inference.step_decay else 1.0
        step_z, step_h = inference.step_z * decay, inference.step_h * decay
        before = q
        if inference.asynchronous:
            q = q | update(crf.heads, q, step_h if t > 0 else 1.0)
            q = q | update(crf.labels, q, step_z)
        else:
            q = update(crf.heads, before, step_h) | update(crf.labels, before, step_z)
        if inference.tolerance is not None:
            moved = max((q[v] - before[v]).abs().max().item() for v in q)
            if moved <= inference.tolerance:
                break
    return q, scores


def _block(variable: Variable) -> Variable:
    """What variables that a structure takes together share: all but the place in the sentence."""
    return variable[:-1] or variable


@dataclass(frozen=True)
class Joint:
    """The distribution of variables that depend on each other, by a sum over assignments."""

    marginals: Q
    log_partition: Tensor
    entropy: Tensor


def joint(
    crf: SentenceField,
    structure: Structure,
    variables: Sequence[Variable],
    scores: Q,
    observed: Observed | None = None,
) -> Joint:
    """Sums over all assignments of these variables that the structure allows."""

    def meaning(variable: Variable, value: int) -> int:
        value = value // crf.labels_in(variable[1]) if variable[0] == "H" else value
        is_root = variable[0] == "H" and value == crf.n and crf.T_root is not None
        return ROOT if is_root else value

    choices = []
    for v in variables:
        allowed = (~crf.forbidden(v)).nonzero().flatten().tolist()
        given = observed.get(v, allowed) if observed else allowed
        choices.append([given] if isinstance(given, int) else given)
    assignments = [
        values
        for values in itertools.product(*choices)
        if structure.allows([*map(meaning, variables, values)])
    ]
    totals = torch.stack(
        [
            _sum(scores[v][value] for v, value in zip(variables, values, strict=True))
            for values in assignments
        ]
    )
    p = totals.softmax(0)
    marginals = {v: torch.zeros_like(scores[v]) for v in variables}
    for weight, values in zip(p, assignments, strict=True):
        for v, value in zip(variables, values, strict=True):
            one = torch.eye(len(scores[v]), dtype=p.dtype)[value]
            marginals[v] = marginals[v] + weight * one
    return Joint(marginals, totals.logsumexp(0), torch.special.entr(p).sum())


@dataclass(frozen=True)
class Exact:
    """The exact posterior of a tiny sentence."""

    log_partition: float
    marginals: Q

    def divergence(self, crf: SentenceField, q: Q) -> float:
        """KL(Q ‖ p) = free energy + log Z: how far a factorised Q is from the exact posterior."""
        return free_energy(crf, q).item() + self.log_partition


def enumerate_exactly(crf: SentenceField) -> Exact:
    """Every assignment of labels and heads, weighed by exp(−energy): all λ are 1."""
    variables = crf.labels + crf.heads
    values = [(~crf.forbidden(v)).nonzero().flatten().tolist() for v in variables]
    weights: dict[tuple[int, ...], float] = {}
    for assignment in itertools.product(*values):
        point_masses = {
            v: torch.eye(crf.size(v), dtype=crf.S.dtype)[value]
            for v, value in zip(variables, assignment, strict=True)
        }
        weights[assignment] = -energy(crf, point_masses).item()
    top = max(weights.values())
    log_partition = top + math.log(sum(math.exp(w - top) for w in weights.values()))
    marginals = {v: crf.S.new_zeros(crf.size(v)) for v in variables}
    for assignment, weight in weights.items():
        for v, value in zip(variables, assignment, strict=True):
            marginals[v][value] += math.exp(weight - log_partition)
    return Exact(log_partition, marginals)


def _sum(terms) -> Tensor:
    first, *rest = terms
    for term in rest:
        first = first + term
    return first
