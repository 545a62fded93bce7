"""Resuming a run: whether there is one with the same settings and data, and its last checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from probformer.config import PlateauSchedule, RunSettings, from_toml
from probformer.config.reading import differences
from probformer.data.encoded import EncodedSplit
from probformer.errors import InputError, require
from probformer.runs.files import is_sealed, read_json, read_tensors, share
from probformer.runs.run_folder import (
    WEIGHTS,
    drop_metrics_after,
    has_begun,
    holds_run,
    load_description,
    read_environment,
)
from probformer.tasks import MakeTask, Task
from probformer.training.checkpoints import BEST, Progress
from probformer.training.progress import Reporter


@dataclass(frozen=True)
class Checkpoint:
    """The contents of an undamaged checkpoint."""

    path: Path
    progress: Progress
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]

    def load_into(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        model.load_state_dict(self.model)
        for name, parameter in model.named_parameters():
            prefix = f"{name}/"
            for key, value in self.optimizer.items():
                if key.startswith(prefix):
                    state = optimizer.state[parameter]
                    state[key.removeprefix(prefix)] = value.to(parameter.device)


def is_resumed(settings: RunSettings, folder: Path, resume: bool, reporter: Reporter) -> bool:
    """Whether to resume the run in the folder: with `resume`, if there is one.

    Raises:
        InputError: The run has other settings; or it is not to be resumed, and its trained model
            would be overwritten.
    """
    begun = has_begun(folder)
    if resume and begun:
        _check_same_settings(settings, folder)
    elif begun and holds_run(folder):
        choice = "--resume continues it, --out chooses another folder"
        raise InputError(f"{folder}: holds a run already; {choice}")
    elif holds_run(folder):
        choice = "run.toml is missing; --out chooses another folder"
        raise InputError(f"{folder}: holds a model already, but no run to resume: {choice}")
    elif resume:
        reporter.say(f"{folder} holds no run to resume: starting anew")
    return resume and begun


def check_same_classes(task: Task, folder: Path, make_task: MakeTask) -> None:
    before = load_description(folder, make_task)
    same = before.vocabulary.words == task.vocabulary.words and before.task.state() == task.state()
    message = "the data is not that of the run: its words or classes differ"
    require(same, f"{folder}: {message}")


def check_same_sentences(splits: dict[str, EncodedSplit], folder: Path) -> None:
    before = read_environment(folder).get("data", {})
    for name, split in splits.items():
        message = f"the data is not that of the run: the sentences of {name} differ"
        require(before.get(name) in (None, split.digest()), f"{folder}: {message}")


def checkpoint_to_resume(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest whole checkpoint of a run; None if it was stopped before the first one."""
    found = newest_checkpoint(folder / "state", warn)
    if found is None and holds_run(folder):
        reason = "holds a model, but no whole checkpoint to resume from"
        raise InputError(f"{folder}: {reason}; --out chooses another folder")
    return found


def newest_checkpoint(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest whole checkpoint; damaged ones are reported and skipped."""
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


def roll_back(folder: Path, checkpoint: Checkpoint | None) -> None:
    """Set best weights and metrics of a run folder back to the checkpoint, or to the beginning."""
    if checkpoint is not None:
        best = checkpoint.path / BEST
        if best.is_file():
            share(best, folder / WEIGHTS)
        else:
            (folder / WEIGHTS).unlink(missing_ok=True)
    drop_metrics_after(folder, 0 if checkpoint is None else checkpoint.progress.epoch)


def _check_same_settings(settings: RunSettings, folder: Path) -> None:
    """Only settings without effect on the result may differ.

    With a plateau schedule that includes the number of epochs, so that more can be added.
    """
    path = folder / "run.toml"
    free = {"name", "training.checkpoint_minutes", "training.tensorboard"}
    if isinstance(settings.training.schedule, PlateauSchedule):
        free.add("training.epochs")
    for key, (old, new) in differences(from_toml(RunSettings, path), settings).items():
        message = f"{path}: has {key} = {old!r}, but this command resumes it with {new!r}"
        require(key in free, message)
