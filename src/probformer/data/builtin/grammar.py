"""The built-in probabilistic grammar, from clauses up: `Grammar(random).sentence()`."""

from __future__ import annotations

from collections.abc import Sequence

from probformer.data.builtin import lexicon as lex
from probformer.data.builtin.lexicon import (
    ANIMAL,
    EVENT,
    FOOD,
    IDEA,
    ORGANISATION,
    PERSON,
    PLACE,
    THING,
)
from probformer.data.builtin.phrases import Phrase, attach, word
from probformer.data.builtin.verb_phrases import Slot, VerbPhrases

_WHO, _WHAT = word("who", "PRON", "WP"), word("what", "PRON", "WP")
_THAT, _WHICH = word("that", "PRON", "WDT"), word("which", "PRON", "WDT")


class Grammar(VerbPhrases):
    """The rules for one sentence.

    A rule returns a `Phrase`, words with the tree over them, so gold heads are correct by
    construction, and `opinions.opinion_voiced` finds the class of a sentence from its tree.
    """

    def sentence(self, depth: int = 2) -> Phrase:
        rule = self.weighted((self.statement, 0.73), (self.question, 0.21), (self.imperative, 0.06))
        return rule(depth)

    # Clauses

    def subject_kind(self) -> str:
        others = (ANIMAL, 0.06), (THING, 0.05), (FOOD, 0.04), (PLACE, 0.05), (EVENT, 0.12)
        return self.weighted((PERSON, 0.45), *others, (IDEA, 0.16), (ORGANISATION, 0.07))

    def clause(self, depth: int) -> Phrase:
        kind = self.subject_kind()
        subject = self.noun_phrase(kind, depth)
        if depth > 0 and self.chance(0.17):
            auxiliaries, body = self.two_predicates(kind, subject.plural, depth)
        else:
            auxiliaries, body = self.predicate(kind, subject.plural, depth)
        return with_subject(body, subject, self.shortened(auxiliaries))

    def two_predicates(self, kind: str, plural: bool, depth: int) -> tuple[list[Phrase], Phrase]:
        """Two verb phrases with the same auxiliaries, or each with its own.

        The first has no clause in it: the second could be attached to that as well.
        """
        if self.chance(0.3):
            auxiliaries, first = self.predicate(kind, plural, depth=0)
            others, second = self.predicate(kind, plural, depth - 1)
            return auxiliaries, self.coordinated(first, attach(second, before=others))
        auxiliaries, form = self.verb_group(plural, negated=False)
        first = self.bare_phrase(kind, form, depth=0)
        second = self.bare_phrase(kind, form, depth - 1)
        return auxiliaries, self.coordinated(first, second)

    def coordinated(self, first: Phrase, second: Phrase) -> Phrase:
        conjunction = word(self.pick(("and", "but")), "CCONJ", "CC").as_("cc")
        comma = [lex.COMMA.as_("punct")] if self.chance(0.35) else []
        conjunct = attach(second, before=[*comma, conjunction])
        return attach(first, after=[conjunct.as_("conj")])

    def noun_clause(self, noun: Phrase, kind: str, depth: int) -> Phrase:
        if noun.token.word in lex.WITH_CLAUSE and self.chance(0.6):
            clause = attach(self.clause(depth), before=[lex.COMPLEMENTISER.as_("mark")])
            return clause.as_("acl")
        if noun.token.word in lex.WITH_INFINITIVE and self.chance(0.5):
            return self.infinitive(PERSON, depth).as_("acl")
        if self.chance(0.45):
            return self.reduced_clause(kind, depth).as_("acl")
        return self.relative_clause(kind, noun.plural, depth).as_("acl:relcl")

    def reduced_clause(self, kind: str, depth: int) -> Phrase:
        """ "guided by her", "walking off"."""
        if kind in (PERSON, ANIMAL) and self.chance(0.4):
            return self.bare_phrase(kind, "VBG", depth)
        verb = self.pick(lex.verbs_with_object(kind, self.opinions.next()))
        if self.chance(0.5):
            after = [self.prepositional("by", PERSON, 0).as_("obl:agent")]
        else:
            after = self.adverbials(1.0, 0)
        return attach(self.verb(verb, "VBN"), after=after)

    def relative_clause(self, kind: str, plural: bool, depth: int) -> Phrase:
        pronoun = self.pick((_THAT, _THAT, _WHO if kind == PERSON else _WHICH))
        if self.chance(0.5):
            auxiliaries, body = self.predicate(kind, plural, depth)
            return with_subject(body, pronoun, self.shortened(auxiliaries))
        subject = self.noun_phrase(PERSON, 0)
        auxiliaries, body, _ = self.predicate_with_gap(kind, subject.plural)
        opening = [] if self.chance(0.35) else [pronoun.as_("obj")]
        return attach(with_subject(body, subject, self.shortened(auxiliaries)), before=opening)

    def adverbial_clause(self, depth: int) -> Phrase:
        conjunction = self.pick(lex.CONJUNCTIONS)
        opening = word(conjunction, "SCONJ", "WRB" if conjunction == "when" else "IN")
        return attach(self.clause(depth), before=[opening.as_("mark")])

    # Statements

    def statement(self, depth: int) -> Phrase:
        rule = self.weighted(
            (self.clause, 0.42), (self.two_clauses, 0.3), (self.with_adverbial, 0.28)
        )
        return attach(rule(depth), after=[word(".", "PUNCT", ".").as_("punct")])

    def two_clauses(self, depth: int) -> Phrase:
        return self.coordinated(self.clause(depth), self.clause(depth - 1))

    def with_adverbial(self, depth: int) -> Phrase:
        main = self.clause(depth)
        if self.chance(0.2):
            adverbial = self.time(1).as_("obl")
        else:
            adverbial = self.adverbial_clause(depth - 1).as_("advcl")
        if self.chance(0.5):
            return attach(main, after=[adverbial])
        return attach(main, before=[attach(adverbial, after=[lex.COMMA.as_("punct")])])

    def imperative(self, depth: int) -> Phrase:
        sign, negated = self.stance()
        frame = self.frame(PERSON, sign, depth, with_be=False)
        body = frame.rule(self, Slot(PERSON, "VB", sign, depth))
        body = attach(body, before=self.imperative_group(negated))
        if self.chance(0.4):
            body = self.coordinated(body, self.clause(depth - 1))
        return attach(body, after=[word(".", "PUNCT", ".").as_("punct")])

    # Questions

    def question(self, depth: int) -> Phrase:
        rule = self.weighted(
            (self.yes_no_question, 0.43),
            (self.subject_question, 0.14),
            (self.object_question, 0.14),
            (self.adverb_question, 0.14),
            (self.tag_question, 0.15),
        )
        return attach(rule(depth), after=[word("?", "PUNCT", ".").as_("punct")])

    def inverted_clause(self, depth: int) -> Phrase:
        kind = self.subject_kind()
        subject = self.noun_phrase(kind, depth - 1)
        (first, *rest), body = self.predicate(kind, subject.plural, depth, inverted=True)
        return with_subject(body, subject, rest, inverted=[first])

    def yes_no_question(self, depth: int) -> Phrase:
        return self.perhaps_with_adverbial(self.inverted_clause(depth), depth)

    def perhaps_with_adverbial(self, question: Phrase, depth: int) -> Phrase:
        after = [self.adverbial_clause(depth - 1).as_("advcl")] if self.chance(0.3) else []
        return attach(question, after=after)

    def adverb_question(self, depth: int) -> Phrase:
        adverb = word(self.pick(("where", "when", "why")), "ADV", "WRB").as_("advmod")
        return attach(self.yes_no_question(depth), before=[adverb])

    def interrogative(self, kind: str) -> Phrase:
        """The phrase that a question begins with: who, what, which plans."""
        if self.chance(0.5):
            return _WHO if kind == PERSON else _WHAT
        which = word(self.pick(("which", "what")), "DET", "WDT")
        return attach(self.noun(kind), before=[which.as_("det")])

    def subject_question(self, depth: int) -> Phrase:
        kind = self.pick((PERSON, EVENT, IDEA, THING))
        subject = self.interrogative(kind)
        auxiliaries, body = self.predicate(kind, subject.plural, depth)
        question = with_subject(body, subject, self.shortened(auxiliaries))
        return self.perhaps_with_adverbial(question, depth)

    def object_question(self, depth: int) -> Phrase:
        subject = self.noun_phrase(PERSON, depth)
        (first, *rest), body, verb = self.predicate_with_gap(None, subject.plural, inverted=True)
        theme = self.interrogative(self.object_kind(verb)).as_("obj")
        question = with_subject(body, subject, rest, inverted=[theme, first])
        return self.perhaps_with_adverbial(question, depth)

    def tag_question(self, depth: int) -> Phrase:
        kind = self.subject_kind()
        subject = self.noun_phrase(kind, depth)
        auxiliaries, body = self.predicate(kind, subject.plural, depth)
        tag = self.tag(auxiliaries, body, self.pronoun_for(kind, subject))
        return attach(with_subject(body, subject, auxiliaries), after=[tag.as_("parataxis")])

    def pronoun_for(self, kind: str, subject: Phrase) -> Phrase:
        if subject.token.xpos == "PRP":
            return subject
        if subject.plural:
            return word("they", "PRON", "PRP", plural=True)
        return word(self.pick(("he", "she")) if kind == PERSON else "it", "PRON", "PRP")


def with_subject(
    body: Phrase, subject: Phrase, auxiliaries: Sequence[Phrase], inverted: Sequence[Phrase] = ()
) -> Phrase:
    """A predicate with its subject before its auxiliaries, except for those in `inverted`."""
    passive = any(word.relation == "aux:pass" for word in (*inverted, *auxiliaries))
    subject = subject.as_("nsubj:pass" if passive else "nsubj")
    return attach(body, before=[*inverted, subject, *auxiliaries])
