"""Starting from the encoder of another run: `train --init`."""

from __future__ import annotations

import torch

from probformer.errors import counted, require
from probformer.runs.run_folder import Run


def copy_encoder(run: Run, source: Run) -> str:
    """Copy another run's encoder into this run's; words are matched by their spelling.

    Returns:
        A sentence about what was copied.

    Raises:
        InputError: A parameter of the source is missing here, or has another shape.
    """
    encoder, other = run.model.encoder, source.model.encoder
    words, other_words = encoder.embedding, other.embedding
    own = {name: p for name, p in encoder.named_parameters() if p is not words.weight}
    given = {name: p for name, p in other.named_parameters() if p is not other_words.weight}
    fresh = sorted({*own} - {*given})
    for name in sorted(given):
        shapes = [tuple(side[name].shape) if name in side else "none" for side in (own, given)]
        message = f"{name} has shape {shapes[0]}, in the run to start from {shapes[1]}"
        require(shapes[0] == shapes[1], f"the encoder to start from does not fit: {message}")
    special = (run.vocabulary.unk, run.vocabulary.mask)
    matched = 0
    with torch.no_grad():
        for name, parameter in given.items():
            own[name].copy_(parameter)
        for index, word in enumerate(run.vocabulary.words):
            if word in source.vocabulary:
                words.weight[index] = other_words.weight[source.vocabulary.id_of(word)]
                matched += index not in special
    left = len(run.vocabulary) - len(special) - matched
    new = f"; parameters not in it: {', '.join(fresh)}" if fresh else ""
    return f"started from an encoder: {counted(matched, 'word')} matched, {left:,} are new{new}"
