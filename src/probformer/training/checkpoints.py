"""Checkpoints: the state from which a run continues after it has been stopped or killed."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from probformer.runs.files import seal, share, write_json, write_tensors

BEST = "best.safetensors"
"""In a checkpoint: the weights of the best epoch so far."""
_QUICK = 0.2
"""If saving takes at most this many seconds, there is a checkpoint after every epoch."""
_TIMES_APART = 10
"""Otherwise, the time between two checkpoints is at least this many times that of saving one."""


@dataclass
class Progress:
    """How far training is. Randomness has no state: it is a function of seed and position."""

    epoch: int = 0
    """The current epoch, counted from 0."""
    batch: int = 0
    """The next batch of the epoch, counted from 0."""
    step: int = 0
    """Number of updates so far, over all epochs."""
    loss: float = 0.0
    """Sum of the losses of this epoch's chunks so far."""
    chunks: int = 0
    """Number of these chunks."""
    seconds: float = 0.0
    """Time spent on training in this epoch."""
    best: dict[str, float] | None = None
    """Dev metrics of the best epoch so far, and its number from 1."""
    schedule: dict[str, Any] = field(default_factory=dict)
    """The state of the learning rate schedule."""


class Checkpointer:
    """Saves the checkpoints of a run, and says when the next one is due.

    Args:
        run_folder: The run folder.
        weights: The file with the weights of the best epoch, which checkpoints include.
        minutes: The time between checkpoints within an epoch.
    """

    def __init__(self, run_folder: Path, weights: Path, minutes: float) -> None:
        self.folder, self.weights, self.minutes = run_folder / "state", weights, minutes
        self._last, self._took = time.monotonic(), 0.0

    def is_due(self) -> bool:
        """Whether to save within an epoch: after `minutes`."""
        return time.monotonic() - self._last > 60 * self.minutes

    def is_due_after_epoch(self) -> bool:
        """Whether to save after an epoch: not if it takes over 0.2 s and a tenth of the time."""
        waited = time.monotonic() - self._last
        return self._took <= _QUICK or waited >= _TIMES_APART * self._took

    def save(self, progress: Progress, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        begin = time.monotonic()
        save_checkpoint(self.folder, progress, model, optimizer, self.weights)
        self.skip(time.monotonic() - begin)

    def skip(self, took: float = 0.0) -> None:
        """Count a checkpoint as saved, for processes that leave saving to the main one."""
        self._last, self._took = time.monotonic(), took


def save_checkpoint(
    folder: Path,
    progress: Progress,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: Path,
) -> None:
    """Write a checkpoint folder `step-…`, then remove all but this one and the one before it."""
    part = folder / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    write_tensors(part / "model.safetensors", dict(model.state_dict()))
    write_tensors(part / "optimizer.safetensors", _optimizer_tensors(model, optimizer))
    write_json(part / "progress.json", asdict(progress))
    if best.is_file():
        share(best, part / BEST)
    # A step at the end of an epoch has two states, before and after it, so the name has the epoch.
    target = folder / f"step-{progress.step:09d}-epoch-{progress.epoch:06d}"
    seal(part, target)
    before = [path for path in sorted(folder.glob("step-*")) if path < target]
    for old in folder.glob("step-*"):
        if old != target and old not in before[-1:]:
            shutil.rmtree(old)


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state[parameter].items()
    }
