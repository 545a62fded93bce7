"""A plot of a search as SVG; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from optuna.trial import FrozenTrial, TrialState

from probformer.errors import require_packages
from probformer.runs.plots import save_plot
from probformer.tuning.space import Range
from probformer.tuning.study import Search
from probformer.tuning.trials import figure_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 3
_MARKERS: dict[TrialState, dict[str, Any]] = {
    TrialState.PRUNED: {"marker": "o", "facecolors": "none", "edgecolors": "#718096"},
    TrialState.COMPLETE: {"marker": "o", "color": "#2b6cb0"},
}


def check_matplotlib() -> None:
    require_packages("--plot", "matplotlib", "probformer[plot]")


def plot_search(search: Search, metric: str, path: Path) -> None:
    """Plot the main metric by trial, with the best so far, and by the value of each setting."""
    from matplotlib.figure import Figure

    panels = 1 + len(search.space.ranges)
    columns = min(panels, _COLUMNS)
    rows = math.ceil(panels / columns)
    figure = Figure(figsize=(4 * columns, 3 * rows), layout="constrained")
    first, *others = figure.subplots(rows, columns, squeeze=False, sharey=True).flat
    _by_trial(first, search, metric)
    first.legend(frameon=False, fontsize="small")
    for axes, (name, range) in zip(others, search.space.ranges.items(), strict=False):
        _by_value(axes, search, metric, name, range)
    for axes in others[panels - 1 :]:
        axes.set_visible(False)
    for axes in (first, *others)[::columns]:
        axes.set(ylabel=figure_name(metric))
    if metric == "perplexity":  # trials may differ by a factor of a hundred
        _by_magnitude(first, "y")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_plot(figure, path)


def _by_trial(axes: Axes, search: Search, metric: str) -> None:
    _scatter(axes, search, metric, lambda trial: trial.number)
    complete = search.trials(TrialState.COMPLETE)
    best = [max(complete[: end + 1], key=_score) for end in range(len(complete))]
    if best:
        numbers, figures = [t.number for t in complete], [_figure(t, metric) for t in best]
        axes.step(numbers, figures, where="post", color="#dd6b20", label="best so far")
    axes.set(xlabel="trial")
    axes.locator_params("x", integer=True)


def _by_value(axes: Axes, search: Search, metric: str, name: str, range: Range) -> None:
    if range.choices is None:
        _scatter(axes, search, metric, lambda trial: trial.params[name])
        if range.log:
            _by_magnitude(axes, "x")
        elif range.is_whole:
            axes.locator_params("x", integer=True)
    else:
        places = {repr(value): at for at, value in enumerate(range.choices)}
        _scatter(axes, search, metric, lambda trial: places[repr(trial.params[name])])
        axes.set_xticks([*places.values()], [str(value) for value in range.choices])
        axes.set_xlim(-0.5, len(places) - 0.5)
    axes.set(xlabel=name)


def _scatter(axes: Axes, search: Search, metric: str, place: Callable[[FrozenTrial], Any]) -> None:
    for state, marker in _MARKERS.items():
        trials = search.trials(state)
        x, y = [place(trial) for trial in trials], [_figure(trial, metric) for trial in trials]
        axes.scatter(x, y, s=22, label=state.name.lower() if trials else None, **marker)


def _by_magnitude(axes: Axes, which: Literal["x", "y"]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _score(trial: FrozenTrial) -> float:
    assert trial.value is not None
    return trial.value


def _figure(trial: FrozenTrial, metric: str) -> float:
    return trial.user_attrs[figure_name(metric)]
