"""`probformer tune`: one worker of a study, from its first trial to its last."""

from __future__ import annotations

import os
from pathlib import Path

from optuna.trial import TrialState

from probformer.config import to_toml
from probformer.config.lookup import read_settings, read_values
from probformer.data.corpus import build_vocabulary, load_corpus
from probformer.errors import counted, require, require_one_of, require_whole
from probformer.runs.figures import format_metric
from probformer.runs.files import require_writable, write_text
from probformer.tasks import build_task
from probformer.training.memory import keep_freed_memory
from probformer.training.stopping import Stopped
from probformer.tuning.plot import check_matplotlib, plot_search
from probformer.tuning.space import Space, read_space
from probformer.tuning.study import SAMPLERS, Search, open_search
from probformer.tuning.trials import figure_name, run_trial, values_text

BEST = "best.toml"


def tune(
    config: str,
    space: str,
    changes: list[str],
    data: Path,
    out: Path | None,
    trials: int,
    sampler: str,
    prune: bool,
    storage: str | None,
    study: str | None,
    seed: int,
    plot: Path | None,
) -> None:
    """Run trials of a study until it has `trials` of them, and write the best config.

    Args:
        config: The config whose settings are varied: a TOML file, or the name of a bundled one.
        space: The settings to vary and their ranges: a TOML file, or the name of a bundled one.
        changes: Further settings, as for `--set`.
        data: The folder of the data's files.
        out: The folder of the study.
        trials: The number of trials of all workers together.
        sampler: How values are drawn: "random" or "tpe".
        prune: Whether trials below the median are stopped early.
        storage: A URL of a database or the path of a journal file; by default study.db in the
            folder.
        study: The study's name; by default the config's.
        seed: The seed of the values that are drawn.
        plot: An SVG file for a plot of the search.

    Raises:
        InputError: An argument is wrong, the study exists with other settings, ranges, data or
            folder, or no trial is complete.
        SystemExit: Ctrl-C or SIGTERM has stopped the worker; the same command continues.
    """
    require_whole("trials", trials)
    require_whole("seed", seed, low=0)
    require_one_of("sampler", sampler, SAMPLERS)
    require("RANK" not in os.environ, "tune cannot be used under torchrun or accelerate launch")
    name = Path(config).stem
    folder = out or Path("runs") / f"{name}-tuning"
    for path, is_folder in ((folder, True), *([(plot, False)] if plot else [])):
        require_writable(path, is_folder)
    if plot is not None:
        check_matplotlib()
    metric, digests = _check(config, changes, data)
    found = read_space(space, read_values(config, changes))
    _check_not_set(found, changes)
    search = open_search(folder, storage, study or name, found, sampler, seed, prune, digests)
    keep_freed_memory()
    try:
        made = _work(search, trials, data, metric)
    except Stopped as stopped:
        print(f"stopped; the same command continues the study in {folder}")
        raise SystemExit(128 + stopped.signal_number) from None
    if not made:
        have = counted(len(search.trials()), "trial")
        print(f"the study has {have} already; a larger --trials continues it")
    if plot is not None:
        plot_search(search, metric, plot)
    _report(search, metric)


def _work(search: Search, trials: int, data: Path, metric: str) -> int:
    made = 0
    while True:
        with search.next_trial(trials) as trial:
            if trial is None:
                return made
            run_trial(search, trial, data, metric)
        made += 1
        with search.alone():
            _write_best(search)


def _check(config: str, changes: list[str], data: Path) -> tuple[str, dict[str, str]]:
    """Check config and data; returns the name of the main metric and the digests of the data."""
    settings = read_settings(config, changes)
    corpus = load_corpus(settings.data, data)
    task = build_task(settings.task, build_vocabulary(settings.vocabulary, corpus.counted))
    task.skips_bad_sentences = getattr(settings.data, "skip_bad_lines", False)
    task.learn_classes(corpus.splits["train"])
    return task.metric, corpus.digests()


def _check_not_set(space: Space, changes: list[str]) -> None:
    for name in (change.partition("=")[0].strip() for change in changes):
        require(name not in space.ranges, f"--set {name}: the setting is in the search space")


def _write_best(search: Search) -> None:
    if search.trials(TrialState.COMPLETE):
        best = search.space.settings(search.study.best_trial.params)
        write_text(search.folder / BEST, to_toml(best))


def _report(search: Search, metric: str) -> None:
    ended = {state: search.trials(state) for state in TrialState}
    counts = [f"{len(found)} {state.name.lower()}" for state, found in ended.items() if found]
    print(f"{counted(len(search.trials()), 'trial')}: {', '.join(counts)}")
    reasons = [trial.user_attrs["reason"] for trial in ended[TrialState.FAIL]]
    why = f": the last one failed: {reasons[-1]}" if reasons else ""
    require(bool(ended[TrialState.COMPLETE]), f"no trial is complete{why}")
    best = search.study.best_trial
    figure = format_metric(best.user_attrs[figure_name(metric)])
    print(f"best: trial {best.number}, {figure_name(metric)} {figure}: {values_text(best.params)}")
    print(f"its config is {search.folder / BEST}, its run {search.trial_folder(best.number)}")
