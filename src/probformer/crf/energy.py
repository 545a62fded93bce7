"""The energy of the appendix, and the free energy.

E(Q) = −Σ_i ⟨Q_i, S_i⟩ − Σ over head variables ⟨Q, their message⟩; the messages are −∂E/∂Q.
The free energy is E(Q) − Σ_v λ_v H(Q_v). Updating all heads, or the label of one word, lowers it
or leaves it (eq. 31); updating all labels at once may raise it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from probformer.crf.posterior import Posterior
from probformer.crf.potentials import Potentials
from probformer.errors import InputError, require_kind


def energy(unary: Tensor, mask: Tensor, potentials: Potentials, posterior: Posterior) -> Tensor:
    """E(Q) of each sentence, (B,)."""
    labels, heads = marginals_by_variable(potentials, posterior)
    unary = unary.masked_fill(~mask.unsqueeze(-1), 0.0)
    total = -(labels[0] * unary).flatten(1).sum(1)
    # Marginals are in float32 where a model is in half precision.
    x = potentials.project([q.to(unary.dtype) for q in labels])
    messages = potentials.head_messages(x)
    for p, message in zip(heads, messages, strict=True):
        total = total - (p * message).flatten(1).sum(1)
    return total


def free_energy(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    posterior: Posterior,
    lambda_z: float,
    lambda_h: float,
) -> Tensor:
    """E(Q) − λ_Z Σ H(Q_Z) − λ_H Σ H(Q_H) of each sentence, (B,)."""
    total = energy(unary, mask, potentials, posterior)
    labels, heads = marginals_by_variable(potentials, posterior)
    for weight, variables in ((lambda_z, labels), (lambda_h, heads)):
        for q in variables:
            total = total - weight * torch.special.entr(q).flatten(1).sum(1)
    return total


def marginals_by_variable(
    potentials: Potentials, posterior: Posterior
) -> tuple[list[Tensor], list[Tensor]]:
    """A posterior's distributions as `Potentials` orders them: of labels, and of heads."""
    require_kind("potentials", potentials, Potentials)
    require_kind("posterior", posterior, Posterior)
    root, features = posterior.root_head_marginals, posterior.global_marginals
    labels = [posterior.z_marginals, posterior.root_marginals]
    columns = [posterior.head_marginals, None if root is None else root.unsqueeze(-1)]
    split = [features] if potentials.has_split_globals else []
    columns += [] if split else [features]
    missing = posterior.z_marginals is None or posterior.head_marginals is None
    if missing or (root is None) != (potentials.root is None):
        raise InputError("posterior must be of these potentials; its variables are others")
    joint = torch.cat([part for part in columns if part is not None], dim=-1)
    return _present(labels), [joint, *_present(split)]


def _present(tensors: list[Tensor | None]) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor is not None]
