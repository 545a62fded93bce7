"""The rules for verbs with their auxiliaries and negation."""

from __future__ import annotations

from probformer.data.builtin import lexicon as lex
from probformer.data.builtin.inflection import Verb
from probformer.data.builtin.phrases import Phrase, attach, word
from probformer.data.builtin.random_choices import RandomChoices


class VerbGroups(RandomChoices):
    """Rules for verbs, auxiliaries and negation."""

    def verb(self, verb: Verb, form: str) -> Phrase:
        """In "They cut it" the form is always past: the present would look the same."""
        if form == "VBP" and verb.form("VBD") == verb.base:
            form = "VBD"
        return word(verb.form(form), "VERB", form)

    def verb_group(
        self,
        plural: bool,
        negated: bool,
        inverted: bool = False,
        be: str = "",
        progressive: bool = False,
    ) -> tuple[list[Phrase], str]:
        """Auxiliaries and adverbs with their relations, and the form of the verb after them.

        Args:
            plural: Whether the subject is plural.
            negated: Whether one of them is a negation.
            inverted: Whether the first one is placed before the subject.
            be: The relation of "be", "cop" or "aux:pass", if it is the last of them.
            progressive: Whether "is walking" is allowed.
        """
        finite = "VBD" if self.chance(0.5) else "VBP" if plural else "VBZ"
        never = negated and self.chance(0.25)
        tense = self.weighted(
            ("simple", 0.62), ("modal", 0.12), ("perfect", 0.16), ("progressive", 0.1)
        )
        form, group = finite, list[Phrase]()
        if tense == "modal":
            form, group = "VB", [word(self.pick(lex.MODALS), "AUX", "MD").as_("aux")]
        elif tense == "perfect":
            form, group = "VBN", [word(lex.HAVE[finite], "AUX", finite).as_("aux")]
        elif be:
            group = [_be(finite, plural).as_(be)]
        elif tense == "progressive" and progressive:
            form, group = "VBG", [_be(finite, plural).as_("aux")]
        elif inverted or (negated and not never):
            form, group = "VB", [word(lex.DO[finite], "AUX", finite).as_("aux")]
        if never:
            group.append(lex.NEVER.as_("advmod"))
        elif negated:
            negator = lex.NOT if inverted else self.not_after(group[0])
            group.append(negator.as_("advmod"))
        elif self.chance(0.34):
            group.append(word(self.pick(lex.FREQUENCY), "ADV", "RB").as_("advmod"))
        if be and form != finite:
            group.append(word(lex.BE[form], "AUX", form).as_(be))
        return group, "VBN" if be else form

    def not_after(self, auxiliary: Phrase) -> Phrase:
        short = auxiliary.token.word not in lex.NEVER_WITH_N_T and self.chance(0.35)
        return lex.N_T if short else lex.NOT

    def shortened(self, auxiliaries: list[Phrase]) -> list[Phrase]:
        """With probability 0.6, "'s" for "is" or "has", "'d" for "had" or "would"."""
        words = [auxiliary.token.word for auxiliary in auxiliaries[:2]]
        if not words or words[0] not in lex.SHORT or words[1:] == ["n't"] or self.chance(0.4):
            return auxiliaries
        first = auxiliaries[0]
        short = word(lex.SHORT[words[0]], "AUX", first.token.xpos).as_(first.relation)
        return [short, *auxiliaries[1:]]

    def imperative_group(self, negated: bool) -> list[Phrase]:
        if not negated:
            return []
        do = word("do", "AUX", "VB")
        if self.chance(0.25):
            return [lex.NEVER.as_("advmod")]
        return [do.as_("aux"), self.not_after(do).as_("advmod")]

    def tag(self, auxiliaries: list[Phrase], verb: Phrase, pronoun: Phrase) -> Phrase:
        """The question tag after a statement: "did she", "is n't it"."""
        subject = pronoun.as_("nsubj")
        if auxiliaries and auxiliaries[0].token.upos == "AUX":
            head = Phrase(auxiliaries[0].token)
        else:
            head = word(lex.DO[verb.token.xpos], "AUX", verb.token.xpos)
        if any(auxiliary.token.word in lex.NEGATORS for auxiliary in auxiliaries):
            after = [subject]
        else:
            found = self.not_after(head)
            negator = found.as_("advmod")
            after = [negator, subject] if found is lex.N_T else [subject, negator]
        return attach(head, before=[lex.COMMA.as_("punct")], after=after)


def _be(finite: str, plural: bool) -> Phrase:
    return word(lex.BE.get(finite, "were" if plural else "was"), "AUX", finite)
