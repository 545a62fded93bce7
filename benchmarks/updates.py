"""Time of a training update of a config, and of each kernel in it on a GPU.

    python benchmarks/updates.py mlm-ptb-transformer --data corpora

Training as `probformer train` does it, with the batches of the second epoch. The first 250 updates
(`--warm-up`), in which kernels are compiled and CUDA graphs captured, are not timed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from itertools import cycle, islice
from pathlib import Path

import torch
from accelerate import Accelerator
from torch.profiler import ProfilerActivity, profile

from probformer.config.lookup import read_settings
from probformer.data.batches import training_batches
from probformer.errors import InputError
from probformer.training.loop import Training
from probformer.training.progress import Reporter
from probformer.training.start import prepare
from step import machine, synchronise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    parser.add_argument("--precision", default="bf16", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--warm-up", type=int, default=250)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--profiled", type=int, default=24)
    given = parser.parse_args()
    accelerator = Accelerator(cpu=given.device == "cpu")
    with tempfile.TemporaryDirectory() as folder:
        try:
            settings = read_settings(given.config, [f"training.precision={given.precision}"])
            run = prepare(settings, Path(folder) / "run", given.data, Reporter(), accelerator)
        except InputError as error:
            parser.error(str(error))
        run.progress.epoch = 1
        run.model.train()
        update(run, given.warm_up)
        begin = time.perf_counter()
        update(run, given.updates)
        taken = 1e3 * (time.perf_counter() - begin) / given.updates
        print(f"{given.config}, {given.precision}, {machine(accelerator.device)}")
        print(f"{taken:.2f} ms an update")
        if run.on_gpu:
            print_kernels(run, given.profiled)


def update(run: Training, count: int) -> None:
    """Run `count` updates on batches of an epoch; the last one is left out, as it is smaller."""
    lengths, settings = run.splits["train"].lengths, run.run.settings
    training = settings.training
    batches = training_batches(lengths, training.batch, 1, settings.seed, training.by_length)
    start = run.progress.step % max(1, len(batches) - 1)
    for indices in islice(cycle(batches[:-1] or batches), start, start + count):
        run._update(indices)
        run.progress.step += 1
    run._read_back()
    synchronise(run.accelerator.device)


def print_kernels(run: Training, count: int, most: int = 20) -> None:
    """Print the `most` slowest kernels, with microseconds and number of calls per update."""
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        update(run, count)
    kernels: defaultdict[str, list[float]] = defaultdict(list)
    for event in seen.events() or ():
        if event.device_type.name == "CUDA":
            kernels[event.name].append(event.device_time_total)
    total, number = sum(map(sum, kernels.values())), sum(map(len, kernels.values()))
    print(f"{total / count / 1e3:.2f} ms of kernels, {number / count:.0f} of them")
    for name, times in sorted(kernels.items(), key=lambda pair: -sum(pair[1]))[:most]:
        print(f"{sum(times) / count:9.1f} {len(times) / count:7.1f}  {name[:90]}")


if __name__ == "__main__":
    main()
