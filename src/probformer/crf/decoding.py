"""Decoding: from the log probabilities of heads to a tree, or to one head for each word.

`scores[i, j]` is log P(word j heads word i), `root[i]` is log P(ROOT heads word i). Without `root`
any word may be the root of the tree, all with the probability 1/n.

The result has the largest sum of scores, so other scores may be given, together with `root`. Those
of a model of trees give its most probable tree. Marginal probabilities, without the logarithm, give
the tree with the largest expected number of right heads (minimum Bayes risk).

A tree has a forbidden arc (−∞) only if every tree has one, and then as few as possible. Decoding is
deterministic: ties are always broken the same way.

Internally the weight of an arc is a complex number, since NumPy compares those by the real part
first: the real part counts forbidden arcs, the imaginary part is the score. A large negative
penalty within the score would cost the others their precision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probformer.errors import require, require_one_of
from probformer.sentinels import ROOT

__all__ = ["DECODERS", "ROOT", "argmax_heads", "decode", "projective_tree", "spanning_tree"]

DECODERS = ("argmax", "tree", "projective")

_LARGEST = 900
"""Scores above 2^900 are scaled down, so that their sums stay below 2^1024, where floats end."""

_Weights = NDArray[np.complex128]
_Ints = NDArray[np.int64]


def decode(
    scores: ArrayLike,
    root: ArrayLike | None = None,
    decoder: str = "tree",
    single_root: bool = True,
) -> _Ints:
    """The head of each word, by one of three decoders.

    Args:
        scores: (n, n), log P(word j heads word i) in row i.
        root: (n,), log P(ROOT heads word i).
        decoder: "argmax", "tree" (`spanning_tree`) or "projective" (`projective_tree`).
        single_root: Whether a tree has exactly one word under ROOT.

    Returns:
        (n,): the index of each word's head, −1 for ROOT.

    Raises:
        InputError: Shapes do not fit, scores are NaN or +∞, or the decoder does not exist.
    """
    require_one_of("decoder", decoder, DECODERS)
    if decoder == "argmax":
        return argmax_heads(scores, root)
    find = spanning_tree if decoder == "tree" else projective_tree
    return find(scores, root, single_root)


def argmax_heads(scores: ArrayLike, root: ArrayLike | None = None) -> _Ints:
    """The best head of each word independently; the result may have cycles.

    Args:
        scores: (n, n), log P(word j heads word i) in row i.
        root: (n,), log P(ROOT heads word i). Without it heads are words, except in a sentence of
            one word, whose head is ROOT.

    Returns:
        (n,): the index of each word's head, −1 for ROOT.
    """
    arcs = _arcs(scores, root)
    if root is None and len(arcs) > 2:
        arcs[:, 0] = -np.inf
    return arcs[1:].argmax(1) - 1


def spanning_tree(
    scores: ArrayLike, root: ArrayLike | None = None, single_root: bool = True
) -> _Ints:
    """The best tree, by the algorithm of Chu and Liu, and of Edmonds.

    Args:
        scores: (n, n), log P(word j heads word i) in row i.
        root: (n,), log P(ROOT heads word i).
        single_root: Whether the tree has exactly one word under ROOT.

    Returns:
        (n,): the index of each word's head, −1 for ROOT.
    """
    arcs = _arcs(scores, root)
    if single_root:
        arcs[:, 0] -= len(arcs)  # a second root is worse than n forbidden arcs
    return _arborescence(arcs)[1:] - 1


def projective_tree(
    scores: ArrayLike, root: ArrayLike | None = None, single_root: bool = True
) -> _Ints:
    """The best tree without crossing arcs, by the algorithm of Eisner.

    Args:
        scores: (n, n), log P(word j heads word i) in row i.
        root: (n,), log P(ROOT heads word i).
        single_root: Whether the tree has exactly one word under ROOT.

    Returns:
        (n,): the index of each word's head, −1 for ROOT.
    """
    return _eisner(_arcs(scores, root), single_root)[1:] - 1


def _arcs(scores: ArrayLike, root: ArrayLike | None) -> _Weights:
    """(n+1, n+1) with ROOT as word 0; −∞ where no arc can be, finite elsewhere."""
    words = np.asarray(scores, dtype=float)
    n = len(words) if words.ndim else 0
    require(words.shape == (n, n), f"scores must be of shape (n, n), got {words.shape}")
    require(n > 0, "a sentence must have words, got none")
    top = np.full(n, -np.log(n)) if root is None else np.asarray(root, dtype=float)
    require(top.shape == (n,), f"root must be of shape ({n},), got {top.shape}")
    given = np.zeros((n + 1, n + 1))
    given[1:, 1:], given[1:, 0] = words, top
    np.fill_diagonal(given, 0)
    require(
        not (np.isnan(given) | (given == np.inf)).any(), "scores must be numbers below infinity"
    )
    forbidden = np.isneginf(given)
    given[forbidden] = 0
    _, exponent = np.frexp(np.abs(given).max())
    given = np.ldexp(given, min(0, _LARGEST - exponent))  # else sums could be infinite
    arcs = 1j * given - forbidden
    arcs[0] = -np.inf
    np.fill_diagonal(arcs, -np.inf)
    return arcs


def _arborescence(arcs: _Weights) -> _Ints:
    """Take the best head of each word; contract a cycle to one word, and repeat."""
    arcs, contracted = arcs.copy(), []
    while (cycle := _find_cycle(heads := arcs.argmax(1))) is not None:
        # The cycle's first word now represents all of it: as a head with the weights of its best
        # member, as a dependent with those of the member that gains most by leaving the cycle.
        leaving = arcs[cycle] - arcs[cycle, heads[cycle]][:, None]
        contracted.append((cycle, heads[cycle], leaving.argmax(0), arcs[:, cycle].argmax(1)))
        first = cycle[0]
        arcs[:, first], arcs[first] = arcs[:, cycle].max(1), leaving.max(0)
        arcs[first, first] = arcs[cycle[1:]] = arcs[:, cycle[1:]] = -np.inf
    for cycle, inner, leaves, best_head in reversed(contracted):
        entered_from = heads[cycle[0]]
        below = np.flatnonzero(heads == cycle[0])
        heads[below] = cycle[best_head[below]]
        heads[cycle] = inner
        heads[cycle[leaves[entered_from]]] = entered_from
    return heads


def _find_cycle(heads: _Ints) -> _Ints | None:
    """The words of a cycle; word 0 is the root."""
    known = heads.tolist()
    walk = [0] * len(known)  # the walk on which a word was first seen
    for start in range(1, len(known)):
        word = start
        while word and not walk[word]:
            walk[word] = start
            word = known[word]
        if word and walk[word] == start:
            cycle = [word]
            while (word := known[word]) != cycle[0]:
                cycle.append(word)
            return np.array(cycle)
    return None


def _eisner(arcs: _Weights, single_root: bool) -> _Ints:
    """Chart parsing: all spans of a width at once.

    A span is complete if its head has all its dependents in it, and open if its ends are head and
    dependent. Scores are kept by a span's width and its start, or its end, so that all ways to
    split the spans of a width are slices of a chart.
    """
    m = len(arcs)
    # Complete spans with their head on the left (right), by start and by end.
    left_by_start, left_by_end, right_by_start, right_by_end = np.zeros((4, m, m), complex)
    open_left, open_right = np.zeros((2, m, m), complex)  # by the end at which the head is
    splits = np.zeros((3, m, m), dtype=np.int64)  # open; complete, head on the left; on the right
    for width in range(1, m):
        start, end = np.arange(m - width), np.arange(width, m)
        shrinking = slice(width - 1, None, -1)  # widths down to 0
        both = left_by_start[:-width, :width] + right_by_end[width:, shrinking]
        if single_root:
            both[0, 1:] = -np.inf  # nothing hangs from the root before this one
        splits[0, start, end] = start + both.argmax(1)
        best = both.max(1)
        open_left[:-width, width] = best + arcs[end, start]
        open_right[width:, width] = best + arcs[start, end]
        from_left = open_left[:-width, 1 : width + 1] + left_by_end[width:, shrinking]
        splits[1, start, end] = start + 1 + from_left.argmax(1)
        left_by_start[:-width, width] = left_by_end[width:, width] = from_left.max(1)
        from_right = open_right[width:, 1 : width + 1] + right_by_start[:-width, shrinking]
        splits[2, start, end] = end - 1 - from_right.argmax(1)
        right_by_start[:-width, width] = right_by_end[width:, width] = from_right.max(1)
    return _heads_from(splits)


def _heads_from(splits: _Ints) -> _Ints:
    """Backtrack through the splits of a chart from the whole sentence."""
    heads = np.zeros(len(splits[0]), dtype=np.int64)
    complete = [(0, len(heads) - 1, True)]  # start, end, whether the head is the start
    while complete:
        start, end, on_left = complete.pop()
        if start == end:
            continue
        if on_left:
            at = splits[1, start, end]
            complete.append((at, end, True))
            heads[at], end = start, at
        else:
            at = splits[2, start, end]
            complete.append((start, at, False))
            heads[at], start = end, at
        inner = splits[0, start, end]
        complete += [(start, inner, True), (inner + 1, end, False)]
    return heads
