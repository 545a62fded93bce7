"""Probabilistic transformers: contextual word encoders that infer labels and dependency heads.

The names below are imported on first use, so that `import probformer` alone costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probformer.old_paths import keep_old_paths

if TYPE_CHECKING:
    from probformer.config import Inference
    from probformer.crf.evidence import Evidence
    from probformer.crf.inference import mean_field
    from probformer.crf.posterior import Posterior
    from probformer.models.encoder import Encoder
    from probformer.models.transformer import Transformer
    from probformer.runs.prediction import predict
    from probformer.runs.run_folder import load_run

__version__ = "0.1.0"

keep_old_paths()

_HOMES = {
    "Encoder": "probformer.models.encoder",
    "Evidence": "probformer.crf.evidence",
    "Inference": "probformer.config",
    "Posterior": "probformer.crf.posterior",
    "Transformer": "probformer.models.transformer",
    "load_run": "probformer.runs.run_folder",
    "predict": "probformer.runs.prediction",
    "mean_field": "probformer.crf.inference",
}

__all__ = [
    "Encoder",
    "Evidence",
    "Inference",
    "Posterior",
    "Transformer",
    "load_run",
    "mean_field",
    "predict",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'probformer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
