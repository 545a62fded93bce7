"""What the graphs of a model say about heads: which channels form trees, or have labels."""

from __future__ import annotations

from collections.abc import Sequence

from probformer.config import EncoderSettings

_TREES = {"tree": "tree", "projective": "projective tree"}
"""By name of a structure, what the heads of a channel form."""


def tree_channels(settings: EncoderSettings) -> dict[str, list[int]]:
    """The channels whose heads form a tree, by the kind of tree."""
    found: dict[str, list[int]] = {}
    for channel in range(settings.channels):
        structure = settings.heads_of(channel)
        if isinstance(structure, str) and structure in _TREES:
            found.setdefault(_TREES[structure], []).append(channel)
    return found


def named(channels: Sequence[int]) -> str:
    """ "channel 0", "channels 0, 2", "channels 1 to 7"."""
    first, last = channels[0], channels[-1]
    if len(channels) == 1:
        return f"channel {first}"
    if last - first == len(channels) - 1 > 1:
        return f"channels {first} to {last}"
    return f"channels {', '.join(map(str, channels))}"


def one_label(settings: EncoderSettings) -> str:
    """The label of an arc, out of how many: a parser may take their number from its data."""
    assert settings.arc_labels is not None
    count = settings.arc_labels.count
    return f"the label of the arc, one of {'those in the data' if count is None else count}"
