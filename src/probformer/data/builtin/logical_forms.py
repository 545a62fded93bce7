"""The fragment of the grammar that COGS' notation expresses, with its logical forms.

A logical form lists definite nouns first, then every noun, role and modifier by the position of
its word: "The dog liked a cat ." is "* dog ( x _ 1 ) ; like . agent ( x _ 2 , x _ 1 ) AND like .
theme ( x _ 2 , x _ 4 ) AND cat ( x _ 4 )". A name stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from probformer.data.builtin.inflection import Verb, verbs, words
from probformer.data.builtin.random_choices import RandomChoices
from probformer.data.sentence import Sentence

OBJECT_ONLY, SUBJECT_ONLY = "fox", "farmer"
PASSIVE_ONLY, ACTIVE_ONLY = Verb("guard"), Verb("coach")
TO_ONLY, DOUBLE_OBJECT_ONLY = Verb("lend"), Verb("send")
"""Nouns and verbs that occur in one role or frame only in training."""

TRAIN_DEPTH = 2
"""The maximum depth of nested prepositional phrases, or complement clauses, in training."""

NAMES = words("Alice Hugo Florence Jordan Clara Bruno Nora Felix Oscar Stella Victor Ruth")
ANIMATE = words("guide cook judge host teacher local woman child nurse dog cat horse")
THINGS = words("book light watch ship box letter cake meal soup drink")
PLACES = words("store square house school hall park garden village camp")
PREPOSITIONS = ("in", "near", "beside", "behind")

INTRANSITIVE = verbs("walk talk dance work dream rest play run")
UNACCUSATIVE = verbs("move turn open")
FOR_THINGS = (*verbs("like hate buy study clean praise"), *UNACCUSATIVE)
FOR_ANIMATE = verbs("help watch visit like hate praise blame")
DATIVE = verbs("give show offer")
CLAUSAL = verbs("say know think claim guess")
CONTROL = verbs("want plan refuse hope")


class Writer(RandomChoices):
    """Writes a sentence word by word, together with the terms of its logical form."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.words: list[str] = []
        self.definite: list[str] = []
        self.terms: list[tuple[int, str]] = []
        """Terms, with the position that each is sorted by."""

    def say(self, *words: str) -> int:
        """Append words; the result is the position of the last one."""
        self.words.extend(words)
        return len(self.words) - 1

    def role(self, verb: Verb, position: int, role: str, filler: str) -> None:
        self.terms.append((position, f"{verb.base} . {role} ( x _ {position} , {filler} )"))

    def sentence(self, label: str | None) -> Sentence:
        words = (self.words[0].capitalize(), *self.words[1:], ".")
        ordered = [text for _, text in sorted(self.terms, key=lambda term: term[0])]
        form = " ; ".join([*self.definite, " AND ".join(ordered)])
        return Sentence(words, label=label, logical_form=form)

    # Noun phrases: each method writes one and returns the argument that represents it.

    def noun(self, noun: str) -> str:
        article = self.pick(("the", "a"))
        position = self.say(article, noun)
        if article == "the":
            self.definite.append(f"* {noun} ( x _ {position} )")
        else:
            self.terms.append((position, f"{noun} ( x _ {position} )"))
        return f"x _ {position}"

    def person(self) -> str:
        if self.chance(0.4):
            return self.words[self.say(self.pick(NAMES))]
        return self.noun(self.pick(ANIMATE))

    def agent(self) -> str:
        return self.noun(SUBJECT_ONLY) if self.chance(0.06) else self.person()

    def nested(self, noun: str, depth: int) -> str:
        """A noun with `depth` prepositional phrases, each inside the one before."""
        outermost = outer = self.noun(noun)
        for _ in range(depth):
            preposition, place = self.pick(PREPOSITIONS), self.pick(PLACES)
            position = len(self.words) - 1
            self.say(preposition)
            inner = self.noun(place)
            self.terms.append((position, f"{noun} . nmod . {preposition} ( {outer} , {inner} )"))
            noun, outer = place, inner
        return outermost

    def thing(self) -> str:
        depth = self.random.choices(range(TRAIN_DEPTH + 1), (0.6, 0.25, 0.15))[0]
        return self.nested(self.pick(THINGS), depth)

    # Clauses: each method writes one and returns the position of its verb.

    def bare(self, verb: Verb, agent: str, form: str = "VBD") -> int:
        position = self.say(verb.form(form))
        self.role(verb, position, "agent", agent)
        return position

    def intransitive(self) -> int:
        return self.bare(self.pick(INTRANSITIVE), self.agent())

    def unaccusative(self) -> int:
        """Without an object, the subject is the theme, not the agent."""
        verb, theme = self.pick(UNACCUSATIVE), self.noun(self.pick(THINGS))
        position = self.say(verb.form("VBD"))
        self.role(verb, position, "theme", theme)
        return position

    def transitive(self, verb: Verb, agent: str, write_theme: Callable[[], str]) -> int:
        position = self.bare(verb, agent)
        self.role(verb, position, "theme", write_theme())
        return position

    def active(self) -> int:
        if self.chance(0.5):
            return self.transitive(self.pick(FOR_THINGS), self.agent(), self.thing)
        verb = self.pick((*FOR_ANIMATE, ACTIVE_ONLY))
        object_only = self.chance(0.12) and verb is not ACTIVE_ONLY
        theme = (lambda: self.noun(OBJECT_ONLY)) if object_only else self.person
        return self.transitive(verb, self.agent(), theme)

    def passive(self) -> int:
        if self.chance(0.5):
            return self.passive_of(self.pick(FOR_THINGS), self.pick(THINGS))
        return self.passive_of(self.pick((*FOR_ANIMATE, PASSIVE_ONLY)), self.pick(ANIMATE))

    def passive_of(self, verb: Verb, noun: str) -> int:
        theme = self.noun(noun)
        position = self.say("was", verb.form("VBN"))
        self.role(verb, position, "theme", theme)
        self.perhaps_by(verb, position)
        return position

    def perhaps_by(self, verb: Verb, position: int) -> None:
        if self.chance(0.5):
            self.say("by")
            self.role(verb, position, "agent", self.person())

    def dative(self) -> int:
        verb = self.pick((*DATIVE, TO_ONLY, DOUBLE_OBJECT_ONLY))
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

    def passive_dative(self) -> int:
        """ "A book was given to Alice", "Alice was given a book"."""
        verb = self.pick(DATIVE)
        given = self.chance(0.5)
        subject = self.noun(self.pick(THINGS)) if given else self.person()
        position = self.say("was", verb.form("VBN"))
        self.role(verb, position, "theme" if given else "recipient", subject)
        if given:
            self.say("to")
            self.role(verb, position, "recipient", self.person())
        else:
            self.role(verb, position, "theme", self.thing())
        self.perhaps_by(verb, position)
        return position

    def control(self) -> int:
        """The agent of the governor is the agent of the verb that it governs."""
        verb, agent = self.pick(CONTROL), self.agent()
        position = self.bare(verb, agent)
        self.say("to")
        governed = self.bare(self.pick(INTRANSITIVE), agent, "VB")
        self.role(verb, position, "xcomp", f"x _ {governed}")
        return position

    def simple(self) -> int:
        rule = self.weighted(
            (self.intransitive, 0.1),
            (self.unaccusative, 0.08),
            (self.active, 0.35),
            (self.passive, 0.18),
            (self.dative, 0.14),
            (self.passive_dative, 0.06),
            (self.control, 0.09),
        )
        return rule()

    def clause(self, depth: int, innermost: Callable[[], int]) -> int:
        """`depth` complement clauses, each inside the one before."""
        if depth == 0:
            return innermost()
        verb = self.pick(CLAUSAL)
        position = self.bare(verb, self.agent())
        self.say("that")
        self.role(verb, position, "ccomp", f"x _ {self.clause(depth - 1, innermost)}")
        return position
