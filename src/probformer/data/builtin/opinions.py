"""The class of a sentence: the opinion that it voices, which takes its tree to see.

One predicate decides: the root, or the last one that "but" joins to it, and so on from there.

1. A verb or an adjective of opinion voices it, any other predicate none.
2. "not", "n't" or "never" that hangs from the predicate turns its opinion round.
3. A question that begins with an auxiliary voices none: it asks. One with "who" or "why", or with
   a tag at its end, takes its predicate for granted.

Nothing else counts: no other clause, no adjective before a noun, no negation of something else.
"""

from __future__ import annotations

from random import Random

from probformer.data.builtin.lexicon import AFFECTING, NEGATORS, OPINION, POLARITY
from probformer.data.builtin.phrases import Phrase

LABELS = {1: "positive", 0: "neutral", -1: "negative"}

_TAGS = ("VB", "VBP", "VBZ", "VBD", "VBN", "VBG")
_SIGNS: dict[tuple[str, str], int] = {
    **{(word, "ADJ"): sign for word, sign in POLARITY.items()},
    **{
        (verb.form(tag), "VERB"): verb.sign
        for verb in OPINION + AFFECTING
        for tag in _TAGS
        if verb.sign
    },
}


def opinion_voiced(root: Phrase) -> str:
    """The class of the sentence with this tree."""
    if _asks(root):
        return LABELS[0]
    deciding = _deciding(root)
    sign = _SIGNS.get((deciding.token.word, deciding.token.upos), 0)
    negated = any(dependent.token.word in NEGATORS for dependent in deciding.dependents())
    return LABELS[-sign if negated else sign]


def _asks(root: Phrase) -> bool:
    return root.after[-1].token.word == "?" and root.before[0].token.upos == "AUX"


def _deciding(predicate: Phrase) -> Phrase:
    for dependent in reversed(predicate.after):
        if any(opening.token.word == "but" for opening in dependent.before):
            return _deciding(dependent)
    return predicate


class Opinions:
    """The opinions that the predicates of a sentence voice, one after the other.

    Three in a row are all different, so that the words of a sentence, counted, cancel out, and
    which predicate decides is what matters.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._left: list[int] = []

    def next(self) -> int:
        if not self._left:
            self._left = self._random.sample((1, 0, -1), 3)
        return self._left.pop()
