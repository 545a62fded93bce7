"""The words of the built-in corpus, their forms, what goes with what, and phrases of them.

Most verbs are nouns too ("walk", "plan", "guard"), most past tenses participles, several
adjectives nouns, verbs or adverbs, and most names name both a person and a place or an
organisation: a word alone seldom says what it is. The classes keep the sentences sensible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from probformer.data.sentence import NO_HEAD


@dataclass(frozen=True)
class Token:
    word: str
    upos: str
    xpos: str
    entity: str = "O"


@dataclass(frozen=True)
class Phrase:
    tokens: tuple[Token, ...]
    heads: tuple[int, ...]
    """Positions in the phrase; `NO_HEAD` for the one word that heads it."""
    plural: bool = False
    polarity: int = 0
    """The opinion it voices: 1, 0 or -1."""


def word(form: str, upos: str, xpos: str, plural: bool = False) -> Phrase:
    return Phrase((Token(form, upos, xpos),), (NO_HEAD,), plural)


def attach(head: Phrase, before: Sequence[Phrase] = (), after: Sequence[Phrase] = ()) -> Phrase:
    """All phrases in order, the others depending on the head; it stays what the phrase is."""
    parts = [*before, head, *after]
    starts = list(accumulate((len(part.tokens) for part in parts), initial=0))
    top = starts[len(before)] + head.heads.index(NO_HEAD)
    heads: list[int] = []
    for i, (start, part) in enumerate(zip(starts, parts, strict=False)):
        outer = NO_HEAD if i == len(before) else top
        heads += [outer if h == NO_HEAD else start + h for h in part.heads]
    tokens = tuple(token for part in parts for token in part.tokens)
    return Phrase(tokens, tuple(heads), head.plural, head.polarity)


def as_entity(phrase: Phrase, kind: str) -> Phrase:
    """The phrase marked as one name of this kind, in BIOES."""
    last = len(phrase.tokens) - 1
    marks = ["S"] if last == 0 else ["B", *"I" * (last - 1), "E"]
    pairs = zip(phrase.tokens, marks, strict=True)
    return replace(phrase, tokens=tuple(replace(t, entity=f"{m}-{kind}") for t, m in pairs))


PERSON, ANIMAL, THING, FOOD = "person", "animal", "thing", "food"
PLACE, EVENT, ORGANISATION = "place", "event", "organisation"
COMMON_KINDS = (PERSON, ANIMAL, THING, FOOD, PLACE, EVENT)

NOUNS: dict[str, tuple[str, ...]] = {
    kind: tuple(words.split())
    for kind, words in {
        PERSON: "guide guard cook judge host coach local teacher woman child",
        ANIMAL: "dog cat horse fox",
        THING: "book light watch ship box",
        FOOD: "cake meal soup",
        PLACE: "store green square well house school park",
        EVENT: "walk talk dance visit plan work play report claim offer show study trade "
        "dream test love trust blame hope guess doubt fear",
    }.items()
}

_IRREGULAR_PLURALS = {"woman": "women", "child": "children"}

_IRREGULAR_PAST = {  # past tense, past participle
    "run": ("ran", "run"),
    "sleep": ("slept", "slept"),
    "plan": ("planned", "planned"),
    "travel": ("travelled", "travelled"),
    "ship": ("shipped", "shipped"),
    "light": ("lit", "lit"),
    "buy": ("bought", "bought"),
    "give": ("gave", "given"),
    "show": ("showed", "shown"),
    "lend": ("lent", "lent"),
    "send": ("sent", "sent"),
    "say": ("said", "said"),
    "know": ("knew", "known"),
    "think": ("thought", "thought"),
}


def with_s(word: str) -> str:
    """The plural of a noun, the third person of a verb: one form, which is half the ambiguity."""
    if word in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[word]
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def _with_ed(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


@dataclass(frozen=True)
class Verb:
    base: str
    objects: tuple[str, ...] = ()
    """The kinds of nouns it takes as its object."""
    sign: int = 1
    """What becomes of an opinion: the verb's own (like, hate), or its effect on its clause."""

    def form(self, xpos: str) -> str:
        """The form with this tag: VB, VBP, VBZ, VBD or VBN."""
        regular = _with_ed(self.base)
        past, participle = _IRREGULAR_PAST.get(self.base, (regular, regular))
        return {
            "VB": self.base,
            "VBP": self.base,
            "VBZ": with_s(self.base),
            "VBD": past,
            "VBN": participle,
        }[xpos]


