"""The rules for noun phrases: a method each, with its probabilities in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from probformer.data.builtin import lexicon as lex
from probformer.data.builtin.inflection import with_s
from probformer.data.builtin.lexicon import ANIMAL, EVENT, IDEA, ORGANISATION, PERSON, PLACE
from probformer.data.builtin.phrases import Phrase, Token, attach, word
from probformer.data.builtin.random_choices import RandomChoices


class NounPhrases(RandomChoices, ABC):
    """Rules for noun phrases, prepositional phrases and adverbials."""

    @abstractmethod
    def noun_clause(self, noun: Phrase, kind: str, depth: int) -> Phrase:
        """A clause that modifies a noun of this kind, with its relation to the noun.

        It may have clauses `depth` levels deep.
        """

    def noun_phrase(self, kind: str, depth: int, role: str = "subject") -> Phrase:
        """`role` is "subject", "object" or "oblique", which comes after a preposition."""
        if depth > 0 and kind != ORGANISATION and self.chance(0.07):
            return self.coordinated_nouns(kind, role)
        if self.chance({PERSON: 0.15, PLACE: 0.3, ORGANISATION: 1.0}.get(kind, 0.0)):
            return self.name(kind)
        impersonal = 0.0 if role == "oblique" else 0.08
        if self.chance(0.4 if kind == PERSON else impersonal):
            return self.pronoun(kind, role)
        return self.common_noun(kind, depth, role)

    def coordinated_nouns(self, kind: str, role: str) -> Phrase:
        first, second = (self.common_noun(kind, 0, role) for _ in range(2))
        conjunct = attach(second, before=[word("and", "CCONJ", "CC").as_("cc")])
        return replace(attach(first, after=[conjunct.as_("conj")]), plural=True)

    def pronoun(self, kind: str, role: str) -> Phrase:
        if kind not in (PERSON, ANIMAL) and self.chance(0.5):
            return word("that", "PRON", "DT")
        plural = self.chance(0.4)
        singular = lex.SINGULAR_PRONOUNS if kind == PERSON else (("it", "it"),)
        subject, objective = self.pick(lex.PLURAL_PRONOUNS if plural else singular)
        return word(subject if role == "subject" else objective, "PRON", "PRP", plural)

    # Names

    def name(self, kind: str) -> Phrase:
        if kind == PERSON:
            return self.name_of_person()
        return self.name_of_place() if kind == PLACE else self.name_of_organisation()

    def name_of_person(self) -> Phrase:
        given, family = self.pick(lex.GIVEN), self.pick(lex.FAMILY)
        if self.chance(0.3):
            return attach(_part(given, "B-PER"), after=[_part(family, "E-PER").as_("flat")])
        return _part(self.weighted((given, 0.7), (family, 0.3)), "S-PER")

    def name_of_place(self) -> Phrase:
        if self.chance(0.7):
            return _part(self.pick(lex.CITIES), "S-LOC")
        first = _part(self.pick(lex.GIVEN + lex.FAMILY), "B-LOC").as_("compound")
        return attach(_part(self.pick(lex.PLACE_ENDINGS), "E-LOC"), before=[first])

    def name_of_organisation(self) -> Phrase:
        form = self.weighted(("Ford", 0.5), ("Ford Bank", 0.3), ("Bank of Oslo", 0.2))
        if form == "Ford":
            return _part(self.pick(lex.FIRMS), "S-ORG")
        if form == "Ford Bank":
            first = _part(self.pick(lex.FAMILY), "B-ORG").as_("compound")
            return attach(_part(self.pick(lex.FIRM_ENDINGS), "E-ORG"), before=[first])
        of = Phrase(replace(lex.OF.token, entity="I-ORG"))
        city = attach(_part(self.pick(lex.CITIES), "E-ORG"), before=[of.as_("case")])
        return attach(_part(lex.FIRM_ENDINGS[0], "B-ORG"), after=[city.as_("nmod")])

    # Nouns with their determiners and modifiers

    def noun(self, kind: str) -> Phrase:
        noun = self.pick(lex.NOUNS[kind])
        if noun in lex.MASS or self.chance(0.5):
            return word(noun, "NOUN", "NN")
        return word(with_s(noun), "NOUN", "NNS", plural=True)

    def common_noun(self, kind: str, depth: int, role: str) -> Phrase:
        head = self.noun(kind)
        before = self.determiner(head, kind)
        if self.chance(0.2):
            before.append(self.attribute(kind).as_("amod"))
        if kind in (PERSON, PLACE, EVENT, IDEA, ANIMAL) and self.chance(0.12):
            before.append(word(self.pick(lex.COMPOUNDED), "NOUN", "NN").as_("compound"))
        after: list[Phrase] = []
        recursion = role == "oblique"
        if self.chance(0.3 if recursion else 0.13):
            after.append(self.noun_modifier(kind, depth).as_("nmod"))
        if depth > 0 and self.chance(0.2):
            after.append(self.noun_clause(head, kind, depth - 1))
        return attach(head, before, after)

    def determiner(self, noun: Phrase, kind: str) -> list[Phrase]:
        if (noun.plural or noun.token.word in lex.BARE) and self.chance(0.8):
            return []
        if self.chance(0.1):
            return [self.owner(kind).as_("nmod:poss")]
        if self.chance(0.2):
            pronoun = word(self.pick(("her", "her", "his", "their")), "PRON", "PRP$")
            return [pronoun.as_("nmod:poss")]
        if noun.token.word in lex.MASS:
            return [word(self.pick(("the", "that")), "DET", "DT").as_("det")]
        choices = ("the", "some") if noun.plural else ("the", "the", "a", "a", "a", "that")
        return [word(self.pick(choices), "DET", "DT").as_("det")]

    def owner(self, kind: str) -> Phrase:
        """ "Jordan 's": a place where a place is owned, otherwise a person."""
        possessive = lex.POSSESSIVE.as_("case")
        if self.chance(0.5):
            name = self.name(PLACE if kind == PLACE else PERSON)
            return attach(name, after=[possessive])
        noun = word(self.pick(lex.NOUNS[PERSON]), "NOUN", "NN")
        return attach(noun, before=[word("the", "DET", "DT").as_("det")], after=[possessive])

    def attribute(self, kind: str) -> Phrase:
        """A modifier before a noun; its opinion, as in "not very good", does not count."""
        sign = self.pick((1, 0, 0, -1))
        if kind != ORGANISATION and self.chance(0.2):
            return word(self.pick(lex.verbs_with_object(kind, sign)).form("VBN"), "VERB", "VBN")
        adjective = self.adjective(kind, sign)
        if self.chance(0.1):
            very = word("very", "ADV", "RB").as_("advmod")
            return attach(adjective, before=[lex.NOT.as_("advmod"), very])
        return adjective

    def adjective(self, kind: str, sign: int) -> Phrase:
        return word(self.pick(lex.adjectives(kind, sign)), "ADJ", "JJ")

    # Prepositional phrases

    def prepositional(self, preposition: str, kind: str, depth: int) -> Phrase:
        noun = self.noun_phrase(kind, depth, "oblique")
        return attach(noun, before=[word(preposition, "ADP", "IN").as_("case")])

    def noun_modifier(self, kind: str, depth: int) -> Phrase:
        if kind in (EVENT, IDEA) and self.chance(0.4):
            return self.prepositional("of", IDEA, depth)
        if kind == PERSON and self.chance(0.3):
            return self.prepositional("from", ORGANISATION, depth)
        if kind in (EVENT, IDEA):
            preposition, other = self.pick((("to", PERSON), ("for", IDEA), ("at", PLACE)))
            return self.prepositional(preposition, other, depth)
        return self.prepositional(self.pick(lex.PLACE_PREPOSITIONS), PLACE, depth)

    # Adverbials

    def adverbials(self, probability: float, depth: int) -> list[Phrase]:
        """Perhaps an adverb, a place, a time or a likeness, with its relation to the verb."""
        if not self.chance(probability):
            return []
        kind = self.weighted(
            ("adverb", 0.4), ("place", 0.2), ("time", 0.15), ("idea", 0.15), ("like", 0.1)
        )
        if kind == "adverb":
            return [word(self.pick(lex.MANNER), "ADV", "RB").as_("advmod")]
        if kind == "place":
            return [self.place(depth).as_("obl")]
        if kind == "idea":
            return [self.prepositional(self.pick(("with", "in")), IDEA, depth).as_("obl")]
        found = self.time(depth) if kind == "time" else self.prepositional("like", PERSON, 0)
        return [found.as_("obl")]

    def place(self, depth: int) -> Phrase:
        if self.chance(0.2):
            return attach(self.prepositional("from", PLACE, depth), before=[_NOT_FAR.as_("advmod")])
        return self.prepositional(self.pick(lex.PLACE_PREPOSITIONS), PLACE, depth)

    def time(self, depth: int) -> Phrase:
        if self.chance(0.3):
            event = self.prepositional(self.pick(("before", "after")), EVENT, depth)
            return attach(event, before=[_NOT_LONG.as_("advmod")])
        return self.prepositional(self.pick(lex.TIME_PREPOSITIONS), EVENT, depth)


_NOT_FAR = attach(word("far", "ADV", "RB"), before=[lex.NOT.as_("advmod")])
_NOT_LONG = attach(word("long", "ADV", "RB"), before=[lex.NOT.as_("advmod")])


def _part(name: str, entity: str) -> Phrase:
    return Phrase(Token(name, "PROPN", "NNP", entity))
