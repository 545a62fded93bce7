"""The rules for verb phrases: the frames of verbs, and the opinions that they voice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random

from probformer.data.builtin import lexicon as lex
from probformer.data.builtin.inflection import Verb
from probformer.data.builtin.lexicon import (
    BEINGS,
    COMMON_KINDS,
    EVENT,
    IDEA,
    INANIMATE,
    ORGANISATION,
    PERSON,
    PLACE,
)
from probformer.data.builtin.noun_phrases import NounPhrases
from probformer.data.builtin.opinions import Opinions
from probformer.data.builtin.phrases import Phrase, attach, word
from probformer.data.builtin.verb_groups import VerbGroups


@dataclass(frozen=True, slots=True)
class Slot:
    """The context that a verb phrase has to agree with."""

    kind: str
    """The kind of its subject."""
    form: str
    """The tag of its first verb."""
    sign: int
    """The opinion of its first verb or adjective, before any negation."""
    depth: int
    """The maximum number of clauses nested in it."""


@dataclass(frozen=True)
class Frame:
    """A kind of verb phrase, and when it is chosen."""

    rule: Callable[[VerbPhrases, Slot], Phrase]
    subjects: tuple[str, ...]
    plain: float = 0.0
    """Its weight if no opinion is to be voiced."""
    voicing: float = 0.0
    """Its weight if an opinion is to be voiced."""
    be: str = ""
    """The relation of the form of "be" that precedes it, "cop" or "aux:pass", if one does."""
    progressive: bool = False
    """Whether it can be progressive: "is walking"."""
    nested: bool = False
    """Whether it contains another clause."""


class VerbPhrases(NounPhrases, VerbGroups):
    """Rules for verb phrases; clauses are added by `Grammar`."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.opinions = Opinions(random)

    @abstractmethod
    def clause(self, depth: int) -> Phrase:
        """A subject and its verb phrase."""

    def predicate(
        self, kind: str, plural: bool, depth: int, inverted: bool = False
    ) -> tuple[list[Phrase], Phrase]:
        """Auxiliaries, and the rest of a verb phrase whose subject is of this kind."""
        sign, negated = self.stance()
        frame = self.frame(kind, sign, depth)
        auxiliaries, form = self.verb_group(plural, negated, inverted, frame.be, frame.progressive)
        return auxiliaries, frame.rule(self, Slot(kind, form, sign, depth))

    def predicate_with_gap(
        self, kind: str | None, plural: bool, inverted: bool = False
    ) -> tuple[list[Phrase], Phrase, Verb]:
        """Auxiliaries and a verb whose object is moved to the front, and the verb's entry."""
        sign, negated = self.stance()
        verb = self.pick(lex.verbs_with_object(kind, sign))
        auxiliaries, form = self.verb_group(plural, negated, inverted)
        return auxiliaries, self.verb(verb, form), verb

    def infinitive(self, kind: str, depth: int) -> Phrase:
        """ "to help her", "not to be late"."""
        sign, negated = self.stance()
        frame = self.frame(kind, sign, depth)
        before = [lex.NOT.as_("advmod")] if negated else []
        before.append(lex.TO.as_("mark"))
        if frame.be:
            before.append(word("be", "AUX", "VB").as_(frame.be))
        body = frame.rule(self, Slot(kind, "VBN" if frame.be else "VB", sign, depth))
        return attach(body, before)

    def bare_phrase(self, kind: str, form: str, depth: int) -> Phrase:
        """Without auxiliaries, and so without negation: "help her", "helping her"."""
        sign = self.opinions.next()
        frame = self.frame(kind, sign, depth, with_be=False)
        return frame.rule(self, Slot(kind, form, sign, depth))

    def stance(self) -> tuple[int, bool]:
        """The sign of the word that voices the next opinion, and whether it is negated."""
        opinion, negated = self.opinions.next(), self.chance(0.27)
        return (-opinion if negated else opinion), negated

    def frame(self, kind: str, sign: int, depth: int, with_be: bool = True) -> Frame:
        frames, weights = _frames(kind, sign != 0, depth > 0, with_be)
        return self.random.choices(frames, cum_weights=weights)[0]

    # The frames

    def intransitive(self, slot: Slot) -> Phrase:
        verb = self.pick(lex.INTRANSITIVE[slot.kind])
        after = self.adverbials(0.5, slot.depth - 1)
        if verb.base == "work" and self.chance(0.7):
            after = [self.prepositional("for", ORGANISATION, 0).as_("obl"), *after]
        return attach(self.verb(verb, slot.form), after=after)

    def motion(self, slot: Slot) -> Phrase:
        goal = self.weighted(("path", 0.4), ("adverb", 0.2), ("place", 0.2), ("event", 0.2))
        if goal == "path":
            after = self.prepositional(self.pick(lex.PATHS), PLACE, slot.depth - 1).as_("obl")
        elif goal == "adverb":
            after = word(self.pick(lex.PATHS), "ADV", "RB").as_("advmod")
        else:
            kind = PLACE if goal == "place" else self.pick((EVENT, IDEA))
            after = self.prepositional("to", kind, slot.depth - 1).as_("obl")
        return attach(self.verb(self.pick(lex.MOTION), slot.form), after=[after])

    def transitive(self, slot: Slot) -> Phrase:
        verb = self.pick(lex.TRADING if slot.kind == ORGANISATION else lex.ANY_TRANSITIVE)
        theme = self.theme(verb, slot.depth)
        adverbials = self.adverbials(0.2, slot.depth - 1)
        return attach(self.verb(verb, slot.form), after=[theme.as_("obj"), *adverbials])

    def theme(self, verb: Verb, depth: int) -> Phrase:
        return self.noun_phrase(self.object_kind(verb), depth - 1, "object")

    def object_kind(self, verb: Verb) -> str:
        return IDEA if IDEA in verb.objects and self.chance(0.3) else self.pick(verb.objects)

    def phrasal(self, slot: Slot) -> Phrase:
        verb, particle = self.pick(lex.PHRASAL)
        theme = self.theme(verb, slot.depth)
        after = [word(particle, "ADP", "RP").as_("compound:prt"), theme.as_("obj")]
        if theme.token.upos == "PRON" or self.chance(0.5):
            after.reverse()
        return attach(self.verb(verb, slot.form), after=after)

    def ditransitive(self, slot: Slot) -> Phrase:
        verb = self.pick(lex.DITRANSITIVE)
        theme = self.theme(verb, slot.depth).as_("obj")
        if self.chance(0.5):
            after = [self.noun_phrase(PERSON, 0, "object").as_("iobj"), theme]
        else:
            after = [theme, self.prepositional("to", PERSON, 0).as_("obl")]
        return attach(self.verb(verb, slot.form), after=after)

    def reporting(self, slot: Slot) -> Phrase:
        """ "says that …", "fears that …"."""
        verb = self.pick(lex.with_sign(lex.REPORTING, slot.sign))
        clause = self.clause(slot.depth - 1)
        if self.chance(0.65):
            clause = attach(clause, before=[lex.COMPLEMENTISER.as_("mark")])
        return attach(self.verb(verb, slot.form), after=[clause.as_("ccomp")])

    def control(self, slot: Slot) -> Phrase:
        """ "wants to …", "likes to …"."""
        verb = self.pick(lex.with_sign(lex.CONTROL, slot.sign))
        inner = self.infinitive(slot.kind, slot.depth - 1).as_("xcomp")
        return attach(self.verb(verb, slot.form), after=[inner])

    def doing(self, slot: Slot) -> Phrase:
        """ "likes helping her"."""
        verb = self.pick(lex.with_sign(lex.OF_DOING, slot.sign))
        inner = self.bare_phrase(slot.kind, "VBG", slot.depth - 1).as_("xcomp")
        return attach(self.verb(verb, slot.form), after=[inner])

    def causative(self, slot: Slot) -> Phrase:
        """ "lets the guards help her"."""
        made = self.noun_phrase(PERSON, 0, "object").as_("obj")
        inner = self.bare_phrase(PERSON, "VB", slot.depth - 1).as_("xcomp")
        return attach(self.verb(self.pick(lex.CAUSATIVE), slot.form), after=[made, inner])

    def opinion(self, slot: Slot) -> Phrase:
        verb = self.pick(lex.with_sign(lex.OPINION, slot.sign))
        theme = self.theme(verb, slot.depth).as_("obj")
        after = [theme, *self.adverbials(0.15, slot.depth - 1)]
        return attach(self.verb(verb, slot.form), after=after)

    def affecting(self, slot: Slot) -> Phrase:
        verb = self.pick(lex.with_sign(lex.AFFECTING, slot.sign))
        return attach(self.verb(verb, slot.form), after=[self.theme(verb, slot.depth).as_("obj")])

    def copular(self, slot: Slot) -> Phrase:
        before: list[Phrase] = []
        if self.chance(0.25):
            before.append(word(self.pick(lex.DEGREE), "ADV", "RB").as_("advmod"))
        after = [self.time(slot.depth - 1).as_("obl")] if self.chance(0.1) else []
        return attach(self.adjective(slot.kind, slot.sign), before, after)

    def passive(self, slot: Slot) -> Phrase:
        verb = self.pick(lex.verbs_with_object(slot.kind, slot.sign))
        after: list[Phrase] = []
        if self.chance(0.5):
            after.append(self.prepositional("by", PERSON, slot.depth - 1).as_("obl:agent"))
        after += self.adverbials(0.25, slot.depth - 1)
        return attach(self.verb(verb, "VBN"), after=after)


