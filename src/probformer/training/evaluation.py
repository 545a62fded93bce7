"""How good a model is on a split."""

from __future__ import annotations

import torch
from accelerate import Accelerator

from probformer.data.batches import evaluation_batches
from probformer.data.encoded import EncodedSplit
from probformer.heads import Model
from probformer.tasks import Task
from probformer.training.processes import sum_over_processes


@torch.no_grad()
def evaluate(
    model: Model, task: Task, split: EncodedSplit, accelerator: Accelerator
) -> dict[str, float]:
    """Metrics over a whole split, in float32; processes share the batches."""
    model.eval()
    batches = evaluation_batches(split.lengths)
    total = dict.fromkeys(task.counted, 0.0)  # a process may have no batch at all
    for indices in batches[accelerator.process_index :: accelerator.num_processes]:
        batch = task.evaluation_batch(split, indices).to(accelerator.device)
        read, _ = model(batch.words, batch.mask)
        for name, value in task.count(model, read, batch).items():
            total[name] += value
    sums = torch.tensor([*total.values()], dtype=torch.float64)
    sums = sum_over_processes(accelerator, sums)
    return task.metrics(dict(zip(total, sums.tolist(), strict=True)))
