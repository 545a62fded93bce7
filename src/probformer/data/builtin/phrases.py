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

    def dependents(self) -> Iterator[Phrase]:
        yield from self.before
        yield from self.after


def word(form: str, upos: str, xpos: str, plural: bool = False) -> Phrase:
    return Phrase(Token(form, upos, xpos), plural=plural)


def attach(head: Phrase, before: Sequence[Phrase] = (), after: Sequence[Phrase] = ()) -> Phrase:
    """The head with more dependents, outside those that it has."""
    return Phrase(head.token, (*before, *head.before), (*head.after, *after), head.plural)


def laid_out(root: Phrase) -> tuple[tuple[Token, ...], tuple[int, ...]]:
    """The n words in order, and the position of the head of each, or `ROOT`."""
    tokens: list[Token] = []
    heads: list[int] = []
    _lay_out(root, tokens, heads)
    return tuple(tokens), tuple(heads)


def _lay_out(phrase: Phrase, tokens: list[Token], heads: list[int]) -> int:
    dependents = [_lay_out(dependent, tokens, heads) for dependent in phrase.before]
    position = len(tokens)
    tokens.append(phrase.token)
    heads.append(ROOT)
    dependents += [_lay_out(dependent, tokens, heads) for dependent in phrase.after]
    for dependent in dependents:
        heads[dependent] = position
    return position
