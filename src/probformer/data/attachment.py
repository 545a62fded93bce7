"""Attachment scores of dependency parses, as in the evaluation of the CoNLL 2018 shared task.

The words of a sentence are given, not predicted. Words without a gold head are not counted.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probformer.data.spans import f1
from probformer.errors import require
from probformer.sentinels import UNOBSERVED

_CONTENT = """
nsubj obj iobj csubj ccomp xcomp obl vocative expl dislocated advcl advmod discourse nmod appos
nummod acl amod conj fixed flat compound list parataxis orphan goeswith reparandum root dep
"""
CONTENT_LABELS = frozenset(_CONTENT.split())
"""The labels, without subtypes, of the words that CLAS counts."""

_OF_HEADS = ("uas", "uas_nopunct")
_OF_LABELS = ("las", "las_nopunct", "las_subtypes")


def count_attachments(
    gold_heads: Sequence[int] | NDArray[np.int64],
    gold_labels: Sequence[str] | None,
    heads: Sequence[int] | NDArray[np.int64],
    labels: Sequence[str] | None,
    punctuation: Sequence[bool] | NDArray[np.bool_],
) -> dict[str, float]:
    """The counts of a sentence; those of several sentences add up.

    Args:
        gold_heads: n values: the position of each word's head, `sentinels.ROOT`, or
            `sentinels.UNOBSERVED` for a word that is not to be counted.
        gold_labels: The label of each word's arc, if known.
        heads: The predicted heads.
        labels: The predicted labels, if there are any.
        punctuation: Whether each word is punctuation; see `is_punctuation`.

    Returns:
        Counts from which `attachment_scores` computes shares. Labels are counted if both gold and
        predicted labels are given.

    Raises:
        InputError: An argument does not have n values.
    """
    n = len(gold_heads)
    given = {"gold_labels": gold_labels, "heads": heads, "labels": labels}
    for name, values in {**given, "punctuation": punctuation}.items():
        found = n if values is None else len(values)
        message = f"{name} must have {n} values, one for each word, got {found}"
        require(found == n, message)
    known = np.array([head != UNOBSERVED for head in gold_heads], dtype=bool)
    no_punctuation = known & ~np.asarray(punctuation, dtype=bool)
    right = known & _equal(gold_heads, heads)
    counts = {
        "uas_right": right,
        "uas_words": known,
        "uas_nopunct_right": right & no_punctuation,
        "uas_nopunct_words": no_punctuation,
    }
    if gold_labels is not None and labels is not None:
        gold_types, types = without_subtypes(gold_labels), without_subtypes(labels)
        labelled = right & _equal(gold_types, types)
        content = known & _content(gold_types)
        counts |= {
            "las_right": labelled,
            "las_words": known,
            "las_nopunct_right": labelled & no_punctuation,
            "las_nopunct_words": no_punctuation,
            "las_subtypes_right": right & _equal(gold_labels, labels),
            "las_subtypes_words": known,
            "clas_right": labelled & content,
            "clas_gold": content,
            "clas_predicted": known & _content(types),
        }
    return {name: float(counted.sum()) for name, counted in counts.items()}


def attachment_scores(counts: Mapping[str, float]) -> dict[str, float]:
    """Attachment scores from counts.

    Args:
        counts: Sums over sentences of what `count_attachments` returns; zero for a name that is in
            none of them.

    Returns:
        Shares from 0 to 1, 0 where there is nothing to count. Those of labels are there if labels
        were counted:

        - "uas": words with the right head;
        - "las": words with the right head and label, of which subtypes, as in "nsubj:pass", are
          ignored;
        - "uas_nopunct", "las_nopunct": the same without punctuation;
        - "las_subtypes": LAS where the subtype must be right, too;
        - "clas": F1 of words whose label is in `CONTENT_LABELS`. Precision is a share of the words
          with such a predicted label, recall of those with such a gold label.
    """

    def shares(names: Sequence[str]) -> dict[str, float]:
        return {name: counts[f"{name}_right"] / max(counts[f"{name}_words"], 1) for name in names}

    if "las_words" not in counts:
        return shares(_OF_HEADS)
    clas = f1(*(counts[f"clas_{what}"] for what in ("right", "predicted", "gold")))
    return {**shares(_OF_HEADS), **shares(_OF_LABELS), "clas": clas}


def is_punctuation(words: Sequence[str], upos: Sequence[str] | None = None) -> NDArray[np.bool_]:
    """(n,): by the universal tag, or by the characters where there is none ("_")."""
    tags = ["_"] * len(words) if upos is None else upos
    return np.array(
        [
            all(unicodedata.category(sign).startswith("P") for sign in word)
            if tag == "_"
            else tag == "PUNCT"
            for word, tag in zip(words, tags, strict=True)
        ],
        dtype=bool,
    )


def without_subtypes(labels: Sequence[str]) -> list[str]:
    """The universal relations: "nsubj" of "nsubj:pass"."""
    return [label.partition(":")[0] for label in labels]


def _content(types: Sequence[str]) -> NDArray[np.bool_]:
    return np.array([kind in CONTENT_LABELS for kind in types], dtype=bool)


def _equal(gold: Sequence[Any] | NDArray[Any], found: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    return np.array([a == b for a, b in zip(gold, found, strict=True)], dtype=bool)
