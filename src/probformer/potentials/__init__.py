"""The factors of the conditional random field and their messages."""

from probformer.potentials.extras import Global, Root
from probformer.potentials.model import Potentials, build_potentials
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
    "build_potentials",
]
