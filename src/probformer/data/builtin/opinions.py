"""The class of a sentence: the opinion that it voices, which depends on its tree.

One predicate decides: the root, or the last predicate that "but" joins to it, and so on from there.

1. A verb or an adjective of opinion voices it, any other predicate none.
2. A dependent "not", "n't" or "never" of the predicate reverses its opinion.
3. A question that begins with an auxiliary voices none. One with "who" or "why", or with a tag at
   its end, presupposes its predicate.

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
    if _is_open_question(root):
        return LABELS[0]
    deciding = _deciding(root)
    sign = _SIGNS.get((deciding.token.word, deciding.token.upos), 0)
    negated = any(dependent.token.word in NEGATORS for dependent in deciding.dependents())
    return LABELS[-sign if negated else sign]


def _is_open_question(root: Phrase) -> bool:
    return root.after[-1].token.word == "?" and root.before[0].token.upos == "AUX"


def _deciding(predicate: Phrase) -> Phrase:
    for dependent in reversed(predicate.after):
        if any(opening.token.word == "but" for opening in dependent.before):
            return _deciding(dependent)
    return predicate


class Opinions:
    """The opinions that the predicates of a sentence voice, in order.

    Three in a row are all different: the class of a sentence cannot be found by counting its words
    of opinion, and a model has to find the predicate that decides.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._left: list[int] = []

    def next(self) -> int:
        if not self._left:
            self._left = self._random.sample((1, 0, -1), 3)
        return self._left.pop()
