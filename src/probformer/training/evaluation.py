"""How good a model is on a split, and in what precision it is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from torch import Tensor

from probformer.config import Precision
from probformer.data.batches import evaluation_batches
from probformer.data.encoded import EncodedSplit
from probformer.models.readout import Model
from probformer.tasks import Task
from probformer.tasks.objective import evaluation_plan
from probformer.training.processes import from_all_processes

TOKENS, TOKENS_ON_GPU = 4096, 16384
"""Of a batch, padding included."""


@contextmanager
def products_in(precision: Precision, device: torch.device) -> Iterator[None]:
    """Matrix products in some precision; tf32 stays until the next call."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
        yield


@torch.no_grad()
def evaluate(
    model: Model,
    task: Task,
    split: EncodedSplit,
    accelerator: Accelerator,
    precision: Precision = "fp32",
) -> dict[str, float]:
    """Metrics over a whole split; processes share the batches."""
    model.eval()
    on_gpu = accelerator.device.type == "cuda"
    plan = evaluation_plan(task, model.encoder)
    batches = evaluation_batches(split.lengths, TOKENS_ON_GPU if on_gpu else TOKENS)
    own: defaultdict[str, list[float | Tensor]] = defaultdict(list)
    for indices in batches[accelerator.process_index :: accelerator.num_processes]:
        batch = task.evaluation_batch(split, indices, plan).to(accelerator.device)
        with products_in(precision, accelerator.device):
            output = model(batch.words, batch.mask, attention=task.needs_heads)
            counts = task.count(output, batch)
        for name, value in counts.items():
            own[name].append(value)
    total: defaultdict[str, float] = defaultdict(float)
    # Counts stay on the device until all batches are done.
    sums = {name: sum(map(float, values)) for name, values in own.items()}
    for counts in from_all_processes(sums):
        for name, value in counts.items():
            total[name] += value
    return task.metrics(total)
