"""The forms of the English verbs and nouns in the built-in corpus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


def words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


_IRREGULAR_S = {"man": "men", "have": "has", "do": "does"}
_DOUBLED = frozenset(words("run plan ship dog man regret cut set put let shut"))
"""Verbs that double their last letter before "ed" and "ing"."""
_IRREGULAR_PAST = {  # past tense, past participle
    "run": ("ran", "run"),
    "light": ("lit", "lit"),
    "buy": ("bought", "bought"),
    "show": ("showed", "shown"),
    "give": ("gave", "given"),
    "lend": ("lent", "lent"),
    "send": ("sent", "sent"),
    "think": ("thought", "thought"),
    "say": ("said", "said"),
    "know": ("knew", "known"),
    "feel": ("felt", "felt"),
    "mean": ("meant", "meant"),
    "fight": ("fought", "fought"),
    "build": ("built", "built"),
    "fly": ("flew", "flown"),
    "drink": ("drank", "drunk"),
    "make": ("made", "made"),
    "have": ("had", "had"),
    "do": ("did", "done"),
    **{verb: (verb, verb) for verb in ("cut", "set", "put", "let", "shut", "read")},
}


def with_s(word: str) -> str:
    """The plural of a noun, or the third person of a verb: the same form for both."""
    if word in _IRREGULAR_S:
        return _IRREGULAR_S[word]
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def _with_ed(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return _stem(word) + "ed"


def _stem(word: str) -> str:
    return word + word[-1] if word in _DOUBLED else word.removesuffix("e")


@dataclass(frozen=True)
class Verb:
    """A verb, the objects it takes and the opinion it voices."""

    base: str
    objects: tuple[str, ...] = ()
    """The kinds of nouns that can be its object."""
    sign: int = 0
    """The opinion it voices: 1, 0 or -1."""

    def form(self, xpos: str) -> str:
        """The form with this tag: VB, VBP, VBZ, VBD, VBN or VBG."""
        return self._forms[xpos]

    @cached_property
    def _forms(self) -> dict[str, str]:
        regular = _with_ed(self.base)
        past, participle = _IRREGULAR_PAST.get(self.base, (regular, regular))
        return {
            "VB": self.base,
            "VBP": self.base,
            "VBZ": with_s(self.base),
            "VBD": past,
            "VBN": participle,
            "VBG": _stem(self.base) + "ing",
        }


def verbs(line: str, objects: tuple[str, ...] = (), sign: int = 0) -> tuple[Verb, ...]:
    return tuple(Verb(base, objects, sign) for base in words(line))
