"""What training minimises: the loss of a task, plus those of auxiliary objectives."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from probformer.models.encoder import Encoder
from probformer.models.readout import Output
from probformer.models.transformer import Transformer
from probformer.sentinels import ROOT
from probformer.tasks.batch import Batch, Plan


class Objective(Protocol):
    """A term of the training loss. Every task is one."""

    @property
    def name(self) -> str:
        """What error messages call the objective, such as the setting that adds it."""
        ...

    @property
    def needs_heads(self) -> bool:
        """Whether it takes head marginals and gold heads.

        The model is then called with `attention`, batches have gold heads, and sentences are padded
        and never packed.
        """
        ...

    def loss(self, output: Output, batch: Batch) -> Tensor:
        """The loss to minimise.

        Args:
            output: The model's output for the batch, with head marginals if `needs_heads`.
            batch: Inputs, targets and their weights.

        Returns:
            The mean losses of the batch's chunks, added up: a scalar.
        """
        ...


class WeightPenalty:
    """The paper's L2 term, ‖T‖_F (not squared) times a weight, added once for each chunk."""

    name = "training.penalty"
    needs_heads = False

    def __init__(self, weight: float, encoder: Encoder | Transformer) -> None:
        self.weight = weight
        self.encoder = encoder

    def loss(self, output: Output, batch: Batch) -> Tensor:
        return batch.chunks * self.weight * self.encoder.penalty()


def lowest_head(encoder: Encoder | Transformer) -> int:
    """`Plan.lowest_head` for an encoder: in one with a root, ROOT can be a head."""
    return ROOT if encoder.settings.has_root else 0


def evaluation_plan(objective: Objective, encoder: Encoder | Transformer) -> Plan:
    """Padded batches, with gold heads if the objective needs them."""
    return Plan(lowest_head=lowest_head(encoder) if objective.needs_heads else None)
