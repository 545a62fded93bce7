"""The public name of `probformer.crf.decoding`: trees from probabilities of heads."""

from probformer.crf.decoding import *  # noqa: F403
