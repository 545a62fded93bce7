"""The factors of the model, under their public name; they live in `probformer.crf.potentials`."""

from probformer.crf.potentials import *  # noqa: F403
from probformer.crf.potentials import __all__ as __all__
