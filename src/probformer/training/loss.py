"""The loss of a batch in training: the task's, plus those of auxiliary objectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probformer.config import Precision
from probformer.models.readout import Model
from probformer.tasks import Batch, Objective, Task
from probformer.training.precision import matrix_products


@dataclass(frozen=True)
class TrainingLoss:
    """Calls the model on a batch and adds up the objectives."""

    model: Model
    task: Task
    auxiliary: Sequence[Objective]
    precision: Precision
    """Precision of the model and of the task's loss; auxiliary objectives are in float32."""
    device: torch.device

    @property
    def needs_heads(self) -> bool:
        """Whether any objective takes head marginals and gold heads."""
        return any(objective.needs_heads for objective in (self.task, *self.auxiliary))

    def __call__(self, batch: Batch) -> Tensor:
        with matrix_products(self.precision, self.device):
            output = self.model(batch.words, batch.mask, self.needs_heads, batch.packing)
            loss = self.task.loss(output, batch)
        for objective in self.auxiliary:
            loss = loss + objective.loss(output, batch)
        return loss
