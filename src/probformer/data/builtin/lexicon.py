"""The words of the built-in corpus, and which of them can occur together.

Most nouns are verbs too ("walk", "fear", "guard"), most past tenses participles, most adjectives
nouns, verbs or adverbs ("light", "fair", "pretty"), most prepositions particles or adverbs, and
most names name both a person and a place or an organisation. More than half of the words in a
text have more than one tag in the corpus.
"""

from __future__ import annotations

from functools import cache

from probformer.data.builtin.inflection import Verb, verbs, words
from probformer.data.builtin.phrases import word

PERSON, ANIMAL, THING, FOOD = "person", "animal", "thing", "food"
PLACE, EVENT, IDEA, ORGANISATION = "place", "event", "idea", "organisation"
COMMON_KINDS = (PERSON, ANIMAL, THING, FOOD, PLACE, EVENT, IDEA)
BEINGS, INANIMATE = (PERSON, ANIMAL), (THING, FOOD, PLACE, EVENT, IDEA)

NOUNS: dict[str, tuple[str, ...]] = {
    PERSON: words(
        "guide guard cook host coach nurse champion sponsor mentor mother bully boss fool local "
        "patient man"
    ),
    ANIMAL: words("dog fox duck fly hound"),
    THING: words("book light watch ship box can will cross present"),
    FOOD: words("drink roast toast stew"),
    PLACE: words("store green square well house school park flat camp farm base building"),
    EVENT: words(
        "walk talk dance visit play show run trade move fair fight march round foul meeting"
    ),
    IDEA: words(
        "plan report claim offer study dream test hope guess doubt promise right fine might work "
        "help love trust praise support honour value delight comfort charm "
        "fear blame hate dislike regret attack scorn shock scare harm wrong feeling"
    ),
}
MASS = frozenset(words("might work help praise trust support blame hate scorn harm comfort"))
"""Nouns without a plural."""
BARE = MASS | frozenset(words("walk talk dance play trade study hope doubt love honour fear"))
"""Nouns that need no article in the singular."""
WITH_CLAUSE = frozenset(words("report claim guess dream hope doubt fear promise feeling"))
"""Nouns that take a clause with "that"."""
WITH_INFINITIVE = frozenset(words("plan right offer hope promise dream"))
"""Nouns that take "to" and a verb phrase."""
COMPOUNDED = tuple(noun for kind in (PLACE, EVENT) for noun in NOUNS[kind])
"""Nouns that modify another noun: "the walk plans"."""

MOTION = verbs("walk run march move turn look fly")
INTRANSITIVE: dict[str, tuple[Verb, ...]] = {
    PERSON: verbs("talk dance work dream rest play drink fight duck camp farm"),
    ANIMAL: verbs("rest play drink fight duck"),
}
TRANSITIVE = (
    *verbs("guide coach", (PERSON, EVENT)),
    *verbs("guard", (PERSON, PLACE)),
    *verbs("host", (PERSON, EVENT)),
    *verbs("nurse", (PERSON, ANIMAL)),
    *verbs("visit", (PERSON, PLACE)),
    *verbs("watch", (PERSON, ANIMAL, EVENT)),
    *verbs("dog fox school house fine", (PERSON,)),
    *verbs("light cross farm build man", (PLACE,)),
    *verbs("open clean", (PLACE, THING)),
    *verbs("plan", (EVENT,)),
    *verbs("study test report present read", (IDEA,)),
    *verbs("set", (EVENT, IDEA)),
    *verbs("cook roast toast drink stew cool warm", (FOOD,)),
    *verbs("cut", (FOOD, EVENT)),
    *verbs("book", (PLACE, EVENT)),
    *verbs("box ship move", (THING,)),
)
OWNING = (*verbs("have", (ANIMAL, THING, FOOD, IDEA)), *verbs("do", (IDEA,)))
TRADING = (*verbs("hire", (PERSON,)), *verbs("buy trade", (THING, FOOD, PLACE)))
ANY_TRANSITIVE = TRANSITIVE + TRADING + OWNING
DITRANSITIVE = verbs("show offer hand promise lend", (THING, FOOD))
PHRASAL = tuple(
    (verb, particle)
    for particle, with_it in {
        "down": (*verbs("turn play", (IDEA,)), *verbs("run", (PERSON,)), *verbs("shut", (PLACE,))),
        "off": (*verbs("put call", (EVENT,)), *verbs("fight", (PERSON, ANIMAL))),
        "over": (*verbs("look", (IDEA,)), *verbs("turn", (THING,)), *verbs("run", (ANIMAL,))),
        "up": (*verbs("set", (EVENT,)), *verbs("box", (THING,)), *verbs("clean", (PLACE,))),
        "in": (*verbs("hand", (IDEA,)), *verbs("book", (PERSON,))),
    }.items()
    for verb in with_it
)
CAUSATIVE = verbs("let make")
AFFECTING = (
    *verbs("guide coach guard nurse test", (PERSON,)),
    *verbs("slow cut test open dull", (IDEA, EVENT)),
    *verbs("help charm delight comfort", (PERSON,), sign=1),
    *verbs("harm shock scare bore", (PERSON,), sign=-1),
)
"""Verbs with inanimate subjects."""
OPINION = (
    *verbs("like love praise trust support honour value", COMMON_KINDS, sign=1),
    *verbs("champion sponsor mentor mother", (PERSON,), sign=1),
    *verbs("hate fear dislike blame regret attack scorn", COMMON_KINDS, sign=-1),
    *verbs("bully boss fool hound", (PERSON,), sign=-1),
)
REPORTING = (
    *verbs("say know claim hope guess doubt report dream feel"),
    *verbs("like love trust", sign=1),
    *verbs("hate fear regret", sign=-1),
)
CONTROL = (
    *verbs("want plan hope offer fail mean promise"),
    *verbs("like love", sign=1),
    *verbs("hate fear", sign=-1),
)
OF_DOING = (*verbs("like love value", sign=1), *verbs("hate dislike regret", sign=-1))
"""Before "walking"."""


