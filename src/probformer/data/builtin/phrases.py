"""Words with a dependency tree over them: what the rules of the grammar return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from probformer.sentinels import ROOT


@dataclass(frozen=True, slots=True)
class Token:
    """A word with its tags."""

    word: str
    upos: str
    xpos: str
    entity: str = "O"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A word and the phrases that depend on it, in the order of the sentence."""

    token: Token
    before: tuple[Phrase, ...] = ()
    after: tuple[Phrase, ...] = ()
    plural: bool = False
    relation: str = "root"
    """Its relation to its head, as in Universal Dependencies: "nsubj", "obj", …"""

    def as_(self, relation: str) -> Phrase:
        """The same phrase with this relation to the head that it is attached to."""
        return Phrase(self.token, self.before, self.after, self.plural, relation)

    def dependents(self) -> Iterator[Phrase]:
        yield from self.before
        yield from self.after


def word(form: str, upos: str, xpos: str, plural: bool = False) -> Phrase:
    return Phrase(Token(form, upos, xpos), plural=plural)


def attach(head: Phrase, before: Sequence[Phrase] = (), after: Sequence[Phrase] = ()) -> Phrase:
    """The head with more dependents, outside those that it has; each has its relation already."""
    before, after = (*before, *head.before), (*head.after, *after)
    return Phrase(head.token, before, after, head.plural, head.relation)


def laid_out(root: Phrase) -> tuple[tuple[Phrase, ...], tuple[int, ...]]:
    """The phrases of the n words in order, and the position of the head of each, or `ROOT`."""
    phrases: list[Phrase] = []
    heads: list[int] = []
    _lay_out(root, phrases, heads)
    return tuple(phrases), tuple(heads)


def _lay_out(phrase: Phrase, phrases: list[Phrase], heads: list[int]) -> int:
    dependents = [_lay_out(dependent, phrases, heads) for dependent in phrase.before]
    position = len(phrases)
    phrases.append(phrase)
    heads.append(ROOT)
    dependents += [_lay_out(dependent, phrases, heads) for dependent in phrase.after]
    for dependent in dependents:
        heads[dependent] = position
    return position
