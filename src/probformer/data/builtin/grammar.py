"""The built-in probabilistic grammar: each rule is a method, each probability a number in it.

A rule returns a `Phrase`, words with the tree over them, so that gold heads are right by
construction. The class of a sentence is the opinion it voices, and takes its structure to see:
negation turns an opinion round, and so do "doubt" or "refuse"; of two coordinated opinions the
last counts; relative and adverbial clauses, adjectives before a noun and questions voice none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from probformer.data.builtin import lexicon as lex
from probformer.data.builtin.lexicon import (
    ANIMAL,
    EVENT,
    FOOD,
    ORGANISATION,
    PERSON,
    PLACE,
    THING,
    Phrase,
    as_entity,
    attach,
    word,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Grammar:
    random: Random

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def weighted(self, *options: tuple[T, float]) -> T:
        values, weights = zip(*options, strict=True)
        return self.random.choices(values, weights)[0]

    # Noun phrases

    def noun_phrase(self, kind: str, depth: int, role: str = "subject") -> Phrase:
        """`role` is "subject", "object" or "oblique", which comes after a preposition."""
        if depth > 0 and kind != ORGANISATION and self.chance(0.08):
            return self.coordinated_nouns(kind, role)
        if self.chance({PERSON: 0.2, PLACE: 0.3, ORGANISATION: 1.0}.get(kind, 0.0)):
            return self.name(kind)
        impersonal = 0.0 if role == "oblique" else 0.12
        if self.chance(0.25 if kind == PERSON else impersonal):
            return self.pronoun(kind, role)
        return self.common_noun(kind, depth)

    def coordinated_nouns(self, kind: str, role: str) -> Phrase:
        first, second = (self.noun_phrase(kind, 0, role) for _ in range(2))
        conjunct = attach(second, before=[word("and", "CCONJ", "CC")])
        return replace(attach(first, after=[conjunct]), plural=True)

    def pronoun(self, kind: str, role: str) -> Phrase:
        if kind not in (PERSON, ANIMAL) and self.chance(0.6):
            return word("that", "PRON", "DT")
        plural = self.chance(0.4)
        singular = lex.SINGULAR_PRONOUNS if kind == PERSON else (("it", "it"),)
        subject, objective = self.pick(lex.PLURAL_PRONOUNS if plural else singular)
        return word(subject if role == "subject" else objective, "PRON", "PRP", plural)

    def name(self, kind: str) -> Phrase:
        def part(names: Sequence[str]) -> Phrase:
            return word(self.pick(names), "PROPN", "NNP")

        if kind == PERSON:
            given, family = part(lex.GIVEN), part(lex.FAMILY)
            full = attach(given, after=[family])
            return as_entity(self.weighted((given, 0.5), (full, 0.3), (family, 0.2)), "PER")
        if kind == PLACE:
            single = part(lex.CITIES)
            double = attach(part(lex.PLACE_ENDINGS), before=[part(lex.GIVEN + lex.FAMILY)])
            return as_entity(self.weighted((single, 0.7), (double, 0.3)), "LOC")
        single = part(lex.FIRMS)
        double = attach(part(lex.FIRM_ENDINGS), before=[part(lex.FAMILY)])
        triple = attach(
            part(lex.FIRM_ENDINGS[:1]), after=[attach(part(lex.CITIES), before=[lex.OF])]
        )
        return as_entity(self.weighted((single, 0.5), (double, 0.3), (triple, 0.2)), "ORG")

    def noun(self, kind: str) -> Phrase:
        plural, noun = self.chance(0.45), self.pick(lex.NOUNS[kind])
        form, tag = (lex.with_s(noun), "NNS") if plural else (noun, "NN")
        return word(form, "NOUN", tag, plural)

    def common_noun(self, kind: str, depth: int) -> Phrase:
        head = self.noun(kind)
        plural = head.plural
        before = self.determiner(plural)
        if self.chance(0.26):
            before.append(self.adjective(kind, voicing=0.5))
        if kind in (PERSON, PLACE, EVENT) and self.chance(0.1):
            before.append(word(self.pick(lex.NOUNS[EVENT]), "NOUN", "NN"))
        after: list[Phrase] = []
        if depth > 0 and self.chance(0.22):
            after.append(self.noun_modifier(kind, depth - 1))
        if depth > 0 and self.chance(0.16):
            after.append(self.relative_clause(kind, plural, depth - 1))
        return attach(head, before, after)

    def determiner(self, plural: bool) -> list[Phrase]:
        if plural and self.chance(0.6):
            return []
        if self.chance(0.25):
            return [word(self.pick(("her", "her", "his", "their")), "PRON", "PRP$")]
        choices = ("the", "some") if plural else ("the", "a", "that")
        return [word(self.pick(choices), "DET", "DT")]

    def adjective(self, kind: str, voicing: float) -> Phrase:
        """One that voices an opinion with this probability, or a plain one."""
        chosen = self.pick(tuple(lex.POLARITY) if self.chance(voicing) else lex.PLAIN[kind])
        return replace(word(chosen, "ADJ", "JJ"), polarity=lex.POLARITY.get(chosen, 0))

    def prepositional(self, preposition: str, kind: str, depth: int) -> Phrase:
        noun = self.noun_phrase(kind, depth, "oblique")
        return attach(noun, before=[word(preposition, "ADP", "IN")])

    def noun_modifier(self, kind: str, depth: int) -> Phrase:
        if kind == PERSON and self.chance(0.3):
            return self.prepositional("from", ORGANISATION, depth)
        if kind == EVENT:
            preposition, other = self.pick((("to", PERSON), ("for", PERSON), ("at", PLACE)))
            return self.prepositional(preposition, other, depth)
        return self.prepositional(self.pick(lex.PLACE_PREPOSITIONS), PLACE, depth)

    def relative_clause(self, kind: str, plural: bool, depth: int) -> Phrase:
        others = word("that", "PRON", "WDT"), word("which", "PRON", "WDT")
        people = word("that", "PRON", "WDT"), word("who", "PRON", "WP")
        pronoun = self.pick(people if kind == PERSON else others)
        if self.chance(0.5):
            auxiliaries, body = self.predicate(kind, plural, depth)
            return attach(body, before=[pronoun, *auxiliaries])
        subject = self.noun_phrase(PERSON, 0)
        auxiliaries, form, _ = self.verb_group(subject.plural)
        verb = self.pick([v for v in lex.TRANSITIVE + lex.OPINION if kind in v.objects])
        opening = [] if self.chance(0.35) else [pronoun]
        return attach(self.verb(verb, form), before=[*opening, subject, *auxiliaries])

    # Verbs and their frames

    def verb(self, verb: lex.Verb, form: str) -> Phrase:
        return word(verb.form(form), "VERB", form)

    def verb_group(
        self, plural: bool, be: bool = False, inverted: bool = False
    ) -> tuple[list[Phrase], str, int]:
        """Auxiliaries and adverbs, the form that they ask of the verb, -1 if they negate it."""
        finite = "VBD" if self.chance(0.48) else "VBP" if plural else "VBZ"
        negated, never = self.chance(0.05 if inverted else 0.33), self.chance(0.3)
        kind = self.weighted(("simple", 0.72), ("modal", 0.16), ("perfect", 0.12))
        form, group = finite, list[Phrase]()
        if kind == "modal":
            form, group = "VB", [word(self.pick(lex.MODALS), "AUX", "MD")]
        elif kind == "perfect":
            form, group = "VBN", [word(lex.HAVE[finite], "AUX", finite)]
        elif be:
            past = "were" if plural else "was"
            group = [word(lex.BE.get(finite, past), "AUX", finite)]
        elif inverted or (negated and not never):
            form, group = "VB", [word(lex.DO[finite], "AUX", finite)]
        if negated:
            group.append(lex.NEVER if never else lex.NOT)
        elif self.chance(0.06):
            group.append(word(self.pick(lex.FREQUENCY), "ADV", "RB"))
        if be and kind != "simple":
            group.append(word(lex.BE[form], "AUX", form))
        return group, "VBN" if be else form, -1 if negated else 1

    def predicate(
        self, kind: str, plural: bool, depth: int, inverted: bool = False
    ) -> tuple[list[Phrase], Phrase]:
        """Auxiliaries, and the rest of a verb phrase whose subject is of this kind."""
        rule = self.frame(kind, depth)
        be = rule in (self.copular, self.passive)
        auxiliaries, form, sign = self.verb_group(plural, be, inverted)
        body = rule(kind, form, depth)
        return auxiliaries, replace(body, polarity=sign * body.polarity)

    def frame(self, kind: str, depth: int) -> Callable[[str, str, int], Phrase]:
        if kind in (THING, FOOD, PLACE, EVENT):
            return self.weighted((self.copular, 0.65), (self.passive, 0.35))
        if kind == ORGANISATION:
            return self.weighted((self.copular, 0.4), (self.transitive, 0.6))
        be = (self.copular, 0.16), (self.passive, 0.08)
        if kind == ANIMAL:
            return self.weighted((self.intransitive, 0.7), *be)
        nested = 0.2 if depth > 0 else 0.0
        return self.weighted(
            *be, *((rule, nested) for rule in (self.complement, self.control)), *self.plain_frames()
        )

    def plain_frames(self) -> list[tuple[Callable[[str, str, int], Phrase], float]]:
        return [
            (self.intransitive, 0.16),
            (self.transitive, 0.24),
            (self.ditransitive, 0.08),
            (self.opinion, 0.5),
        ]

    def intransitive(self, kind: str, form: str, depth: int) -> Phrase:
        if self.chance(0.3):
            place = self.prepositional("to", PLACE, depth - 1)
            return attach(self.verb(self.pick(lex.MOTION), form), after=[place])
        verb = self.pick(lex.INTRANSITIVE[kind] + lex.MOTION)
        after = self.adverbials(0.6, depth)
        if verb.base == "work" and self.chance(0.7):
            after = [self.prepositional("for", ORGANISATION, 0), *after]
        return attach(self.verb(verb, form), after=after)

    def transitive(self, kind: str, form: str, depth: int) -> Phrase:
        verb = self.pick(lex.TRADING if kind == ORGANISATION else lex.TRANSITIVE + lex.TRADING)
        theme = self.noun_phrase(self.pick(verb.objects), depth - 1, "object")
        return attach(self.verb(verb, form), after=[theme, *self.adverbials(0.2, depth)])

    def ditransitive(self, kind: str, form: str, depth: int) -> Phrase:
        verb = self.pick(lex.DITRANSITIVE)
        theme = self.noun_phrase(self.pick(verb.objects), depth - 1, "object")
        if self.chance(0.5):
            return attach(
                self.verb(verb, form), after=[self.noun_phrase(PERSON, 0, "object"), theme]
            )
        return attach(self.verb(verb, form), after=[theme, self.prepositional("to", PERSON, 0)])

    def complement(self, kind: str, form: str, depth: int) -> Phrase:
        verb, clause = self.pick(lex.COMPLEMENT), self.clause(depth - 1)
        if self.chance(0.65):
            clause = attach(clause, before=[lex.COMPLEMENTISER])
        body = attach(self.verb(verb, form), after=[clause])
        return replace(body, polarity=verb.sign * clause.polarity)

    def control(self, kind: str, form: str, depth: int) -> Phrase:
        verb = self.pick(lex.CONTROL)
        rule = self.weighted(*self.plain_frames())
        inner = attach(rule(kind, "VB", depth - 1), before=[lex.TO])
        body = attach(self.verb(verb, form), after=[inner])
        return replace(body, polarity=verb.sign * inner.polarity)

    def opinion(self, kind: str, form: str, depth: int) -> Phrase:
        verb = self.pick(lex.OPINION)
        theme = self.noun_phrase(self.pick(verb.objects), depth - 1, "object")
        return replace(attach(self.verb(verb, form), after=[theme]), polarity=verb.sign)

    def copular(self, kind: str, form: str, depth: int) -> Phrase:
        degree = [word(self.pick(lex.DEGREE), "ADV", "RB")] if self.chance(0.3) else []
        after = [self.time(depth)] if self.chance(0.15) else []
        return attach(self.adjective(kind, voicing=0.75), before=degree, after=after)

    def passive(self, kind: str, form: str, depth: int) -> Phrase:
        """Opinions in the passive count like those in the active."""
        verbs = lex.TRANSITIVE + lex.OPINION * self.chance(0.4)
        verb = self.pick([v for v in verbs if kind in v.objects])
        after = [self.prepositional("by", PERSON, depth - 1)] if self.chance(0.5) else []
        after += self.adverbials(0.3, depth)
        polarity = verb.sign if verb in lex.OPINION else 0
        return replace(attach(self.verb(verb, "VBN"), after=after), polarity=polarity)

    def adverbials(self, probability: float, depth: int) -> list[Phrase]:
        """Perhaps an adverb, a place, a time or a likeness."""
        if not self.chance(probability):
            return []
        kind = self.weighted(("adverb", 0.4), ("place", 0.35), ("time", 0.15), ("like", 0.1))
        if kind == "adverb":
            return [word(self.pick(lex.MANNER), "ADV", "RB")]
        if kind == "place":
            return [self.prepositional(self.pick(lex.PLACE_PREPOSITIONS), PLACE, depth - 1)]
        return [self.time(depth) if kind == "time" else self.prepositional("like", PERSON, 0)]

    def time(self, depth: int) -> Phrase:
        return self.prepositional(self.pick(lex.TIME_PREPOSITIONS), EVENT, depth - 1)

    # Clauses and sentences

    def subject_kind(self) -> str:
        others = (ANIMAL, 0.08), (THING, 0.08), (FOOD, 0.06), (PLACE, 0.07), (EVENT, 0.14)
        return self.weighted((PERSON, 0.65), *others, (ORGANISATION, 0.07))

    def clause(self, depth: int) -> Phrase:
        kind = self.subject_kind()
        subject = self.noun_phrase(kind, depth)
        auxiliaries, body = self.predicate(kind, subject.plural, depth)
        clause = attach(body, before=[subject, *auxiliaries])
        if depth > 0 and self.chance(0.12):
            auxiliaries, body = self.predicate(kind, subject.plural, depth - 1)
            clause = self.coordinated(clause, attach(body, before=auxiliaries))
        return clause

    def coordinated(self, first: Phrase, second: Phrase) -> Phrase:
        conjunction = word(self.pick(("and", "but")), "CCONJ", "CC")
        comma = [word(",", "PUNCT", ",")] if self.chance(0.5) else []
        both = attach(first, after=[attach(second, before=[*comma, conjunction])])
        return replace(both, polarity=second.polarity or first.polarity)

    def with_adverbial_clause(self, depth: int) -> Phrase:
        conjunction = self.pick(lex.CONJUNCTIONS)
        opening = word(conjunction, "SCONJ", "WRB" if conjunction == "when" else "IN")
        main, side = self.clause(depth), attach(self.clause(depth), before=[opening])
        if self.chance(0.5):
            return attach(main, after=[side])
        return attach(main, before=[attach(side, after=[word(",", "PUNCT", ",")])])

    def yes_no_question(self, depth: int) -> Phrase:
        kind = self.subject_kind()
        subject = self.noun_phrase(kind, depth - 1)
        (first, *rest), body = self.predicate(kind, subject.plural, depth - 1, inverted=True)
        return attach(body, before=[first, subject, *rest])

    def asked(self, kind: str) -> Phrase:
        """What a question asks for: who, what, which plans."""
        if self.chance(0.5):
            return word("who" if kind == PERSON else "what", "PRON", "WP")
        which = word(self.pick(("which", "what")), "DET", "WDT")
        return attach(self.noun(kind), before=[which])

    def subject_question(self, depth: int) -> Phrase:
        kind = self.pick((PERSON, EVENT, THING))
        asked = self.asked(kind)
        auxiliaries, body = self.predicate(kind, asked.plural, depth - 1)
        return attach(body, before=[asked, *auxiliaries])

    def object_question(self, depth: int) -> Phrase:
        subject = self.noun_phrase(PERSON, depth - 1)
        (first, *rest), form, _ = self.verb_group(subject.plural, inverted=True)
        verb = self.pick(lex.TRANSITIVE + lex.OPINION)
        asked = self.asked(self.pick(verb.objects))
        return attach(self.verb(verb, form), before=[asked, first, subject, *rest])

    def adverb_question(self, depth: int) -> Phrase:
        asked = word(self.pick(("where", "when", "why")), "ADV", "WRB")
        return attach(self.yes_no_question(depth), before=[asked])

    def two_clauses(self, depth: int) -> Phrase:
        return self.coordinated(self.clause(depth), self.clause(depth))

    def statement(self, depth: int) -> Phrase:
        pair, aside = (self.two_clauses, 0.22), (self.with_adverbial_clause, 0.13)
        body = self.weighted((self.clause, 0.65), pair, aside)(depth)
        return attach(body, after=[word(".", "PUNCT", ".")])

    def question(self, depth: int) -> Phrase:
        about_nouns = (self.subject_question, 0.25), (self.object_question, 0.25)
        rule = self.weighted(
            (self.yes_no_question, 0.33), *about_nouns, (self.adverb_question, 0.17)
        )
        return replace(attach(rule(depth), after=[word("?", "PUNCT", ".")]), polarity=0)

    def sentence(self, depth: int = 2) -> Phrase:
        return self.weighted((self.statement, 0.82), (self.question, 0.18))(depth)
