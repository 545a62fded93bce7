"""Mean-field inference: the loop that resembles a transformer.

Variables: labels Z (and ROOT's), heads H (and split global features). In each iteration the heads
are updated with the messages F from the labels, then the labels with S and the messages G from the
new heads (asynchronous, section 2.3.2); or both with messages from the distributions of the
iteration before (synchronous, section 2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from probformer.config import Inference
from probformer.crf.energy import energy_of
from probformer.crf.evidence import Evidence
from probformer.crf.fused import FusedIterations, can_fuse
from probformer.crf.input_checks import (
    check_head_structure,
    check_inputs,
    check_observed_trees,
    check_packing,
)
from probformer.crf.posterior import Posterior
from probformer.crf.potentials import Potentials, WordPotential, as_potentials
from probformer.crf.variables import (
    Belief,
    Variables,
    dropout_at,
    head_variables,
    label_variables,
)
from probformer.errors import require, require_kind
from probformer.packing import Packing


def mean_field(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials | WordPotential,
    inference: Inference | None = None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    evidence: Evidence | None = None,
    trace: bool = False,
    attention: bool = True,
    packing: Packing | None = None,
) -> Posterior:
    """The approximate posterior over labels and heads, given words.

    Args:
        unary: the words' scores S, (B, n, d).
        mask: (B, n), true where there is a word.
        potentials: the factors between words, and those with ROOT, global features and others.
        inference: iterations, schedule, message weights, structures; by default `Inference()`.
        dropout: the rate of dropout on the scores of labels and the probabilities of heads.
        generator: where dropout draws from; compiled code cannot, and takes PyTorch's own stream.
        evidence: observed variables.
        trace: whether to keep the posterior after each iteration, with its free energy.
        attention: whether to return the marginals of heads; without them it is faster.
        packing: where the sentences are if they lie end to end in one row, B = 1. Labels come back
            like that; heads come back sentence by sentence, (S, h, longest, longest).

    Returns:
        The posterior of the last iteration.

    Raises:
        InputError: an argument has the wrong kind, shape or values; the message names it.
    """
    inference = Inference() if inference is None else inference
    require_kind("inference", inference, Inference)
    potentials = as_potentials(potentials)
    if packing is not None:
        message = "packing cannot be combined with"
        require(potentials.is_by_word, f"{message} a label of ROOT or of the sentence")
        require(evidence is None and not trace, f"{message} evidence or a trace")
        check_packing(packing, mask)
    evidence = Evidence() if evidence is None else evidence
    check_inputs(unary, mask, potentials, dropout, generator, evidence)
    check_head_structure(potentials, inference)
    kernels = can_fuse(unary, potentials, inference, evidence, trace, attention)
    if packing is not None and (attention or not kernels):
        padded = packing.sentences(unary), packing.mask()
        posterior = mean_field(
            *padded, potentials, inference, dropout, generator, attention=attention
        )
        return _packed(posterior, packing, mask.shape[1])
    unary = torch.where(mask.unsqueeze(-1), unary, 0.0)
    drop = dropout_at(dropout, generator)
    z = label_variables(unary, mask, potentials, inference, evidence, drop)
    labels = [kind.start() for kind in z]

    fused = 0
    if kernels and (fused := inference.iterations - attention):  # the last one returns its heads
        run = FusedIterations(unary, mask, packing, potentials, inference, z, dropout, generator)
        labels = run.up_to(fused, labels)
        if not attention:
            return _posterior(labels, [], potentials, mask, unary.dtype)

    check_observed_trees(inference, mask, evidence)
    h = head_variables(unary, mask, potentials, inference, evidence, drop)
    heads = [kind.start() for kind in h]
    steps, moving = [], mask.new_ones(len(mask))
    for t in range(fused, inference.iterations):
        step_z, step_h = inference.steps(t)
        old_labels, old_heads = labels, heads

        x = potentials.prepare(_sent(labels))
        heads = _update(h, heads, potentials.head_messages(x), step_h)
        heads_for_labels = heads if inference.asynchronous else old_heads
        to_z, *to_others = potentials.label_messages(_sent(heads_for_labels), x)
        is_sent = t + 1 < inference.iterations
        labels = _update(z, labels, [unary + to_z, *to_others], step_z, is_sent)

        if inference.tolerance is not None:
            labels, heads = _where(moving, labels, old_labels), _where(moving, heads, old_heads)
            moved = _movement([*labels, *heads], [*old_labels, *old_heads])
            moving = moved > inference.tolerance
        if trace:
            step = _posterior(labels, heads, potentials, mask, unary.dtype)
            blocks = [(z, labels, step_z), (h, heads, step_h)]
            energy = _free_energy(unary, mask, potentials, blocks)
            steps.append(replace(step, free_energy=energy))
        may_end = inference.tolerance is not None and not torch.compiler.is_compiling()
        if may_end and not moving.any():  # compiled code runs every iteration
            break
    returned = heads if attention else []
    return _posterior(labels, returned, potentials, mask, unary.dtype, steps if trace else None)


def _update(
    kinds: Sequence[Variables],
    beliefs: Sequence[Belief],
    messages: Sequence[Tensor],
    step: float,
    is_sent: bool = True,
) -> list[Belief]:
    triples = zip(kinds, beliefs, messages, strict=True)
    return [kind.update(old, message, step, is_sent) for kind, old, message in triples]


def _sent(beliefs: Sequence[Belief]) -> list[Tensor]:
    return [belief.sent for belief in beliefs]


def _where(moving: Tensor, new: Sequence[Belief], old: Sequence[Belief]) -> list[Belief]:
    """The new beliefs of sentences that still move, the old ones of those that have converged."""

    def choose(x: Tensor, y: Tensor) -> Tensor:
        return torch.where(moving.view(-1, *[1] * (x.dim() - 1)), x, y)

    return [Belief(*map(choose, x, y)) for x, y in zip(new, old, strict=True)]


def _movement(new: Sequence[Belief], old: Sequence[Belief]) -> Tensor:
    """The largest change of any marginal in each sentence, (B,)."""
    changes = [(x.marginals - y.marginals).flatten(1) for x, y in zip(new, old, strict=True)]
    zero = changes[0].new_zeros(len(changes[0]), 1)  # a sentence without words does not move
    return torch.cat([zero, *changes], dim=1).abs().amax(1)


def _posterior(
    labels: Sequence[Belief],
    heads: Sequence[Belief],
    potentials: Potentials,
    mask: Tensor,
    dtype: torch.dtype,
    trace: list[Posterior] | None = None,
) -> Posterior:
    found: dict[str, Tensor] = {}
    for variable, belief in zip(potentials.label_variables, labels, strict=True):
        found[variable.marginals] = belief.marginals
        if variable.scores is not None:
            found[variable.scores] = belief.scores.to(dtype)
    # A factor may send messages to padding: they change these scores and nothing else.
    found["z_scores"] = torch.where(mask.unsqueeze(-1), found["z_scores"], 0.0)
    if heads:
        found |= _head_fields([belief.marginals for belief in heads], heads, potentials)
    return Posterior.of(found, trace=trace)


def _head_fields(
    marginals: Sequence[Tensor], heads: Sequence[Belief], potentials: Potentials
) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    h, labelled, others = potentials.all_channels(marginals)
    columns = h.split(potentials.columns(h.shape[2]), dim=-1)
    for factor, p in zip(potentials.with_columns, columns, strict=True):
        found |= factor.column_fields(p)
    for variable, p in zip(potentials.head_variables, others, strict=True):
        found[variable.marginals] = p
    scores = heads[0].scores
    if labelled is not None:
        of_labels = heads[1].scores
        found["arc_label_marginals"] = labelled.permute(0, 2, 3, 1)
        found["arc_label_scores"] = of_labels.permute(0, 2, 3, 1)
        scores = potentials.with_labelled(scores, of_labels.logsumexp(1, keepdim=True))
    return found | {"head_scores": scores}


def _packed(posterior: Posterior, packing: Packing, places: int) -> Posterior:
    """Labels in the order of the packed row; heads stay in a batch of sentences."""
    assert posterior.z_marginals is not None
    return replace(
        posterior,
        z_scores=packing.pack(posterior.z_scores, places),
        z_marginals=packing.pack(posterior.z_marginals, places),
    )


@torch.no_grad()
def _free_energy(
    unary: Tensor,
    mask: Tensor,
    potentials: Potentials,
    blocks: Sequence[tuple[Sequence[Variables], Sequence[Belief], float]],
) -> Tensor | None:
    """(B,), from labels and heads with their step sizes; None where an entropy is undefined."""
    q_z, q_h = ([belief.marginals for belief in beliefs] for _, beliefs, _ in blocks)
    total = energy_of(unary, mask, potentials, q_z, q_h)
    for kinds, beliefs, step in blocks:
        for kind, belief in zip(kinds, beliefs, strict=True):
            entropy = kind.entropy(belief, step)
            if entropy is None:
                return None
            total = total - kind.weight * entropy
    return total
