"""A tree over words, given by the head of each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from probformer.errors import counted, require
from probformer.sentinels import ROOT
from probformer.viz.arc_layout import Arc
from probformer.viz.arcs import Arcs, Panel
from probformer.viz.numbers import Floats, as_array, check_labels, check_probabilities, check_words


def tree(
    words: Sequence[str],
    heads: Any,
    labels: Sequence[str] | None = None,
    *,
    head_probabilities: Any = None,
    label_probabilities: Any = None,
    probabilities: bool = False,
) -> Arcs:
    """A tree over the words, such as a gold tree or a predicted one.

    Args:
        words: The n words of a sentence.
        heads: (n,) positions, from 0; −1 is ROOT. A word with another negative number has no arc.
        labels: n texts, the label of the arc to each word; "" for none.
        head_probabilities: (n,), by default 1: arcs are drawn as strong as they are likely.
        label_probabilities: (n,): the probability of each label, given its arc.
        probabilities: Whether to write those of heads at the arcs.

    Returns:
        One panel.

    Raises:
        InputError: Lengths do not fit, a head is no other word, or numbers are no probabilities.
    """
    check_words(words)
    n = len(words)
    places = _of_words("heads", heads, n)
    for word, head in enumerate(places):
        right = float(head).is_integer() and head < n and head != word
        message = f"heads must be other words, or -1 for ROOT, got {head:g} for word {word}"
        require(right, message)
    texts = [""] * n if labels is None else list(labels)
    require(len(texts) == n, f"labels must be {counted(n, 'text')}, got {len(texts)}")
    check_labels(texts)
    certain = np.ones(n) if head_probabilities is None else head_probabilities
    of_heads = _probabilities("head_probabilities", certain, n)
    of_labels: list[float | None] = [None] * n
    if label_probabilities is not None:
        of_labels = [*_probabilities("label_probabilities", label_probabilities, n).tolist()]
    arcs = tuple(
        Arc(
            word,
            None if head == ROOT else int(head),
            float(of_heads[word]),
            texts[word],
            of_labels[word],
        )
        for word, head in enumerate(places)
        if head >= ROOT
    )
    return Arcs(tuple(words), (Panel(arcs),), " ".join(words), probabilities)


def _of_words(name: str, given: Any, n: int) -> Floats:
    values = as_array(name, given)
    require(values.shape == (n,), f"{name} must have the shape ({n},), got {values.shape}")
    return values


def _probabilities(name: str, given: Any, n: int) -> Floats:
    values = _of_words(name, given, n)
    check_probabilities(name, values)
    return values
