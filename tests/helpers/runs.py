"""Small runs for tests."""

from dataclasses import replace
from pathlib import Path

import torch
from accelerate import Accelerator

from probformer.config import RunSettings, from_dict
from probformer.runs.run_folder import load_run, read_metrics, write_description, write_weights
from probformer.training.progress import LineReporter
from probformer.training.start import prepare

PT = {
    "kind": "pt",
    "labels": 16,
    "channels": 2,
    "potential": {"kind": "uv", "rank": 4, "gamma": 1},
    "inference": {"iterations": 2},
}
TREES = {**PT, "inference": {"iterations": 2, "heads": ["tree", "independent"]}}
LARGER = {**PT, "labels": 32, "potential": {"kind": "uv", "rank": 8, "gamma": 2}}
TRANSFORMER = {"kind": "transformer", "width": 16, "layers": 1, "heads": 2, "head_width": 8}
TRANSFORMER |= {"feed_forward": 32, "positions": "none", "relative": 4}


def settings(task="mlm", encoder=PT, size=64, seed=0, **training) -> RunSettings:
    training = {"epochs": 2, "batch": 16, "learning_rate": 1e-2, **training}
    kinds = {name: {"kind": name} for name in ("mlm", "ner", "classification", "cogs", "parsing")}
    kinds["tagging"] = {"kind": "tagging", "column": "xpos"}
    data = {"kind": "builtin", "size": size}
    if task == "cogs":
        data["corpus"] = "cogs"
    if task == "classification":
        pt = encoder["kind"] == "pt"
        encoder = {**encoder, "readout": "root" if pt else "cls"}
        encoder |= {"root": {"labels": 16}} if pt else {}
    values = {"task": kinds[task], "data": data, "encoder": encoder, "training": training}
    return from_dict(RunSettings, {**values, "seed": seed})


def ready(given: RunSettings, folder: Path, resume=False, init=None, **options):
    """A training run that is prepared, just before its first step."""
    accelerator = Accelerator(cpu=True)
    return prepare(given, folder, Path("."), LineReporter(), accelerator, init, resume, **options)


def saved(folder: Path, task="tagging", encoder=PT, vocabulary=None, **of_task) -> Path:
    """Save a run folder with initial weights, without training."""
    given = settings(task, encoder, size=100)
    given = replace(given, vocabulary=vocabulary or given.vocabulary)
    run = ready(replace(given, task=replace(given.task, **of_task)), folder).run
    write_description(folder, run, None)
    write_weights(folder, run.model)
    return folder


def saved_with_labels(folder: Path, task="parsing", encoder=TREES, **options) -> Path:
    """Save a run whose arcs have labels, with random weights, so that not all have the same."""
    run = load_run(saved(folder, task, encoder, **options))
    torch.manual_seed(0)
    for weights in run.model.parameters():
        if weights.dim() > 1:  # no bias, which would decide
            torch.nn.init.normal_(weights, std=0.7)
    write_weights(folder, run.model)
    return folder


def assert_same_runs(first: Path, second: Path):
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    for name in ("config.json", "tokenizer.json", "run.toml", "README.md"):
        assert (first / name).read_text() == (second / name).read_text()
    lines = [read_metrics(folder) for folder in (first, second)]
    for run in lines:
        for line in run:
            line.pop("seconds", None)
    assert lines[0] == lines[1]
