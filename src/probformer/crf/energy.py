"""The energy E(Q) of appendix A.4, and the free energy.

E(Q) = −Σ_i ⟨Q_i, S_i⟩ − the sum of the factors' expected scores; the messages are −∂E/∂Q. The free
energy is E(Q) − Σ_v λ_v H(Q_v). An update of all heads, or of the label of one word, never raises
it (eq. 31); an update of all labels at once may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import torch
from torch import Tensor

from probformer.crf.posterior import Posterior
from probformer.crf.potentials import Potentials
from probformer.crf.structures import row_entropy
from probformer.errors import InputError, require_kind


def energy(unary: Tensor, mask: Tensor, potentials: Potentials, posterior: Posterior) -> Tensor:
    """E(Q) of each sentence.

    Args:
        unary: the words' scores S, (B, n, d).
        mask: (B, n) bool, true where there is a word.
        potentials: the factors with which the posterior was inferred.
        posterior: a result of `mean_field` with `attention=True`, which includes Q_H.

    Returns:
        (B,).

    Raises:
        InputError: the posterior lacks marginals that the potentials have, or has others.
    """
    return energy_of(unary, mask, potentials, *marginals_by_variable(potentials, posterior))


def free_energy(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    posterior: Posterior,
    lambda_z: float,
    lambda_h: float,
) -> Tensor:
    """E(Q) − λ_Z Σ H(Q_Z) − λ_H Σ H(Q_H) of each sentence, with heads independent of each other.

    With another structure of heads, the posteriors of a trace have the field `free_energy`.

    Args:
        unary: the words' scores S, (B, n, d).
        mask: (B, n) bool, true where there is a word.
        potentials: the factors with which the posterior was inferred.
        posterior: a result of `mean_field` with `attention=True`, which includes Q_H.
        lambda_z: the message weight of labels.
        lambda_h: the message weight of heads; the default of inference is 1/d.

    Returns:
        (B,).

    Raises:
        InputError: the posterior lacks marginals that the potentials have, or has others.
    """
    labels, heads = marginals_by_variable(potentials, posterior)
    total = energy_of(unary, mask, potentials, labels, heads)
    for weight, variables in ((lambda_z, labels), (lambda_h, heads)):
        for q in variables:
            total = total - weight * row_entropy(q)
    return total


def energy_of(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    labels: Sequence[Tensor],
    heads: Sequence[Tensor],
) -> Tensor:
    """E(Q), (B,), from distributions in the order of `Potentials.label_variables` and heads."""
    unary = unary.masked_fill(~mask.unsqueeze(-1), 0.0)
    # Marginals are in float32 even where the model is in half precision.
    x = potentials.prepare([q.to(unary.dtype) for q in labels])
    total = -(labels[0] * unary).flatten(1).sum(1)
    return total - potentials.expected_score(heads, x)


def marginals_by_variable(
    potentials: Potentials, posterior: Posterior
) -> tuple[list[Tensor], list[Tensor]]:
    """A posterior's distributions in the order of `Potentials`: those of labels, those of heads."""
    require_kind("potentials", potentials, Potentials)
    require_kind("posterior", posterior, Posterior)
    names = [variable.marginals for variable in potentials.label_variables]
    columns = [factor.column_field or "" for factor in potentials.with_columns]
    others = [variable.marginals for variable in potentials.head_variables]
    of_arcs = ["arc_label_marginals"] if potentials.labelling is not None else []
    wanted = {*names, *columns, *others, *of_arcs}
    found = {name for name in wanted if posterior.tensor(name) is not None}
    found |= {name for name in _MARGINALS if getattr(posterior, name) is not None}
    if found != wanted:
        listed = ", ".join(sorted(found ^ wanted))
        raise InputError(f"posterior must be of these potentials, but they differ in {listed}")

    def of(name: str) -> Tensor:
        q = posterior.tensor(name)
        assert q is not None
        return q

    joint = [of(name) for name in columns]
    joint = [q.unsqueeze(-1) if q.dim() == 3 else q for q in joint]  # ROOT has one column
    heads = [potentials.without_labelled(torch.cat(joint, dim=-1))]
    if potentials.labelling is not None:
        heads.append(of("arc_label_marginals").permute(0, 3, 1, 2))
    return [of(name) for name in names], [*heads, *(of(name) for name in others)]


_MARGINALS = [item.name for item in fields(Posterior) if item.name.endswith("_marginals")]
