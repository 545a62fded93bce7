"""How good a model is on a split."""

from __future__ import annotations

from collections import defaultdict

import torch
from accelerate import Accelerator
from torch import Tensor

from probformer.data.batches import evaluation_batches
from probformer.data.encoded import EncodedSplit
from probformer.heads import Model
from probformer.tasks import Task
from probformer.training.processes import from_all_processes

TOKENS, TOKENS_ON_GPU = 4096, 16384
"""Of a batch, padding included."""


@torch.no_grad()
def evaluate(
    model: Model,
    task: Task,
    split: EncodedSplit,
    accelerator: Accelerator,
    exact: bool = True,
) -> dict[str, float]:
    """Metrics over a whole split, in float32; processes share the batches.

    What is not to be `exact` may use a GPU's tensor cores, which are several times as fast.
    """
    model.eval()
    torch.backends.cuda.matmul.allow_tf32 = not exact
    on_gpu = accelerator.device.type == "cuda"
    batches = evaluation_batches(split.lengths, TOKENS_ON_GPU if on_gpu else TOKENS)
    own: defaultdict[str, list[float | Tensor]] = defaultdict(list)
    for indices in batches[accelerator.process_index :: accelerator.num_processes]:
        batch = task.evaluation_batch(split, indices).to(accelerator.device)
        read, _ = model(batch.words, batch.mask)
        for name, value in task.count(model, read, batch).items():
            own[name].append(value)
    total: defaultdict[str, float] = defaultdict(float)
    # Counts stay on the device until all batches are done.
    sums = {name: sum(map(float, values)) for name, values in own.items()}
    for counts in from_all_processes(sums):
        for name, value in counts.items():
            total[name] += value
    return task.metrics(total)
