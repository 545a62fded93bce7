"""Joint choice of the five COGS tags of a word, among the combinations in the training data.

Tags constrain each other: a word with a role has a parent, for example, and a name has no article.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Pattern(NamedTuple):
    """Three tags of a word, and whether it has the other two, whose values are too many to list."""

    role: str
    category: str
    noun_type: str
    has_verb_name: bool
    has_parent: bool


def likeliest_together(
    logits: Mapping[str, Tensor],
    patterns: Sequence[Pattern],
    number_of: Callable[[str, str], int],
    none: Mapping[str, int],
) -> dict[str, Tensor]:
    """The most probable classes that fit one of the patterns.

    Args:
        logits: (B, n, classes) by tag.
        patterns: The combinations of tags that are allowed.
        number_of: The class number of a tag and a name.
        none: For "verb_name" and "parent", the class number of having none; a tag that every
            pattern has may be left out.

    Returns:
        Class numbers (B, n) by tag.
    """
    scores = {tag: x.float().log_softmax(-1) for tag, x in logits.items()}
    device, classes, choices = scores["role"].device, {}, {}
    total = scores["role"].new_zeros(*scores["role"].shape[:2], len(patterns))
    for tag in ("role", "category", "noun_type"):
        names = [getattr(pattern, tag) for pattern in patterns]
        classes[tag] = torch.tensor([number_of(tag, name) for name in names], device=device)
        total += scores[tag][..., classes[tag]]
    for tag in ("verb_name", "parent"):
        without = torch.tensor([none[tag]] if tag in none else [], device=device, dtype=torch.long)
        score, number = scores[tag].index_fill(-1, without, -torch.inf).max(-1)
        choices[tag] = torch.stack([torch.full_like(number, none.get(tag, 0)), number], -1)
        both = torch.stack([scores[tag][..., none.get(tag, 0)], score], -1)
        has = [int(getattr(pattern, f"has_{tag}")) for pattern in patterns]
        classes[tag] = torch.tensor(has, device=device)
        total += both[..., classes[tag]]
    best = total.argmax(-1)
    chosen = {tag: classes[tag][best] for tag in classes}
    for tag, choice in choices.items():
        chosen[tag] = choice.gather(-1, chosen[tag].unsqueeze(-1)).squeeze(-1)
    return {tag: chosen[tag] for tag in logits}
