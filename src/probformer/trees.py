"""From probabilities of heads to trees, under its public name: see `probformer.analysis.trees`."""

from probformer.analysis.trees import *  # noqa: F403
