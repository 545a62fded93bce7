"""Typed settings, from Python or TOML."""

from probformer.config.reading import from_dict, from_toml, to_dict
from probformer.config.settings import (
    EncoderSettings,
    FullSettings,
    GlobalSettings,
    Inference,
    PotentialSettings,
    RootSettings,
    RotarySettings,
    SharedUVSettings,
    TransformerSettings,
    UVSettings,
    UVWSettings,
)

__all__ = [
    "EncoderSettings",
    "FullSettings",
    "GlobalSettings",
    "Inference",
    "PotentialSettings",
    "RootSettings",
    "RotarySettings",
    "SharedUVSettings",
    "TransformerSettings",
    "UVSettings",
    "UVWSettings",
    "from_dict",
    "from_toml",
    "to_dict",
]
