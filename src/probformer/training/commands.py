"""The commands that train and evaluate runs, or describe their data."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from probformer.config import RunSettings
from probformer.config.lookup import read_settings
from probformer.data.corpus import build_vocabulary, load_corpus
from probformer.errors import InputError, counted, require, require_whole
from probformer.runs.figures import format_metrics
from probformer.training.locks import run_lock
from probformer.training.memory import keep_freed_memory
from probformer.training.processes import join_processes
from probformer.training.progress import LineReporter, build_reporter
from probformer.training.seeds import Results, parse_seeds, side_by_side, summary
from probformer.training.splits import skipped_lines
from probformer.training.start import prepare
from probformer.training.stopping import Stopped, StopSignal


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
    """Train one run, or one for each of several seeds, and print the results.

    Args:
        config: A TOML file, or the name of a bundled config.
        changes: Settings to change, as for `--set`: "training.epochs=3".
        data: The folder of the data's files.
        out: The run folder; with seeds, the folder of their run folders `seed-N`. None: runs/ and
            the config's name.
        seeds: "0..4" or "0,3,7"; empty for one run with the seed of the config.
        parallel: The number of seeds that train at the same time.
        init: A run whose encoder new runs start from.
        resume: Continue the runs in the folder, if there are any.

    Raises:
        InputError: Settings, data and folder do not fit together, or a seed failed.
    """
    settings = read_settings(config, changes)
    folder = out or Path("runs") / Path(config).stem
    require_whole("parallel", parallel)
    if not seeds:
        require(parallel == 1, "--parallel needs several --seeds")
        results = train_one(settings, folder, data, init, resume)
        if join_processes().is_main_process:
            print_results(results, folder)
        return
    folders = {seed: folder / f"seed-{seed}" for seed in parse_seeds(seeds)}

    def command(seed: int) -> list[str]:
        line = [sys.executable, "-m", "probformer.cli", "train", config]
        line += ["--data", str(data), "--out", str(folders[seed])]
        line += [part for change in (*changes, f"seed={seed}") for part in ("--set", change)]
        return line + (["--init", str(init)] if init else []) + (["--resume"] if resume else [])

    failures: dict[int, str] = {}
    if parallel > 1:
        failures = side_by_side({seed: command(seed) for seed in folders}, parallel)
    else:
        for seed in folders:
            changed = read_settings(config, [*changes, f"seed={seed}"])
            try:
                train_one(changed, folders[seed], data, init, resume, name=f"seed {seed}")
            except InputError as error:
                if "RANK" in os.environ:  # the other processes may still train this seed
                    raise
                failures[seed] = str(error)
    if join_processes().is_main_process:
        done = {seed: path for seed, path in folders.items() if seed not in failures}
        print(*summary(done), f"the runs are in {folder}", sep="\n")
    failed = "; ".join(f"seed {seed} failed: {why}" for seed, why in failures.items())
    require(not failures, failed)


def train_one(
    settings: RunSettings,
    folder: Path,
    data: Path = Path("."),
    init: Path | None = None,
    resume: bool = False,
    name: str = "",
) -> Results:
    """Train one run to its end, with a lock on its folder.

    Args:
        settings: The settings of the run.
        folder: The run folder.
        data: The folder of the data's files.
        init: A run whose encoder a new run starts from.
        resume: Continue the run in the folder, if there is one.
        name: A prefix of the lines that it prints.

    Returns:
        Metrics by split, without train, of the weights of the best epoch.

    Raises:
        InputError: Settings, data and folder do not fit together, or a loss is not finite.
        SystemExit: Ctrl-C or SIGTERM has stopped training; there is a checkpoint.
    """
    accelerator = join_processes()
    reporter = build_reporter(accelerator.is_main_process, name)
    stop = StopSignal()
    keep_freed_memory()
    try:
        with ExitStack() as stack:
            if accelerator.is_main_process:
                # Processes before a restart may still be ending, on another node or as orphans.
                patience = 60.0 if accelerator.num_processes > 1 else 0.0
                stack.enter_context(run_lock(folder, patience))
            training = prepare(settings, folder, data, reporter, accelerator, init, resume, stop)
            with stop:
                return training.train()
    except Stopped as stopped:
        reporter.say(f"stopped; the same command with --resume continues the run in {folder}")
        raise SystemExit(128 + stopped.signal_number) from None
    finally:
        reporter.close()


def print_results(results: Results, folder: Path) -> None:
    """Print a line for each split."""
    for split, metrics in results.items():
        print(f"{split}: {format_metrics(metrics)}")
    print(f"the run is in {folder}")


def describe_data(config: str, changes: list[str], data: Path) -> None:
    """Print sizes, columns and vocabulary of a config's data."""
    settings = read_settings(config, changes)
    corpus = load_corpus(settings.data, data)
    vocabulary = build_vocabulary(settings.vocabulary, corpus.counted)
    for split, sentences in corpus.splits.items():
        count = words = unknown = longest = 0
        values: dict[str, Counter[str]] = {}
        for sentence in sentences:
            count, words = count + 1, words + len(sentence)
            unknown += vocabulary.count_unknown(sentence.words)
            longest = max(longest, len(sentence))
            for name, column in sentence.columns.items():
                values.setdefault(name, Counter()).update(column)
            if sentence.label is not None:
                values.setdefault("label", Counter())[sentence.label] += 1
        size = f"{counted(count, 'sentence')}, {counted(words, 'word')} ({unknown:,} unknown)"
        print(f"{split}: {size}, longest {longest}")
        for name, counts in values.items():
            most = f"most frequent {counts.most_common(1)[0][0]!r}"
            print(f"  {name}: {counted(len(counts), 'value')}, {most}")
        for warning in skipped_lines(sentences):
            LineReporter().warn(warning)
    print(f"vocabulary: {len(vocabulary):,} entries, <unk> and <mask> included")
