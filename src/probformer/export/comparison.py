"""Comparison of an exported file with the model in PyTorch, on random batches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from probformer.errors import InputError
from probformer.models.readout import Model
from probformer.runs.run_folder import Run

Outputs = dict[str, Tensor]
Function = Callable[[Tensor, Tensor], Outputs]
"""Words and mask (B, n) -> outputs by name."""
Example = tuple[Tensor, Tensor, Outputs]
"""Words, mask, and the outputs of PyTorch."""

TOLERANCE = 1e-4
"""Largest difference of an output, relative to its largest absolute value if that is above 1."""
_LENGTHS, _BATCH_SIZES = (1, 2, 3, 4, 5, 8, 13, 21, 34, 60), (1, 2, 5)


def lengths_of(model: Model) -> list[int]:
    """Sentence lengths to compare, none longer than the model takes."""
    longest = model.encoder.settings.max_words or max(_LENGTHS)
    return sorted({min(n, longest) for n in _LENGTHS})


def random_batch(run: Run, sentences: int, longest: int) -> tuple[Tensor, Tensor]:
    """Words and mask (sentences, longest); the first sentence has no padding."""
    random = torch.Generator().manual_seed(sentences * 1000 + longest)
    words = torch.randint(len(run.vocabulary), (sentences, longest), generator=random)
    lengths = torch.randint(1, longest + 1, (sentences, 1), generator=random)
    lengths[0] = longest
    return words, torch.arange(longest) < lengths


@torch.no_grad()
def expected_outputs(run: Run, model: nn.Module) -> list[Example]:
    """The outputs of the model in PyTorch for batches of all sizes and lengths."""
    batches = [random_batch(run, b, n) for n in lengths_of(run.model) for b in _BATCH_SIZES]
    return [(words, mask, model(words, mask)) for words, mask in batches]


@torch.no_grad()
def largest_difference(expected: list[Example], exported: Function, name: str) -> float:
    """The largest difference of a file's outputs from the expected ones, as in `TOLERANCE`.

    Raises:
        InputError: It is above the tolerance.
    """
    worst = 0.0
    for words, mask, outputs in expected:
        found = exported(words, mask)
        for key, value in outputs.items():
            scale = max(1.0, float(value.abs().max()))
            difference = float((found[key] - value).abs().max()) / scale
            worst = max(worst, difference)
            if not difference <= TOLERANCE:  # true for NaN
                shape = f"{words.shape[0]} sentences of up to {words.shape[1]} words"
                wrong = f"{key} would differ from PyTorch by {difference:.1e} for {shape}"
                raise InputError(f"{name}: {wrong}, so it was not written")
    return worst