@cache
def with_sign(choices: tuple[Verb, ...], sign: int) -> tuple[Verb, ...]:
    return tuple(verb for verb in choices if verb.sign == sign)


@cache
def verbs_with_object(kind: str | None, sign: int) -> tuple[Verb, ...]:
    """Verbs that take an object of this kind, or of any if it is None, and voice this opinion."""
    choices = with_sign(TRANSITIVE + OPINION, sign)
    return tuple(verb for verb in choices if kind is None or kind in verb.objects)


GOOD, BAD = ("fine", "fair", "pretty", "good"), ("base", "foul", "dull", "bad")
GOOD_PEOPLE, BAD_PEOPLE = ("kind", "patient", "just"), ("mean", "cross", "ill")
GOOD_THINGS, BAD_THINGS = ("moving", "sound", "right"), ("flat", "boring", "wrong")
POLARITY: dict[str, int] = {
    **dict.fromkeys(GOOD + GOOD_PEOPLE + GOOD_THINGS, 1),
    **dict.fromkeys(BAD + BAD_PEOPLE + BAD_THINGS, -1),
}
PLAIN: dict[str, tuple[str, ...]] = {
    PERSON: ("local", "fast", "late", "early", "present"),
    ANIMAL: ("fast", "still", "slow"),
    THING: ("light", "square", "green", "clean", "open", "round"),
    FOOD: ("cool", "warm", "light", "late", "early"),
    PLACE: ("local", "open", "clean", "cool", "still", "even", "near"),
    EVENT: ("early", "late", "open", "hard", "light", "slow", "long", "past", "even"),
    IDEA: ("early", "late", "open", "hard", "light", "past", "long"),
    ORGANISATION: ("open", "local", "slow"),
}


@cache
def adjectives(kind: str, sign: int) -> tuple[str, ...]:
    """Adjectives that voice this opinion of a noun of this kind."""
    if sign == 0:
        return PLAIN[kind]
    if kind == PERSON:
        return GOOD + GOOD_PEOPLE if sign > 0 else BAD + BAD_PEOPLE
    return GOOD + GOOD_THINGS if sign > 0 else BAD + BAD_THINGS


MANNER = words("well hard fast early late right wrong fair flat fine ill foul before")
FREQUENCY = ("still", "just", "even", "once")
DEGREE = ("pretty", "that", "just", "even")
MODALS = ("will", "can", "would", "might", "should")

PLACE_PREPOSITIONS = ("in", "near", "by", "past", "off", "round")
PATHS = ("down", "up", "over", "in", "by", "off", "past", "round")
"""Prepositions after verbs of motion, and adverbs where no noun follows."""
TIME_PREPOSITIONS = ("before", "after", "during")
CONJUNCTIONS = ("although", "because", "before", "after", "once", "when")

# Names of people that are also places, and surnames that are also organisations or places.
GIVEN = ("Jordan", "Florence", "Austin", "Chelsea", "Sydney", "Georgia", "Alice", "Hugo")
FAMILY = ("Lincoln", "Baker", "Hudson", "Ford", "Jordan", "Austin")
CITIES = ("Jordan", "Florence", "Austin", "Chelsea", "Sydney", "Lincoln", "Hudson", "Oslo")
FIRMS = ("Lincoln", "Baker", "Hudson", "Ford", "Chelsea")
PLACE_ENDINGS = ("Lake", "Hill", "Park")
FIRM_ENDINGS = ("Bank", "School", "Park")

NOT, N_T = word("not", "PART", "RB"), word("n't", "PART", "RB")
NEVER = word("never", "ADV", "RB")
NEGATORS = frozenset({"not", "n't", "never"})
TO, OF = word("to", "PART", "TO"), word("of", "ADP", "IN")
COMPLEMENTISER = word("that", "SCONJ", "IN")
COMMA = word(",", "PUNCT", ",")
POSSESSIVE = word("'s", "PART", "POS")
SHORT = {"is": "'s", "has": "'s", "had": "'d", "would": "'d"}
BE = {"VB": "be", "VBN": "been", "VBZ": "is", "VBP": "are"}
HAVE = {"VBZ": "has", "VBP": "have", "VBD": "had"}
DO = {"VB": "do", "VBZ": "does", "VBP": "do", "VBD": "did"}
NEVER_WITH_N_T = frozenset({"can", "will"})
"""Auxiliaries that would change before it: "ca n't", "wo n't"."""
SINGULAR_PRONOUNS = (("he", "him"), ("she", "her"), ("she", "her"))
PLURAL_PRONOUNS = (("they", "them"), ("we", "us"), ("you", "you"))
