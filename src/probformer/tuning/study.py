"""A study: all trials of a search, in a storage of Optuna's that several workers share.

Workers coordinate by file locks, which end with their process. A trial that is running but whose
folder is not locked has lost its worker, and the next worker continues it.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalRedisBackend
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy import URL

from probformer.config import to_dict
from probformer.config.reading import flat
from probformer.data.randomness import Purpose, derive_seed
from probformer.errors import InputError, require
from probformer.runs.files import read_json, write_json
from probformer.training.locks import InUse, file_lock, run_lock
from probformer.tuning.space import Space

SAMPLERS = ("random", "tpe")
_TIMEOUT = 60
"""Seconds that SQLite waits for other workers."""


@dataclass(frozen=True)
class Search:
    """A study and the folder that all its workers share."""

    study: optuna.Study
    folder: Path
    space: Space
    sampler: str
    seed: int

    @contextmanager
    def next_trial(self, trials: int) -> Iterator[Trial | None]:
        """The next trial to run, with its folder locked: an abandoned one, else a new one.

        None if the study has `trials` trials, none of them abandoned.
        """
        with ExitStack() as held:
            with self.alone():
                trial = self._abandoned(held) or self._new(held, trials)
            yield trial

    def alone(self) -> AbstractContextManager[None]:
        """A lock: within it, no other worker changes the study's files or takes a trial."""
        return file_lock(self.folder / "lock")

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=states or None)

    def trial_folder(self, number: int) -> Path:
        return self.folder / f"trial-{number:04d}"

    def chosen(self, trial: Trial) -> dict[str, Any]:
        """The trial's values, drawn on the first call."""
        # Seeded by the trial's number, so that values do not depend on which worker draws them.
        self.study.sampler = _sampler(
            self.sampler, derive_seed(self.seed, Purpose.SEARCH, trial.number)
        )
        chosen = {}
        for name, range in self.space.ranges.items():
            if range.choices is not None:
                chosen[name] = trial.suggest_categorical(name, range.choices)
                continue
            ends: tuple[Any, Any] = range.low, range.high
            if range.is_whole:
                step = range.step or 1
                chosen[name] = trial.suggest_int(name, *ends, step=step, log=range.log)
            else:
                chosen[name] = trial.suggest_float(name, *ends, log=range.log)
        return chosen

    def _abandoned(self, held: ExitStack) -> Trial | None:
        for frozen in self.trials(TrialState.RUNNING):
            try:
                held.enter_context(run_lock(self.trial_folder(frozen.number)))
            except InUse:
                continue
            trial = Trial(self.study, frozen._trial_id)
            if self.trials()[frozen.number].state == TrialState.RUNNING:
                return trial
            held.close()  # its worker has ended it just now
        return None

    def _new(self, held: ExitStack, trials: int) -> Trial | None:
        if len(self.trials()) >= trials:
            return None
        trial = self.study.ask()
        held.enter_context(run_lock(self.trial_folder(trial.number)))
        return trial


def open_search(
    folder: Path,
    storage: str | None,
    name: str,
    space: Space,
    sampler: str,
    seed: int,
    prune: bool,
    digests: Mapping[str, str],
) -> Search:
    """Begin a study, or join it.

    Args:
        folder: The folder of the study.
        storage: A URL of a database or the path of a journal file; by default study.db in the
            folder.
        name: The name of the study.
        space: The settings to vary and their ranges.
        sampler: One of `SAMPLERS`.
        seed: The seed of the values that are drawn.
        prune: Whether trials below the median are stopped early.
        digests: By split, the digest of the data.

    Raises:
        InputError: The study exists with other settings, ranges, data or folder, or the storage
            cannot be used.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with file_lock(folder / "lock"):
        try:
            study = optuna.create_study(
                storage=_storage(storage, folder),
                study_name=name,
                direction="maximize",
                load_if_exists=True,
                sampler=_sampler(sampler, seed),
                pruner=optuna.pruners.MedianPruner() if prune else optuna.pruners.NopPruner(),
            )
        except InputError:
            raise
        except Exception as error:  # each database has its own errors
            reason = str(error).splitlines()[0]
            raise InputError(f"--storage {storage}: cannot be used: {reason}") from None
        _join(study, folder, _definition(space), dict(digests))
    return Search(study, folder, space, sampler, seed)


def _join(
    study: optuna.Study, folder: Path, definition: dict[str, Any], digests: dict[str, str]
) -> None:
    """Check that an existing study has the same definition, data and folder; record a new one's."""
    before, marker = study.user_attrs.get("definition"), folder / "study.json"
    if before is None:
        message = "holds trials of another study; --out chooses another folder"
        require(not any(folder.glob("trial-*")), f"{folder}: {message}")
        identity = uuid.uuid4().hex
        write_json(marker, {"study": study.study_name, "id": identity})
        study.set_user_attr("id", identity)
        study.set_user_attr("digests", digests)
        study.set_user_attr("definition", definition)
        return
    for key in dict.fromkeys([*before, *definition]):
        old, new = before.get(key, "none"), definition.get(key, "none")
        message = f"has {key} = {old!r}, not {new!r}; --study and --out begin another one"
        require(old == new, f"the study {study.study_name!r} {message}")
    for name, digest in digests.items():
        message = f"began with other sentences of {name}; --study and --out begin another"
        same = study.user_attrs["digests"].get(name) == digest
        require(same, f"the study {study.study_name!r} {message}")
    same = marker.is_file() and read_json(marker).get("id") == study.user_attrs["id"]
    message = f"is not the folder of the study {study.study_name!r}, which all workers share"
    require(same, f"{folder}: {message}")


def _definition(space: Space) -> dict[str, Any]:
    """By name, all settings and ranges: they must not change during a study."""
    settings = flat(to_dict(space.settings({})))
    ranges = {f"range of {name}": to_dict(range) for name, range in space.ranges.items()}
    settings.pop("name", None)
    return {**settings, **ranges}


def _storage(storage: str | None, folder: Path) -> BaseStorage:
    """SQLite by default: a process that is killed while writing leaves neither lock nor damage."""
    if storage is None:
        path = URL.create("sqlite", database=str(folder / "study.db"))
        storage = path.render_as_string(hide_password=False)
    if storage.startswith("redis"):
        return JournalStorage(JournalRedisBackend(storage))
    if "://" not in storage:
        return JournalStorage(JournalFileBackend(storage))
    waits = {"connect_args": {"timeout": _TIMEOUT}} if storage.startswith("sqlite") else {}
    return RDBStorage(storage, engine_kwargs=waits)


def _sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    seed %= 2**32  # the range of NumPy's seeds
    if name == "random":
        return optuna.samplers.RandomSampler(seed)
    with warnings.catch_warnings():  # in some versions of Optuna it is experimental
        warnings.simplefilter("ignore")
        # constant_liar: values that other workers are trying are avoided.
        # multivariate: settings are drawn jointly, which is the default since Optuna 5.
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