_PEOPLE, _AGENTS = (PERSON,), (PERSON, ORGANISATION)
FRAMES = (
    Frame(VerbPhrases.intransitive, BEINGS, plain=0.14, progressive=True),
    Frame(VerbPhrases.motion, BEINGS, plain=0.16, progressive=True),
    Frame(VerbPhrases.transitive, _AGENTS, plain=0.24, progressive=True),
    Frame(VerbPhrases.phrasal, _PEOPLE, plain=0.16, progressive=True),
    Frame(VerbPhrases.ditransitive, _PEOPLE, plain=0.1, progressive=True),
    Frame(VerbPhrases.reporting, _PEOPLE, plain=0.16, voicing=0.16, nested=True),
    Frame(VerbPhrases.control, _PEOPLE, plain=0.1, voicing=0.1, nested=True),
    Frame(VerbPhrases.doing, _PEOPLE, voicing=0.1, nested=True),
    Frame(VerbPhrases.causative, _PEOPLE, plain=0.1, progressive=True, nested=True),
    Frame(VerbPhrases.opinion, (*BEINGS, ORGANISATION), voicing=0.5),
    Frame(VerbPhrases.affecting, INANIMATE, plain=0.3, voicing=0.4, progressive=True),
    Frame(VerbPhrases.copular, (*COMMON_KINDS, ORGANISATION), plain=0.08, voicing=0.16, be="cop"),
    Frame(VerbPhrases.passive, COMMON_KINDS, plain=0.06, voicing=0.07, be="aux:pass"),
)


@cache
def _frames(
    kind: str, voicing: bool, nested: bool, with_be: bool
) -> tuple[tuple[Frame, ...], tuple[float, ...]]:
    """The frames for a subject of this kind, and their cumulative weights."""
    weights = {
        frame: frame.voicing if voicing else frame.plain
        for frame in FRAMES
        if kind in frame.subjects and (nested or not frame.nested) and (with_be or not frame.be)
    }
    return tuple(weights), tuple(accumulate(weights.values()))
