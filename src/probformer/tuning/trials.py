"""One trial: a run with values drawn from the search space."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from optuna import TrialPruned
from optuna.trial import Trial, TrialState

from probformer.config import RunSettings
from probformer.errors import InputError, is_out_of_memory
from probformer.runs.figures import format_metric
from probformer.runs.run_folder import has_begun
from probformer.training.processes import join_processes
from probformer.training.progress import build_reporter
from probformer.training.start import prepare
from probformer.training.stopping import StopSignal
from probformer.tuning.study import Search


def run_trial(search: Search, trial: Trial, data: Path, metric: str) -> None:
    """Train until the trial is complete, pruned or failed, and record that in the study."""
    chosen = search.chosen(trial)
    folder = search.trial_folder(trial.number)
    reporter = build_reporter(True, f"trial {trial.number}")
    reporter.say(values_text(chosen))
    try:
        best, state = _train(search.space.settings(chosen), folder, data, trial, reporter)
        trial.set_user_attr(figure_name(metric), best[metric])
        trial.set_user_attr("best epoch", best["epoch"])
        complete = state == TrialState.COMPLETE
        search.study.tell(trial, best["score"] if complete else None, state)
        reporter.say(f"{state.name.lower()}, {figure_name(metric)} {format_metric(best[metric])}")
    except (InputError, RuntimeError, MemoryError) as error:
        if not isinstance(error, InputError) and not is_out_of_memory(error):
            raise
        reason = str(error) if isinstance(error, InputError) else "out of memory"
        trial.set_user_attr("reason", reason)
        search.study.tell(trial, state=TrialState.FAIL)
        reporter.warn(f"failed: {reason}")
    finally:
        reporter.close()


def _train(
    settings: RunSettings, folder: Path, data: Path, trial: Trial, reporter: Any
) -> tuple[dict[str, float], TrialState]:
    """The dev metrics of the best epoch, and how the trial ended."""
    resume = has_begun(folder)
    stop = StopSignal()

    def report(line: dict[str, Any]) -> None:
        with warnings.catch_warnings():  # a resumed trial may repeat an epoch
            warnings.simplefilter("ignore")
            trial.report(line["dev"]["score"], line["epoch"] - 1)
        if line["epoch"] < settings.training.epochs and trial.should_prune():
            raise TrialPruned

    accelerator = join_processes()
    training = prepare(
        settings, folder, data, reporter, accelerator, None, resume, stop, after_epoch=report
    )
    state = TrialState.COMPLETE
    try:
        with stop:
            training.train()
    except TrialPruned:
        state = TrialState.PRUNED
    assert training.progress.best is not None
    return training.progress.best, state


def figure_name(metric: str) -> str:
    return f"dev {metric}"


def values_text(chosen: dict[str, Any]) -> str:
    texts = {name: f"{x:.4g}" if isinstance(x, float) else x for name, x in chosen.items()}
    return ", ".join(f"{name} = {text}" for name, text in texts.items())
