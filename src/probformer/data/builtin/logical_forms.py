"""The fragment of the grammar that COGS' notation expresses, with its logical forms.

A logical form lists definite nouns first, then every noun, role and modifier by the position of
its word: "The dog liked a cat ." is "* dog ( x _ 1 ) ; like . agent ( x _ 2 , x _ 1 ) AND like .
theme ( x _ 2 , x _ 4 ) AND cat ( x _ 4 )". A name stands for itself.

Generalisation means a word in a role it never has in training, or a structure deeper or in
another place. The held-out words are in training, in their other role.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from probformer.data.builtin.lexicon import Verb
from probformer.data.sentence import Sentence

OBJECT_ONLY, SUBJECT_ONLY = "fox", "farmer"
PASSIVE_ONLY, ACTIVE_ONLY = Verb("guard"), Verb("coach")
TO_ONLY, DOUBLE_OBJECT_ONLY = Verb("lend"), Verb("send")

TRAIN_DEPTH = 2
"""How many prepositional phrases, or complement clauses, training has inside each other."""
DEEPEST = 5


def _nouns(words: str) -> tuple[str, ...]:
    return tuple(words.split())


def _verbs(words: str) -> tuple[Verb, ...]:
    return tuple(map(Verb, words.split()))


NAMES = ("Alice", "Hugo", "Florence", "Jordan", "Clara", "Bruno", "Nora", "Felix")
ANIMATE = _nouns("guide cook judge host teacher local woman child dog cat horse")
THINGS = _nouns("book light watch ship box letter cake meal soup")
PLACES = _nouns("store square house school hall park garden village")
PREPOSITIONS = ("in", "near", "beside", "behind")

INTRANSITIVE = _verbs("walk talk dance work dream rest play run")
UNACCUSATIVE = _verbs("move turn open")
FOR_THINGS = (*_verbs("like hate buy study clean"), *UNACCUSATIVE)
FOR_ANIMATE = _verbs("help watch visit like hate praise blame")
DATIVE = _verbs("give show offer")
CLAUSAL = _verbs("say know think claim guess")
CONTROL = _verbs("want plan refuse hope")


@dataclass(frozen=True)
class Writer:
    """Words one after the other, and what the logical form says about them."""

    random: Random
    words: list[str] = field(default_factory=list)
    definite: list[str] = field(default_factory=list)
    terms: list[tuple[int, str]] = field(default_factory=list)
    """With the position that each is sorted by."""

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def say(self, *words: str) -> int:
        """Append the words; the position of the last."""
        self.words.extend(words)
        return len(self.words) - 1

    def role(self, verb: Verb, position: int, role: str, filler: str) -> None:
        self.terms.append((position, f"{verb.base} . {role} ( x _ {position} , {filler} )"))

    def sentence(self, label: str | None) -> Sentence:
        words = (self.words[0].capitalize(), *self.words[1:], ".")
        ordered = [text for _, text in sorted(self.terms, key=lambda term: term[0])]
        form = " ; ".join([*self.definite, " AND ".join(ordered)])
        return Sentence(words, label=label, logical_form=form)

    # Noun phrases: each writes itself and returns what stands for it as an argument.

    def noun(self, noun: str) -> str:
        article = self.random.choice(("the", "a"))
        position = self.say(article, noun)
        if article == "the":
            self.definite.append(f"* {noun} ( x _ {position} )")
        else:
            self.terms.append((position, f"{noun} ( x _ {position} )"))
        return f"x _ {position}"

    def person(self) -> str:
        if self.chance(0.4):
            return self.words[self.say(self.random.choice(NAMES))]
        return self.noun(self.random.choice(ANIMATE))

    def agent(self) -> str:
        return self.noun(SUBJECT_ONLY) if self.chance(0.06) else self.person()

    def nested(self, noun: str, depth: int) -> str:
        """A noun with `depth` prepositional phrases, each inside the one before."""
        outermost = outer = self.noun(noun)
        for _ in range(depth):
            preposition, place = self.random.choice(PREPOSITIONS), self.random.choice(PLACES)
            position = len(self.words) - 1
            self.say(preposition)
            inner = self.noun(place)
            self.terms.append((position, f"{noun} . nmod . {preposition} ( {outer} , {inner} )"))
            noun, outer = place, inner
        return outermost

    def thing(self) -> str:
        depth = self.random.choices(range(TRAIN_DEPTH + 1), (0.6, 0.25, 0.15))[0]
        return self.nested(self.random.choice(THINGS), depth)

    # Clauses: each writes itself and returns the position of its verb.

    def bare(self, verb: Verb, agent: str, form: str = "VBD") -> int:
        position = self.say(verb.form(form))
        self.role(verb, position, "agent", agent)
        return position

    def intransitive(self) -> int:
        return self.bare(self.random.choice(INTRANSITIVE), self.agent())

    def unaccusative(self) -> int:
        """Without an object, what moves is not the one who moves it."""
        verb, theme = self.random.choice(UNACCUSATIVE), self.noun(self.random.choice(THINGS))
        position = self.say(verb.form("VBD"))
        self.role(verb, position, "theme", theme)
        return position

    def transitive(self, verb: Verb, agent: str, write_theme: Callable[[], str]) -> int:
        position = self.bare(verb, agent)
        self.role(verb, position, "theme", write_theme())
        return position

    def active(self) -> int:
        if self.chance(0.5):
            return self.transitive(self.random.choice(FOR_THINGS), self.agent(), self.thing)
        verb = self.random.choice((*FOR_ANIMATE, ACTIVE_ONLY))
        object_only = self.chance(0.12) and verb is not ACTIVE_ONLY
        theme = (lambda: self.noun(OBJECT_ONLY)) if object_only else self.person
        return self.transitive(verb, self.agent(), theme)

    def passive(self, verb: Verb | None = None) -> int:
        for_things = verb is None and self.chance(0.5)
        verbs = FOR_THINGS if for_things else (*FOR_ANIMATE, PASSIVE_ONLY)
        verb = verb or self.random.choice(verbs)
        theme = self.noun(self.random.choice(THINGS if for_things else ANIMATE))
        position = self.say("was", verb.form("VBN"))
        self.role(verb, position, "theme", theme)
        if self.chance(0.5):
            self.say("by")
            self.role(verb, position, "agent", self.person())
        return position

    def dative(self) -> int:
        verb = self.random.choice((*DATIVE, TO_ONLY, DOUBLE_OBJECT_ONLY))
        if verb == TO_ONLY or (verb != DOUBLE_OBJECT_ONLY and self.chance(0.5)):
            return self.dative_with_to(verb)
        return self.double_object(verb)

    def dative_with_to(self, verb: Verb) -> int:
        position = self.transitive(verb, self.agent(), self.thing)
        self.say("to")
        self.role(verb, position, "recipient", self.person())
        return position

    def double_object(self, verb: Verb) -> int:
        position = self.bare(verb, self.agent())
        self.role(verb, position, "recipient", self.person())
        self.role(verb, position, "theme", self.thing())
        return position

    def control(self) -> int:
        """The agent of the governor is the agent of the verb that it governs."""
        verb, agent = self.random.choice(CONTROL), self.agent()
        position = self.bare(verb, agent)
        self.say("to")
        governed = self.bare(self.random.choice(INTRANSITIVE), agent, "VB")
        self.role(verb, position, "xcomp", f"x _ {governed}")
        return position

    def clause(self, depth: int) -> int:
        """`depth` complement clauses, each inside the one before, and a simple clause."""
        if depth == 0:
            return self.simple()
        verb = self.random.choice(CLAUSAL)
        position = self.bare(verb, self.agent())
        self.say("that")
        self.role(verb, position, "ccomp", f"x _ {self.clause(depth - 1)}")
        return position

    def simple(self) -> int:
        rules = (
            (self.intransitive, 0.1),
            (self.unaccusative, 0.1),
            (self.active, 0.35),
            (self.passive, 0.2),
            (self.dative, 0.15),
            (self.control, 0.1),
        )
        return self.random.choices([r for r, _ in rules], [weight for _, weight in rules])[0]()


def in_distribution(random: Random) -> Sentence:
    writer = Writer(random)
    writer.clause(random.choices(range(TRAIN_DEPTH + 1), (0.7, 0.18, 0.12))[0])
    return writer.sentence(label=None)


def _object_as_subject(writer: Writer) -> int:
    verb, agent = writer.random.choice(FOR_THINGS), writer.noun(OBJECT_ONLY)
    return writer.transitive(verb, agent, writer.thing)


def _subject_as_object(writer: Writer) -> int:
    verb, agent = writer.random.choice(FOR_ANIMATE), writer.person()
    return writer.transitive(verb, agent, lambda: writer.noun(SUBJECT_ONLY))


def _modified_subject(writer: Writer) -> int:
    agent = writer.nested(writer.random.choice(ANIMATE), 1)
    return writer.transitive(writer.random.choice(FOR_THINGS), agent, writer.thing)


def _deeply_modified_object(writer: Writer) -> int:
    verb, noun = writer.random.choice(FOR_THINGS), writer.random.choice(THINGS)
    return writer.transitive(verb, writer.agent(), lambda: writer.nested(noun, _deeper(writer)))


def _deeper(writer: Writer) -> int:
    return writer.random.randint(TRAIN_DEPTH + 1, DEEPEST)


GENERALISATIONS: dict[str, Callable[[Writer], int]] = {
    "subject noun seen only as object": _object_as_subject,
    "object noun seen only as subject": _subject_as_object,
    "active verb seen only in the passive": lambda w: w.transitive(
        PASSIVE_ONLY, w.agent(), w.person
    ),
    "passive verb seen only in the active": lambda w: w.passive(ACTIVE_ONLY),
    "double-object verb seen only with to": lambda w: w.double_object(TO_ONLY),
    "verb with to seen only with two objects": lambda w: w.dative_with_to(DOUBLE_OBJECT_ONLY),
    "prepositional phrase on the subject": _modified_subject,
    "deeper recursion of prepositional phrases": _deeply_modified_object,
    "deeper recursion of sentential complements": lambda w: w.clause(_deeper(w)),
}


def generalisation(random: Random, case: str) -> Sentence:
    writer = Writer(random)
    GENERALISATIONS[case](writer)
    return writer.sentence(case)
