"""The energy of the appendix, and the free energy.

E(Q) = −Σ_i ⟨Q_i, S_i⟩ − Σ over factors their expected score; the messages are −∂E/∂Q. The free
energy is E(Q) − Σ_v λ_v H(Q_v). Updating all heads, or the label of one word, lowers it or leaves
it (eq. 31); updating all labels at once may raise it.
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
        mask: (B, n), true where there is a word.
        potentials: those that the posterior is of.
        posterior: with the marginals of heads.

    Returns:
        (B,).
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
    """E(Q) − λ_Z Σ H(Q_Z) − λ_H Σ H(Q_H) of each sentence, whose heads are independent.

    Args:
        unary: the words' scores S, (B, n, d).
        mask: (B, n), true where there is a word.
        potentials: those that the posterior is of.
        posterior: with the marginals of heads.
        lambda_z: the message weight of labels.
        lambda_h: the message weight of heads.

    Returns:
        (B,).
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
    """E(Q) from distributions in the order of `Potentials`, (B,)."""
    unary = unary.masked_fill(~mask.unsqueeze(-1), 0.0)
    # Marginals are in float32 where a model is in half precision.
    x = potentials.prepare([q.to(unary.dtype) for q in labels])
    total = -(labels[0] * unary).flatten(1).sum(1)
    return total - potentials.expected_score(heads, x)


def marginals_by_variable(
    potentials: Potentials, posterior: Posterior
) -> tuple[list[Tensor], list[Tensor]]:
    """A posterior's distributions as `Potentials` orders them: of labels, and of heads."""
    require_kind("potentials", potentials, Potentials)
    require_kind("posterior", posterior, Posterior)
    names = [variable.marginals for variable in potentials.label_variables]
    columns = [factor.column_field or "" for factor in potentials.with_columns]
    others = [variable.marginals for variable in potentials.head_variables]
    wanted = {*names, *columns, *others}
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
    return [of(name) for name in names], [torch.cat(joint, dim=-1), *(of(name) for name in others)]


_MARGINALS = [item.name for item in fields(Posterior) if item.name.endswith("_marginals")]
