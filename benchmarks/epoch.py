"""An epoch of masked language modelling at the paper's sizes, PT beside the Transformer.

    python benchmarks/epoch.py --text ptb.train.txt --profile

Training as `probformer train` does it, without the dev split: batches of 64 in chunks of 16. The
first epoch, in which kernels are compiled and CUDA graphs captured, is not timed. The Transformer
is measured on packed sentences with kernels of this library, and on padded ones with PyTorch's.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator

from performance_page import PROFILED, REFERENCE, epoch_lines, write_page
from probformer.config import (
    EncoderSettings,
    FileData,
    RotarySettings,
    RunSettings,
    TransformerSettings,
)
from probformer.config.lookup import read_settings
from probformer.data.batches import training_batches
from probformer.training.loop import Training
from probformer.training.progress import Reporter
from probformer.training.start import prepare
from step import machine, synchronise

PADDED = "Transformer, padded"
"""The Transformer on padded sentences, with PyTorch's own kernels."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, help="a sentence per line; default: random words")
    parser.add_argument("--sentences", type=int, default=42068, help="maximum number of sentences")
    parser.add_argument("--precision", default="bf16", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--profile", action="store_true", help="also time the stages of a step")
    parser.add_argument("--docs", type=Path, help="write the results to this folder of docs, too")
    arguments = parser.parse_args()
    if arguments.text is not None and not arguments.text.is_file():
        parser.error(f"{arguments.text}: there is no such file")

    accelerator = Accelerator(cpu=arguments.device == "cpu")
    with tempfile.TemporaryDirectory() as folder:
        text = arguments.text or made_up(Path(folder) / "text.txt", arguments.sentences)
        few = str(first_lines(text, 10, Path(folder) / "few.txt"))  # not timed
        train = str(text.resolve())
        data = FileData(train=train, dev=few, test=few, first=arguments.sentences)
        runs = {}
        for name, encoder in encoders().items():
            settings = settings_for(encoder, data, arguments.precision)
            run = prepare(settings, Path(folder) / name, Path("."), Reporter(), accelerator)
            if name == PADDED:
                run = replace(run, plan=replace(run.batches.plan, packed=False))
            runs[name] = (run, *seconds_of_two_epochs(run))
    found = {
        "machine": machine(accelerator.device),
        "precision": arguments.precision,
        "sentences": len(runs[REFERENCE][0].splits["train"]),
        "rows": [
            {
                "model": name,
                "first epoch": round(first, 3),
                "epoch": round(later, 3),
                "stages": stages(run) if arguments.profile else None,
            }
            for name, (run, first, later) in runs.items()
        ],
    }
    print("\n".join(epoch_lines(found)))
    if arguments.docs is not None:
        path = arguments.docs / "performance" / "epoch.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        write_page(arguments.docs)


def encoders() -> dict[str, EncoderSettings | TransformerSettings]:
    uv = read_settings("mlm-ptb-pt", []).encoder
    assert isinstance(uv, EncoderSettings)
    rotary = replace(uv, potential=RotarySettings(rank=64))
    transformer = read_settings("mlm-ptb-transformer", []).encoder
    return {"UV": uv, "Rotary": rotary, REFERENCE: transformer, PADDED: transformer}


def settings_for(
    encoder: EncoderSettings | TransformerSettings, data: FileData, precision: str
) -> RunSettings:
    published = read_settings(f"mlm-ptb-{'pt' if encoder.kind == 'pt' else 'transformer'}", [])
    training = replace(published.training, batch=64, chunk=16, precision=precision)
    return replace(published, data=data, encoder=encoder, training=training)


def made_up(path: Path, count: int) -> Path:
    """Sentences as long as those of the Penn Treebank: 21 words on average, 82 at most."""
    random = np.random.default_rng(0)
    lengths = np.clip(np.rint(random.gamma(4.3, 4.9, count)), 1, 82).astype(int)
    ranks = random.zipf(1.15, lengths.sum()) % 9998
    words = np.char.add("w", ranks.astype(str))
    sentences = np.split(words, np.cumsum(lengths)[:-1])
    path.write_text("\n".join(map(" ".join, sentences)) + "\n", encoding="utf-8")
    return path


def first_lines(text: Path, count: int, path: Path) -> Path:
    lines = text.read_text(encoding="utf-8").splitlines(keepends=True)[:count]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def seconds_of_two_epochs(run: Training) -> tuple[float, float]:
    """Seconds of the first epoch, and of the second, which has a random order as all later ones."""
    found = []
    for epoch in range(2):
        run.progress.epoch, run.progress.batch, run.progress.seconds = epoch, 0, 0.0
        run._epoch()
        found.append(run.progress.seconds)
    return found[0], found[1]


def stages(run: Training) -> list[float]:
    """Mean milliseconds to build a batch, to compute its gradient, and to update the weights."""
    training, split, device = run.settings, run.splits["train"], run.accelerator.device
    batches = training_batches(split.lengths, training.batch, 1, 0, training.by_length)[:PROFILED]
    times = np.zeros(3)
    for indices in batches:
        synchronise(device)
        moments = [time.perf_counter()]
        batch = run.batches.build([indices], run.progress.epoch)
        moments.append(time.perf_counter())
        run.gradients.add(batch, first=True)
        synchronise(device)
        moments.append(time.perf_counter())
        run.updates.apply(training.learning_rate)
        run.updates.read_back()
        moments.append(time.perf_counter())
        times += np.diff(moments)
    return [round(1e3 * time / len(batches), 3) for time in times]


if __name__ == "__main__":
    main()
