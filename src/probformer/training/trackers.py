"""Metrics for TensorBoard, with `training.tensorboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from probformer.errors import require_packages


def check_tensorboard() -> None:
    require_packages("training.tensorboard", "tensorboard", "probformer[track]")


def write_tensorboard(folder: Path, lines: list[dict[str, Any]]) -> None:
    """Write all epochs of `metrics.jsonl` as TensorBoard events, in place of earlier ones."""
    from torch.utils.tensorboard import SummaryWriter

    for old in folder.glob("events.out.tfevents.*"):
        old.unlink()
    with SummaryWriter(str(folder)) as writer:
        for line in lines:
            if "epoch" not in line:
                continue
            writer.add_scalar("train/loss", line["train_loss"], line["epoch"])
            writer.add_scalar("learning_rate", line["learning_rate"], line["epoch"])
            for name, value in line["dev"].items():
                writer.add_scalar(f"dev/{name}", value, line["epoch"])
