"""The factors of the conditional random field and their messages."""

from probformer.crf.potentials.arc_labels import ArcLabels
from probformer.crf.potentials.combined import Potentials, as_potentials, build_potentials
from probformer.crf.potentials.factor import Factor, Variable
from probformer.crf.potentials.global_features import Global
from probformer.crf.potentials.root import Root
from probformer.crf.potentials.word_potential import WordPotential
from probformer.crf.potentials.words import UV, UVW, Full, Rotary, SharedUV

__all__ = [
    "UV",
    "UVW",
    "ArcLabels",
    "Factor",
    "Full",
    "Global",
    "Potentials",
    "Root",
    "Rotary",
    "SharedUV",
    "Variable",
    "WordPotential",
    "as_potentials",
    "build_potentials",
]
