"""A run folder, as training writes it.

config.json        model type, format version, encoder, task and its classes
model.safetensors  the weights of the best epoch
tokenizer.json     the vocabulary
run.toml           all settings
metrics.jsonl      a line for each epoch, and the final metrics
environment.json   versions, machine, commit, digests of the data
README.md          a model card
state/             checkpoints, to resume from

The first three are enough to load a model: `probformer.hf` writes only these.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import torch

import probformer
from probformer.config import (
    EncoderSettings,
    RunSettings,
    TaskSettings,
    TransformerSettings,
    from_dict,
    from_toml,
    to_dict,
    to_toml,
)
from probformer.data.vocabulary import Vocabulary
from probformer.errors import InputError, require
from probformer.models.build import build_encoder
from probformer.models.readout import Model
from probformer.runs.files import read_json, read_tensors, write_json, write_tensors, write_text
from probformer.runs.model_card import model_card
from probformer.tasks import MakeTask, Task, build_task

FORMAT_VERSION = 1
WEIGHTS = "model.safetensors"
TASK_CLASS = "task_class"
"""The key of config.json that names the class of a task that the library does not have."""


@dataclass(frozen=True)
class Run:
    """A model with its settings, vocabulary and task: what `load_run` returns."""

    settings: RunSettings
    """The settings in run.toml."""
    vocabulary: Vocabulary
    """Maps words to ids."""
    task: Task
    """The task that the model was trained for, with its classes."""
    model: Model
    """The encoder, `model.encoder`, and the task's layer on top of it, `model.readout`."""

    @property
    def channel(self) -> int | None:
        """The channel whose arcs have labels, or whose heads are a parser's; None without one."""
        labelled = self.model.encoder.labelled_channel
        return self.task.channel if labelled is None else labelled


def holds_run(folder: Path) -> bool:
    """Whether the folder has weights of a finished epoch, which must not be overwritten."""
    return (folder / WEIGHTS).is_file()


def has_begun(folder: Path) -> bool:
    """Whether the folder has the description of a run, of which run.toml is written last."""
    return (folder / "run.toml").is_file()


def clear_run(folder: Path) -> None:
    """Remove the files of a run that has no weights."""
    for checkpoint in (folder / "state").glob("step-*"):
        shutil.rmtree(checkpoint)
    for name in ("run.toml", "metrics.jsonl"):
        (folder / name).unlink(missing_ok=True)


def write_description(
    folder: Path, run: Run, init: Path | None, data: Mapping[str, str] | None = None
) -> None:
    """Write all files but weights and metrics.

    Args:
        folder: The run folder.
        run: The run to describe.
        init: The run whose encoder training starts from.
        data: By split, the digest of its sentences.

    Raises:
        InputError: A setting is a function or an object of Python.
    """
    settings, task = run.settings, type(run.task)
    to_toml(settings)  # refuses what files cannot hold, before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "probformer",
        "format_version": FORMAT_VERSION,
        "vocabulary": len(run.vocabulary),
        "encoder": to_dict(run.model.encoder.settings),
        "task": {**to_dict(settings.task), **run.task.state()},
    }
    if task is not type(build_task(settings.task, run.vocabulary)):
        config[TASK_CLASS] = f"{task.__module__}.{task.__qualname__}"
    write_json(folder / "config.json", config)
    write_text(folder / "tokenizer.json", run.vocabulary.to_json() + "\n")
    environment = {**_environment(), "init": init and str(init), "data": dict(data or {})}
    write_json(folder / "environment.json", environment)
    write_model_card(folder, run, {})
    write_settings(folder, settings)


def write_settings(folder: Path, settings: RunSettings) -> None:
    write_text(folder / "run.toml", to_toml(settings))


def write_weights(folder: Path, model: Model) -> None:
    write_tensors(folder / WEIGHTS, dict(model.state_dict()))


def write_model_card(folder: Path, run: Run, results: dict[str, dict[str, float]]) -> None:
    init = read_environment(folder).get("init")
    write_text(folder / "README.md", model_card(run, init, results))


def read_environment(folder: Path) -> dict[str, Any]:
    """The content of environment.json; empty if the folder has none."""
    path = folder / "environment.json"
    return read_json(path) if path.is_file() else {}


def load_run(folder: str | Path, make_task: MakeTask = build_task) -> Run:
    """Load a trained model.

    Args:
        folder: A run folder, or one that `save_pretrained` of `probformer.hf` wrote.
        make_task: What was passed to `probformer.training.start.prepare`, if the run was trained
            for a task of your own.

    Returns:
        The run with the weights of its best epoch, in evaluation mode.

    Raises:
        InputError: A file is missing, damaged or of another format version; or the task is one of
            your own, and `make_task` is not given.
    """
    folder = Path(folder)
    run = load_description(folder, make_task)
    weights = folder / WEIGHTS
    require(weights.is_file(), f"{folder}: has no weights yet: {WEIGHTS} is missing")
    try:
        run.model.load_state_dict(read_tensors(weights))
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"{weights}: does not fit config.json: {reason}") from None
    run.model.eval()
    return run


