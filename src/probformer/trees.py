"""The public name of `probformer.analysis.trees`: trees from probabilities of heads."""

from probformer.analysis.trees import *  # noqa: F403
