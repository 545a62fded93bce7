"""Probabilistic transformers: contextual word encoders that infer labels and dependency heads.

The names below are imported on first use, so that `import probformer` alone costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probformer.baselines import Transformer
    from probformer.config import Inference
    from probformer.encoder import Encoder
    from probformer.evidence import Evidence
    from probformer.inference import mean_field
    from probformer.posterior import Posterior
    from probformer.training.predict import predict
    from probformer.training.run_folder import load_run

__version__ = "0.1.0"

_HOMES = {
    "Encoder": "probformer.encoder",
    "Evidence": "probformer.evidence",
    "Inference": "probformer.config",
    "Posterior": "probformer.posterior",
    "Transformer": "probformer.baselines",
    "load_run": "probformer.training.run_folder",
    "predict": "probformer.training.predict",
    "mean_field": "probformer.inference",
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