def load_description(folder: Path, make_task: MakeTask = build_task) -> Run:
    """Build a run from the files of its folder, without loading the trained weights."""
    path = folder / "config.json"
    require(path.is_file(), f"{folder}: is no run folder: config.json is missing")
    config = read_json(path)
    version = config.get("format_version") if isinstance(config, dict) else None
    if version != FORMAT_VERSION:
        known = f"this version reads {FORMAT_VERSION}"
        raise InputError(f"{folder}: has the format version {version!r}, {known}")
    require(config.get("task", {}) is not None, f"{folder}: has an encoder only, without a task")
    if make_task is build_task and TASK_CLASS in config:
        needed = "pass the function that makes it to load_run, or to prepare, as make_task"
        raise InputError(f"{folder}: its task, {config[TASK_CLASS]}, is one of your own: {needed}")
    vocabulary = Vocabulary.load(folder / "tokenizer.json")
    try:
        settings = _settings(folder, config)
        task = make_task(settings.task, vocabulary)
        task.load_state(config["task"])
        encoder = build_encoder(encoder_settings(config["encoder"]), config["vocabulary"])
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: is damaged: {error!r}") from None
    words = encoder.embedding.num_embeddings
    message = f"tokenizer.json has {len(vocabulary)} entries, config.json {words}"
    require(len(vocabulary) == words, f"{folder}: the vocabulary does not fit the model: {message}")
    return Run(settings, vocabulary, task, Model(encoder, task.build_readout(encoder)))


def encoder_settings(values: Mapping[str, Any]) -> EncoderSettings | TransformerSettings:
    """The encoder's settings from config.json."""
    classes = {"transformer": TransformerSettings, "pt": EncoderSettings}
    return from_dict(classes[values["kind"]], values)


def saved_encoder_settings(folder: Path) -> EncoderSettings | TransformerSettings:
    """The encoder's settings of a run, with what the classes of its task have decided."""
    path = folder / "config.json"
    config = read_json(path)
    try:
        return encoder_settings(config["encoder"])
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: is damaged: {error!r}") from None


def _settings(folder: Path, config: Mapping[str, Any]) -> RunSettings:
    """The settings of run.toml; without it those of config.json, which do not include the data."""
    path = folder / "run.toml"
    if path.is_file():
        return from_toml(RunSettings, path)
    classes = {cls.kind: cls for cls in get_args(TaskSettings)}
    names = {field.name for field in fields(classes[config["task"]["kind"]])}
    task = {name: value for name, value in config["task"].items() if name in names}
    data = {"kind": "files", "train": "train", "dev": "dev", "test": "test"}
    return from_dict(RunSettings, {"task": task, "data": data, "encoder": config["encoder"]})


def append_metrics(folder: Path, line: dict[str, Any]) -> None:
    """Add a line to metrics.jsonl."""
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def drop_metrics_after(folder: Path, epochs: int) -> None:
    """Keep only the lines of the first `epochs` epochs; training writes the later ones again."""
    path = folder / "metrics.jsonl"
    if path.is_file():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        write_text(path, "".join(line for line in lines if _epoch_of(line) <= epochs))


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """All lines of metrics.jsonl."""
    path = folder / "metrics.jsonl"
    require(path.is_file(), f"{folder}: has no metrics yet: metrics.jsonl is missing")
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise InputError(f"{path}: cannot be read as lines of JSON: {error}") from None


def read_final(folder: Path) -> dict[str, dict[str, float]] | None:
    """By split, the metrics of a finished run; None if it is not finished."""
    lines = read_metrics(folder) if (folder / "metrics.jsonl").is_file() else []
    last = lines[-1] if lines else None
    return last.get("final") if isinstance(last, dict) else None


def _epoch_of(line: str) -> float:
    try:
        return json.loads(line).get("epoch", float("inf"))
    except ValueError:
        return float("inf")  # an incomplete line


def _environment() -> dict[str, Any]:
    return {
        "probformer": probformer.__version__,
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def _commit() -> str | None:
    """The commit of a git checkout, with "-dirty" after changes; elsewhere PROBFORMER_COMMIT."""
    root = Path(probformer.__file__).parents[
        2
    ]  # of the checkout, if this file is in its src/probformer
    if not (root / ".git").exists():
        return os.environ.get("PROBFORMER_COMMIT")
    command = [
        "git",
        "-C",
        str(root),
        "describe",
        "--always",
        "--abbrev=40",
        "--exclude=*",
        "--dirty",
    ]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):  # git is not installed, or refuses this user
        return None
    return found.stdout.strip()
