"""Metrics of a model on a split."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import torch
from accelerate import Accelerator
from torch import Tensor

from probformer.config import Precision
from probformer.data.batches import evaluation_batches
from probformer.data.encoded import EncodedSplit
from probformer.models.readout import Model, Output, evaluation_mode
from probformer.tasks import Task
from probformer.tasks.batch import Batch
from probformer.tasks.objective import evaluation_plan
from probformer.tasks.task import Counts, CountsSoFar
from probformer.training.precision import matrix_products
from probformer.training.processes import from_all_processes

MAX_TOKENS, MAX_TOKENS_ON_GPU = 4096, 16384
"""The largest number of tokens in a batch, padding included."""


def evaluate(
    model: Model,
    task: Task,
    split: EncodedSplit,
    accelerator: Accelerator,
    precision: Precision = "fp32",
) -> dict[str, float]:
    """Evaluate a model on a whole split; several processes share its batches.

    Args:
        model: The model.
        task: The task, which computes the metrics.
        split: The encoded sentences.
        accelerator: The device, and the other processes.
        precision: The precision of matrix products.

    Returns:
        The task's metrics.
    """
    return task.metrics(total_counts(model, task, task.count, split, accelerator, precision))


@torch.no_grad()
def total_counts(
    model: Model,
    task: Task,
    count: Callable[[Output, Batch], CountsSoFar],
    split: EncodedSplit,
    accelerator: Accelerator,
    precision: Precision = "fp32",
) -> Counts:
    """The sums over a whole split of what `task.count` or `task.count_details` returns.

    Other arguments are those of `evaluate`.
    """
    on_gpu = accelerator.device.type == "cuda"
    plan = evaluation_plan(task, model.encoder)
    batches = evaluation_batches(split.lengths, MAX_TOKENS_ON_GPU if on_gpu else MAX_TOKENS)
    own: defaultdict[str, list[float | Tensor]] = defaultdict(list)
    with evaluation_mode(model), matrix_products(precision, accelerator.device):
        for indices in batches[accelerator.process_index :: accelerator.num_processes]:
            batch = task.evaluation_batch(split, indices, plan).to(accelerator.device)
            output = model(batch.words, batch.mask, attention=task.needs_heads)
            for name, value in count(output, batch).items():
                own[name].append(value)
    total: defaultdict[str, float] = defaultdict(float)
    # Counts stay on the device until all batches are done.
    sums = {name: sum(map(float, values)) for name, values in own.items()}
    for counts in from_all_processes(sums):
        for name, value in counts.items():
            total[name] += value
    return total
