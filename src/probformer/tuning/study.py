"""A study: what has been tried, in a storage of Optuna's that several workers share.

Workers agree by locks on files, which no killed process keeps: a trial that is going on, but whose
folder nobody holds, has lost its worker, and the next one goes on with it.
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
_PATIENCE = 60  # seconds that SQLite waits for other workers


@dataclass(frozen=True)
class Search:
    """A study, and the folder that all of its workers share."""

    study: optuna.Study
    folder: Path
    space: Space
    sampler: str
    seed: int

    @contextmanager
    def next_trial(self, trials: int) -> Iterator[Trial | None]:
        """One that was left, or else a new one if there are fewer than so many; ours meanwhile."""
        with ExitStack() as held:
            with self.alone():
                trial = self._abandoned(held) or self._new(held, trials)
            yield trial

    def alone(self) -> AbstractContextManager[None]:
        """While this lasts, no other worker changes the study's files, or takes a trial."""
        return file_lock(self.folder / "lock")

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=states or None)

    def trial_folder(self, number: int) -> Path:
        return self.folder / f"trial-{number:04d}"

    def chosen(self, trial: Trial) -> dict[str, Any]:
        """The trial's values, drawn unless they have been."""
        # Drawn by the trial's number: it does not matter which worker does it, or after what.
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
            held.close()  # its worker ended it just now
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
    """Begins a study, or joins it if it is the same one, on data of the same `digests`."""
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
        except Exception as error:  # of whichever database it is
            reason = str(error).splitlines()[0]
            raise InputError(f"--storage {storage}: cannot be used: {reason}") from None
        _join(study, folder, _definition(space), dict(digests))
    return Search(study, folder, space, sampler, seed)


def _join(
    study: optuna.Study, folder: Path, asked: dict[str, Any], digests: dict[str, str]
) -> None:
    """Refuses a study that is about something else, or that has another folder."""
    before, marker = study.user_attrs.get("definition"), folder / "study.json"
    if before is None:
        message = "holds trials of another study; --out chooses another folder"
        require(not any(folder.glob("trial-*")), f"{folder}: {message}")
        identity = uuid.uuid4().hex
        write_json(marker, {"study": study.study_name, "id": identity})
        study.set_user_attr("id", identity)
        study.set_user_attr("digests", digests)
        study.set_user_attr("definition", asked)
        return
    for key in dict.fromkeys([*before, *asked]):
        old, new = before.get(key, "none"), asked.get(key, "none")
        message = f"has {key} = {old!r}, but {new!r} is asked for; --study and --out begin another"
        require(old == new, f"the study {study.study_name!r} {message}")
    for name, digest in digests.items():
        message = f"began with other sentences of {name}; --study and --out begin another"
        same = study.user_attrs["digests"].get(name) == digest
        require(same, f"the study {study.study_name!r} {message}")
    same = marker.is_file() and read_json(marker).get("id") == study.user_attrs["id"]
    message = f"is not the folder of the study {study.study_name!r}, which all workers share"
    require(same, f"{folder}: {message}")


def _definition(space: Space) -> dict[str, Any]:
    """What must not change during a study, by name."""
    settings = flat(to_dict(space.settings({})))
    ranges = {f"range of {name}": to_dict(range) for name, range in space.ranges.items()}
    settings.pop("name", None)
    return {**settings, **ranges}


def _storage(storage: str | None, folder: Path) -> BaseStorage:
    """SQLite by default: a process that is killed while it writes leaves no lock and no damage."""
    if storage is None:
        path = URL.create("sqlite", database=str(folder / "study.db"))
        storage = path.render_as_string(hide_password=False)
    if storage.startswith("redis"):
        return JournalStorage(JournalRedisBackend(storage))
    if "://" not in storage:
        return JournalStorage(JournalFileBackend(storage))
    waits = {"connect_args": {"timeout": _PATIENCE}} if storage.startswith("sqlite") else {}
    return RDBStorage(storage, engine_kwargs=waits)


def _sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    seed %= 2**32  # as NumPy wants it
    if name == "random":
        return optuna.samplers.RandomSampler(seed)
    with warnings.catch_warnings():  # where it is experimental still
        warnings.simplefilter("ignore")
        # What other workers are at is not tried a second time.
        return optuna.samplers.TPESampler(seed=seed, constant_liar=True)
