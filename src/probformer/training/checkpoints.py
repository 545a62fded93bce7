"""What a run needs to go on after it was stopped at any moment."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from probformer.runs.files import (
    is_sealed,
    read_json,
    read_tensors,
    seal,
    share,
    write_json,
    write_tensors,
)

_BEST = "best.safetensors"


@dataclass
class Progress:
    """How far training is. Randomness needs no state: it is a function of seed and place."""

    epoch: int = 0
    """The epoch to be done next, or going on."""
    batch: int = 0
    """The batch of it to be done next."""
    step: int = 0
    """Updates done in all."""
    loss: float = 0.0
    """Sum of this epoch's chunk losses so far."""
    chunks: int = 0
    seconds: float = 0.0
    """Time spent on training in this epoch."""
    best: dict[str, float] | None = None
    """Dev metrics of the best epoch so far, and its number."""
    schedule: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    path: Path
    progress: Progress
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]


def save_checkpoint(
    folder: Path,
    progress: Progress,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: Path,
) -> None:
    """Writes a folder `step-…` with all of it; then only that one and the one before it stay."""
    part = folder / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    write_tensors(part / "model.safetensors", dict(model.state_dict()))
    write_tensors(part / "optimizer.safetensors", _optimizer_tensors(model, optimizer))
    write_json(part / "progress.json", asdict(progress))
    if best.is_file():
        share(best, part / _BEST)
    # The same step ends one epoch and begins the next: two states, two names.
    target = folder / f"step-{progress.step:09d}-epoch-{progress.epoch:06d}"
    seal(part, target)
    before = [path for path in sorted(folder.glob("step-*")) if path < target]
    for old in folder.glob("step-*"):
        if old != target and old not in before[-1:]:
            shutil.rmtree(old)


def newest_checkpoint(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest whole checkpoint; a damaged one is reported and the one before it taken."""
    for path in sorted(folder.glob("step-*"), reverse=True):
        if not is_sealed(path):
            warn(f"{path}: the checkpoint is damaged; going back to the one before")
            continue
        return Checkpoint(
            path,
            Progress(**read_json(path / "progress.json")),
            read_tensors(path / "model.safetensors"),
            read_tensors(path / "optimizer.safetensors"),
        )
    return None


def restore(checkpoint: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model.load_state_dict(checkpoint.model)
    for name, parameter in model.named_parameters():
        prefix = f"{name}/"
        for key, value in checkpoint.optimizer.items():
            if key.startswith(prefix):
                optimizer.state[parameter][key.removeprefix(prefix)] = value.to(parameter.device)


def restore_best(checkpoint: Path, best: Path) -> None:
    """The best weights as they were at the checkpoint: those of a later epoch are forgotten."""
    if (checkpoint / _BEST).is_file():
        share(checkpoint / _BEST, best)
    else:
        best.unlink(missing_ok=True)


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state[parameter].items()
    }
