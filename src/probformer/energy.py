"""The energy of the appendix and the free energy that inference lowers.

E(Q) = −Σ_i ⟨Q_i, S_i⟩ − Σ over head variables ⟨Q, F⟩; the messages are its negative gradients.
F(Q) = E(Q) − Σ_v λ_v H(Q_v): a block update minimises it over its block (eq. 31).
`labels` and `heads` are the distributions of the variables as `Potentials` orders them; padding
is zero in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from probformer.potentials import Potentials


def energy(
    unary: Tensor, potentials: Potentials, labels: Sequence[Tensor], heads: Sequence[Tensor]
) -> Tensor:
    """E(Q) of each sentence, (B,)."""
    total = -(labels[0] * unary).flatten(1).sum(1)
    messages = potentials.head_messages(potentials.project(labels))
    for p, message in zip(heads, messages, strict=True):
        total = total - (p * message).flatten(1).sum(1)
    return total


def free_energy(
    unary: Tensor,
    potentials: Potentials,
    labels: Sequence[Tensor],
    heads: Sequence[Tensor],
    lambda_z: float,
    lambda_h: float,
) -> Tensor:
    """E(Q) − λ_Z Σ H(Q_Z) − λ_H Σ H(Q_H) of each sentence, (B,)."""
    total = energy(unary, potentials, labels, heads)
    for weight, variables in ((lambda_z, labels), (lambda_h, heads)):
        for q in variables:
            total = total - weight * torch.special.entr(q).flatten(1).sum(1)
    return total
