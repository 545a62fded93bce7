"""A search as a picture; needs matplotlib."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.trial import FrozenTrial, TrialState

from probformer.errors import InputError
from probformer.training.plots import save_plot
from probformer.tuning.study import Search
from probformer.tuning.trials import figure_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 3
_LOOKS: dict[TrialState, dict[str, Any]] = {
    TrialState.PRUNED: {"marker": "o", "facecolors": "none", "edgecolors": "#718096"},
    TrialState.COMPLETE: {"marker": "o", "color": "#2b6cb0"},
}


def check_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        package = "the package matplotlib: pip install 'probformer[plot]'"
        raise InputError(f"--plot needs {package}")


def plot_search(search: Search, metric: str, path: Path) -> None:
    """The figure by trial, with the best so far; then by the value of each setting."""
    from matplotlib.figure import Figure

    panels = 1 + len(search.space.ranges)
    columns = min(panels, _COLUMNS)
    rows = math.ceil(panels / columns)
    figure = Figure(figsize=(4 * columns, 3 * rows), layout="constrained")
    first, *others = figure.subplots(rows, columns, squeeze=False, sharey=True).flat
    _scatter(first, search, metric, lambda trial: trial.number)
    _best_so_far(first, search, metric)
    first.set(xlabel="trial")
    first.xaxis.get_major_locator().set_params(integer=True)
    first.legend(frameon=False, fontsize="small")
    for axes, (name, range) in zip(others, search.space.ranges.items(), strict=False):
        places = {repr(value): at for at, value in enumerate(range.choices or [])}

        def place(trial: FrozenTrial, name: str = name, places: dict[str, int] = places) -> float:
            value = trial.params[name]
            return places[repr(value)] if places else value

        _scatter(axes, search, metric, place)
        axes.set(xlabel=name, xscale="log" if range.log else "linear")
        if range.choices is not None:
            axes.set_xticks([*places.values()], [str(value) for value in range.choices])
            axes.set_xlim(-0.5, len(places) - 0.5)
    for axes in others[panels - 1 :]:
        axes.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_plot(figure, path)


def _scatter(axes: Axes, search: Search, metric: str, place: Any) -> None:
    for state, look in _LOOKS.items():
        trials = search.trials(state)
        x, y = [place(trial) for trial in trials], [_figure(trial, metric) for trial in trials]
        axes.scatter(x, y, s=22, label=state.name.lower() if trials else None, **look)
    axes.set(ylabel=figure_name(metric))


def _best_so_far(axes: Axes, search: Search, metric: str) -> None:
    complete = search.trials(TrialState.COMPLETE)
    best = [max(complete[: end + 1], key=lambda trial: trial.value) for end in range(len(complete))]
    if best:
        numbers, figures = [t.number for t in complete], [_figure(t, metric) for t in best]
        axes.step(numbers, figures, where="post", color="#dd6b20", label="best so far")


def _figure(trial: FrozenTrial, metric: str) -> float:
    return trial.user_attrs[figure_name(metric)]