def _verbs(words: str, objects: tuple[str, ...] = (), sign: int = 1) -> tuple[Verb, ...]:
    return tuple(Verb(word, objects, sign) for word in words.split())


MOTION = _verbs("walk run travel")
INTRANSITIVE: dict[str, tuple[Verb, ...]] = {
    PERSON: _verbs("talk dance work dream rest play"),
    ANIMAL: _verbs("sleep rest play"),
}
TRANSITIVE = (
    *_verbs("visit", (PERSON, PLACE)),
    *_verbs("help watch", (PERSON, ANIMAL)),
    *_verbs("guide coach judge", (PERSON,)),
    *_verbs("guard light", (PLACE,)),
    *_verbs("open clean", (PLACE, THING)),
    *_verbs("plan study report host", (EVENT,)),
    *_verbs("cook", (FOOD,)),
    *_verbs("book", (PLACE, EVENT)),
    *_verbs("house school", (PERSON,)),
    *_verbs("box", (THING, FOOD)),
    *_verbs("ship store test", (THING, FOOD)),
)
TRADING = (
    *_verbs("hire", (PERSON,)),
    *_verbs("buy trade", (THING, FOOD, PLACE)),
)
DITRANSITIVE = _verbs("give show offer lend send", (THING, FOOD))
COMPLEMENT = (*_verbs("say know think claim hope guess"), *_verbs("doubt deny", sign=-1))
CONTROL = (*_verbs("want plan hope offer"), *_verbs("refuse fail", sign=-1))
OPINION = (
    *_verbs("like love enjoy praise trust", COMMON_KINDS),
    *_verbs("hate fear dislike blame", COMMON_KINDS, sign=-1),
)

POSITIVE = ("good", "great", "fine", "nice")
NEGATIVE = ("bad", "awful", "poor", "dull")
POLARITY: dict[str, int] = {**dict.fromkeys(POSITIVE, 1), **dict.fromkeys(NEGATIVE, -1)}
PLAIN: dict[str, tuple[str, ...]] = {
    PERSON: ("old", "local", "fast", "late", "early"),
    ANIMAL: ("old", "young", "fast", "small"),
    THING: ("old", "new", "light", "square", "green", "clean"),
    FOOD: ("cold", "small", "light", "late", "early"),
    PLACE: ("old", "new", "local", "open", "clean", "cold"),
    EVENT: ("new", "early", "late", "open", "hard", "light"),
    ORGANISATION: ("old", "new", "small", "local"),
}

MANNER = ("well", "hard", "fast", "early", "late", "often", "slowly")
FREQUENCY = ("often", "always", "sometimes")
DEGREE = ("very", "quite", "too")
MODALS = ("will", "can", "may", "must", "should", "could")

PLACE_PREPOSITIONS = ("in", "near", "at", "behind", "beside")
TIME_PREPOSITIONS = ("before", "after", "during")
CONJUNCTIONS = ("although", "because", "before", "after", "when")

# Names of people that are also places, and surnames that are also organisations or places.
GIVEN = ("Jordan", "Florence", "Austin", "Chelsea", "Sydney", "Georgia", "Alice", "Hugo")
FAMILY = ("Lincoln", "Baker", "Hudson", "Ford", "Jordan", "Austin")
CITIES = ("Jordan", "Florence", "Austin", "Chelsea", "Sydney", "Lincoln", "Hudson", "Oslo")
FIRMS = ("Lincoln", "Baker", "Hudson", "Ford", "Chelsea")
PLACE_ENDINGS = ("Lake", "Hill", "Park")
FIRM_ENDINGS = ("Bank", "School", "Park")

NOT, NEVER = word("not", "PART", "RB"), word("never", "ADV", "RB")
TO, OF = word("to", "PART", "TO"), word("of", "ADP", "IN")
COMPLEMENTISER = word("that", "SCONJ", "IN")
BE = {"VB": "be", "VBN": "been", "VBZ": "is", "VBP": "are"}
HAVE = {"VBZ": "has", "VBP": "have", "VBD": "had"}
DO = {"VBZ": "does", "VBP": "do", "VBD": "did"}
SINGULAR_PRONOUNS = (("he", "him"), ("she", "her"), ("she", "her"))
PLURAL_PRONOUNS = (("they", "them"), ("we", "us"), ("you", "you"))
