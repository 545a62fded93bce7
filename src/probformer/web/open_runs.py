"""The runs that the explorer serves, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from probformer.data.corpus import load_corpus
from probformer.data.sentence import Sentence
from probformer.errors import InputError, shortened
from probformer.runs.run_folder import Run, load_run
from probformer.web.evidence import supports_clamps

VERSION = 1
SPLIT = "dev"
"""The split of a run's data for example sentences and for meanings."""
_DEFAULT_EXAMPLE = "she did not see the dog ."
_EXAMPLE_LENGTHS, _EXAMPLES_CONSIDERED = range(6, 13), 200


class NotFound(InputError):
    """The run, label or data that a request names does not exist: status 404."""


class OpenRuns:
    """Loaded once, at the start; a request names a run, never a path.

    Args:
        folders: Run folders. A run's name is that of its folder, with a number if several have it.
        data: The folder below which the files named in a run's settings are looked for.
    """

    def __init__(self, folders: Sequence[Path], data: Path) -> None:
        self._runs: dict[str, Run] = {}
        for folder in folders:
            self._runs[_unique_name(folder, self._runs)] = load_run(folder)
        self._data = data
        self._examples = {name: self._example(run) for name, run in self._runs.items()}

    def __getitem__(self, name: str) -> Run:
        if name not in self._runs:
            known = ", ".join(map(repr, self._runs))
            raise NotFound(f"there is no run {shortened(name)}: the explorer has {known}")
        return self._runs[name]

    def listed(self) -> dict[str, Any]:
        """The answer to `GET /api/v1/runs`."""
        runs = [
            {"name": name, **_facts(run), "example": self._examples[name]}
            for name, run in self._runs.items()
        ]
        return {"version": VERSION, "runs": runs}

    def first_sentences(self, run: Run, count: int) -> list[Sentence]:
        """The first sentences of the run's dev split; none if its data cannot be read."""
        try:
            return list(islice(load_corpus(run.settings.data, self._data).splits[SPLIT], count))
        except (InputError, OSError):
            return []

    def _example(self, run: Run) -> str:
        """The first sentence of medium length without unknown words."""
        sentences = self.first_sentences(run, _EXAMPLES_CONSIDERED)
        for sentence in sentences:
            known = not run.vocabulary.count_unknown(sentence.words)
            if known and len(sentence) in _EXAMPLE_LENGTHS:
                return " ".join(sentence.words)
        return _DEFAULT_EXAMPLE


def _unique_name(folder: Path, taken: Iterable[str]) -> str:
    name = folder.resolve().name.encode(errors="replace").decode() or "run"
    names = [name, *(f"{name}-{number}" for number in range(2, len(list(taken)) + 2))]
    return next(name for name in names if name not in taken)


def _facts(run: Run) -> dict[str, Any]:
    settings = run.model.encoder.settings
    return {
        "model": settings.kind,
        "task": run.settings.task.kind,
        "step": settings.step_name,
        "steps": settings.steps,
        "channels": settings.channels,
        "channel": run.channel,
        "labels": settings.label_count,
        "has_root": settings.has_root,
        "can_clamp": supports_clamps(run),
    }
