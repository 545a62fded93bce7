"""What the command line does with runs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from accelerate import Accelerator

import probformer
from probformer.config import RunSettings, from_dict
from probformer.data.corpus import build_vocabulary, load_corpus
from probformer.errors import InputError, require, require_whole
from probformer.training.evaluation import evaluate
from probformer.training.report import build_reporter
from probformer.training.run_folder import load_run, read_metrics
from probformer.training.start import prepare

Results = dict[str, dict[str, float]]


def train_seeds(
    config: str,
    changes: list[str],
    data: Path,
    out: Path | None,
    seeds: str,
    parallel: int,
    init: Path | None,
    resume: bool,
) -> None:
    """One run, or one a seed with mean and standard deviation."""
    settings = read_settings(config, changes)
    folder = out or Path("runs") / Path(config).stem
    if not seeds:
        results = train_one(settings, folder, data, init, resume)
        print_results(results, folder)
        return
    require_whole("parallel", parallel)
    numbers = parse_seeds(seeds)
    folders = {seed: folder / f"seed-{seed}" for seed in numbers}

    def run(seed: int) -> Results:
        changed = [*changes, f"seed={seed}"]
        if parallel == 1:
            return train_one(read_settings(config, changed), folders[seed], data, init, resume)
        command = [sys.executable, "-m", "probformer.cli", "train", config]
        command += ["--data", str(data), "--out", str(folders[seed])]
        command += [part for change in changed for part in ("--set", change)]
        command += ["--init", str(init)] if init else []
        command += ["--resume"] if resume else []
        # Threads of one run that wait for those of another make both many times slower.
        threads = max(1, (os.cpu_count() or 1) // parallel)
        environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        return read_metrics(folders[seed])[-1]["final"]

    with ThreadPoolExecutor(parallel) as pool:
        all_results = list(pool.map(run, numbers))
    metric = load_run(folders[numbers[0]]).task.metric
    for seed, results in zip(numbers, all_results, strict=True):
        print(f"seed {seed}: test {metric} {results['test'][metric]:.4f}")
    values = [results["test"][metric] for results in all_results]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    print(f"test {metric} {statistics.mean(values):.4f} ± {spread:.4f} ({len(values)} seeds)")


def train_one(
    settings: RunSettings,
    folder: Path,
    data: Path = Path("."),
    init: Path | None = None,
    resume: bool = False,
    name: str = "",
) -> Results:
    accelerator = Accelerator()
    reporter = build_reporter(accelerator.is_main_process, name)
    try:
        training = prepare(settings, folder, data, reporter, accelerator, init, resume)
        return training.train()
    finally:
        reporter.close()


def print_results(results: Results, folder: Path) -> None:
    task = load_run(folder).task
    for split, metrics in results.items():
        print(f"{split}: {task.metric} {metrics[task.metric]:.4f}, loss {metrics['loss']:.4f}")
    print(f"the run is in {folder}")


def evaluate_run(folder: Path, data: Path, split: str) -> None:
    run = load_run(folder)
    corpus = load_corpus(run.settings.data, data)
    require(split in corpus, f"split must be one of {', '.join(corpus)}, got {split!r}")
    accelerator = Accelerator()
    model = run.model.to(accelerator.device)
    metrics = evaluate(model, run.task, run.task.encode(corpus[split]), accelerator)
    for name, value in metrics.items():
        if name != "score":
            print(f"{name} {value:.4f}")


def describe_data(config: str, changes: list[str], data: Path) -> None:
    settings = read_settings(config, changes)
    corpus = load_corpus(settings.data, data)
    vocabulary = build_vocabulary(settings.vocabulary, corpus["train"])
    for split, sentences in corpus.items():
        count = words = unknown = longest = 0
        columns: dict[str, Counter[str]] = {}
        for sentence in sentences:
            count, words = count + 1, words + len(sentence)
            unknown += sum(word not in vocabulary for word in sentence.words)
            longest = max(longest, len(sentence))
            for name, values in sentence.columns.items():
                columns.setdefault(name, Counter()).update(values)
        text = f"{split}: {count:,} sentences, {words:,} words ({unknown:,} unknown)"
        print(f"{text}, longest {longest}")
        for name, values in columns.items():
            print(
                f"  {name}: {len(values):,} values, most frequent {values.most_common(1)[0][0]!r}"
            )
    print(f"vocabulary: {len(vocabulary):,} entries, <unk> and <mask> included")


def read_settings(config: str, changes: list[str]) -> RunSettings:
    """The settings of a TOML file, or of a config that comes along, with changes like a.b=c."""
    path = find_config(config)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as TOML: {error}") from None
    for change in changes:
        apply_change(values, change)
    try:
        return from_dict(RunSettings, values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def find_config(config: str) -> Path:
    path = Path(config)
    if path.is_file():
        return path
    package = Path(probformer.__file__).parent
    shipped = [
        folder
        for folder in (package / "configs", package.parents[1] / "configs")
        if folder.is_dir()
    ]
    for folder in shipped:
        if (folder / f"{config}.toml").is_file():
            return folder / f"{config}.toml"
    names = sorted(path.stem for folder in shipped for path in folder.glob("*.toml"))
    raise InputError(f"{config}: is no file and no config that comes along ({', '.join(names)})")


def apply_change(values: dict[str, Any], change: str) -> None:
    key, sign, text = change.partition("=")
    require(bool(sign and key), f"--set must be like training.epochs=3, got {change!r}")
    *tables, name = key.strip().split(".")
    for table in tables:
        values = values.setdefault(table, {})
        require(isinstance(values, dict), f"--set {change}: {table} is no table of settings")
    try:
        values[name] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        values[name] = text  # a bare word is a text


def parse_seeds(text: str) -> list[int]:
    """ "0..4" or "0,3,7"."""
    try:
        first, dots, last = text.partition("..")
        seeds = [*range(int(first), int(last) + 1)] if dots else [int(x) for x in text.split(",")]
    except ValueError:
        seeds = []
    require(bool(seeds) and min(seeds) >= 0, f"seeds must be like 0..4 or 0,3,7, got {text!r}")
    return seeds
