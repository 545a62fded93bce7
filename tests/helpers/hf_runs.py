"""Runs for the tests of `probformer.hf`: one of every task and encoder, trained by the command."""

import torch
from typer.testing import CliRunner

from probformer.cli import app

LINES = ["the dogs like her .", "Alice watched <mask> in the park .", "zzz", "she sleeps"]
SMALL = {
    "pt": ("labels=16", "channels=2", "potential.rank=4", "inference.iterations=2"),
    "transformer": ("width=16", "heads=2", "head_width=8", "feed_forward=32"),
}


def train(folder, task, kind):
    """Train for one epoch of 40 sentences; returns the run folder."""
    changes = [f"encoder.{change}" for change in SMALL[kind]]
    changes += ["data.size=40", "training.epochs=1", "encoder.dropout=0.1"]
    options = [word for change in changes for word in ("--set", change)]
    config = f"{task}-builtin-{kind}"
    result = CliRunner().invoke(app, ["train", config, "--out", str(folder), *options])
    assert result.exit_code == 0, result.output
    return folder


def name_of_checkpointing(transformers):
    """Renamed in transformers 5.23."""
    renamed = hasattr(transformers.PreTrainedModel, "activation_checkpointing_enable")
    return "activation_checkpointing" if renamed else "gradient_checkpointing"


def encoded(tokenizer, lines=LINES, **options):
    return tokenizer(list(lines), padding=True, return_tensors="pt", **options)


def own_logits(run, tokens):
    """The logits of a loaded run, without transformers."""
    with torch.no_grad():
        output = run.model(tokens["input_ids"], tokens["attention_mask"].bool())
        return output.readout(output.representation)
