"""The factors of the conditional random field and their messages."""

from probformer.potentials.combined import Potentials, as_potentials, build_potentials
from probformer.potentials.global_features import Global
from probformer.potentials.root import Root
from probformer.potentials.words import UV, UVW, Full, Rotary, SharedUV, WordPotential

__all__ = [
    "UV",
    "UVW",
    "Full",
    "Global",
    "Potentials",
    "Root",
    "Rotary",
    "SharedUV",
    "WordPotential",
    "as_potentials",
    "build_potentials",
]
