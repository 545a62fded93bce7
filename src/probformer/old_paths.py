"""Import paths of earlier versions that README or docs named: each imports the module at its new
path."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "probformer.analysis.describing": "probformer.analysis.describe.description",
    "probformer.analysis.drawing": "probformer.analysis.draw",
    "probformer.analysis.reading": "probformer.analysis.marginals",
    "probformer.analysis.trees": "probformer.crf.decoding",
    "probformer.baselines": "probformer.models.transformer",
    "probformer.encoder": "probformer.models.encoder",
    "probformer.energy": "probformer.crf.energy",
    "probformer.evidence": "probformer.crf.evidence",
    "probformer.heads": "probformer.models.readout",
    "probformer.inference": "probformer.crf.inference",
    "probformer.normalisers": "probformer.crf.normalisers",
    "probformer.posterior": "probformer.crf.posterior",
    "probformer.reference": "probformer.crf.reference",
    "probformer.training.predict": "probformer.runs.prediction",
    "probformer.training.run_folder": "probformer.runs.run_folder",
}


class _OldPaths(MetaPathFinder, Loader):
    """Finds the module itself, not a copy, so that its classes are the same under both paths."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(MOVED[spec.name])
        spec.loader_state = module.__spec__  # the import system replaces it after this call
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state


def keep_old_paths() -> None:
    sys.meta_path.append(_OldPaths())
