"""COGS: from a logical form to five tags for each word, and back.

A word fills one role at most, so a logical form is a tree over the words. A preposition (PREP) is a
child of the noun that it modifies, and the noun of its phrase (PP_NOUN) a child of the preposition.
One term is not in the tree: the agent of a verb under "xcomp", which is its governor's agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from probformer.errors import InputError, require

NO_PARENT = -1
NAME, NOUN, VERB = "PNOUN", "CNOUN", "VERB"
DEFINITE, INDEFINITE = "DEF", "INDEF"
PREPOSITION, PREPOSITIONAL_NOUN = "PREP", "PP_NOUN"
VERB_ROLES = ("agent", "theme", "recipient", "ccomp", "xcomp")

_AT = "x _ ([0-9]{1,9})"
_NOUN = re.compile(rf"(\* )?(\S+) \( {_AT} \)")
_MODIFIER = re.compile(rf"(\S+) \. nmod \. (\S+) \( {_AT} , {_AT} \)")
_ROLE = re.compile(rf"(\S+) \. ({'|'.join(VERB_ROLES)}) \( {_AT} , (?:{_AT}|(\S+)) \)")
_PRIMITIVES = {
    "LAMBDA a . WORD ( a )": NOUN,
    "LAMBDA a . LAMBDA e . WORD . agent ( e , a )": VERB,
    "LAMBDA a . LAMBDA e . WORD . theme ( e , a )": VERB,
    "LAMBDA a . LAMBDA b . LAMBDA e . WORD . agent ( e , b ) AND WORD . theme ( e , a )": VERB,
}


@dataclass(frozen=True)
class WordTags:
    """Five tags for each of n words; "" where a word does not have the tag."""

    parent: tuple[int, ...]
    """The position of the word whose role this one fills, or `NO_PARENT`."""
    role: tuple[str, ...]
    """One of `VERB_ROLES`; PREP under a noun; PP_NOUN under a preposition."""
    category: tuple[str, ...]
    """PNOUN for a name, CNOUN for another noun, VERB for a verb unless it is an "xcomp"."""
    noun_type: tuple[str, ...]
    """DEF or INDEF for a CNOUN."""
    verb_name: tuple[str, ...]
    """The verb as the logical form writes it."""


def tags_from_form(words: Sequence[str], form: str) -> WordTags:
    """The tags from which `form_from_tags` rebuilds a logical form.

    A primitive, which is a single word, has a category only, and a verb name if it is a verb.

    Args:
        words: n words.
        form: Their logical form, in the notation of COGS.

    Raises:
        InputError: The form is malformed, or cannot be rebuilt from tags.
    """
    if len(words) == 1:
        return _primitive_tags(words[0], form)
    draft = _Draft(words)
    for term in re.split(" ; | AND ", form):
        draft.add(term)
    tags = draft.tags()
    rebuilt = form_from_tags(words, tags)
    require(rebuilt == form, f"the logical form is {form!r}, expected {rebuilt!r} from its terms")
    return tags


def form_from_tags(words: Sequence[str], tags: WordTags) -> str:
    """The logical form of tags: definite nouns first, then all other terms by position.

    All tags are accepted: one that contradicts the others adds no term. The form of a primitive
    cannot be rebuilt from its tags and is empty.
    """
    nouns = [f"{word.lower()} ( x _ {at} )" for at, word in enumerate(words)]
    definite = [f"* {nouns[at]}" for at, kind in enumerate(tags.noun_type) if kind == DEFINITE]
    terms = [(at, -1, nouns[at]) for at, kind in enumerate(tags.noun_type) if kind == INDEFINITE]
    for parent, relation, at in _relations(words, tags):
        filler = words[at] if tags.category[at] == NAME else f"x _ {at}"
        terms.append((parent, at, f"{relation} ( x _ {parent} , {filler} )"))
    rest = " AND ".join(text for _, _, text in sorted(terms))
    return " ; ".join([*definite, rest] if rest else definite)


def _relations(words: Sequence[str], tags: WordTags) -> Iterator[tuple[int, str, int]]:
    """The terms of roles: a position, the text before the bracket, the argument's position."""
    parents = {at: parent for at, parent in enumerate(tags.parent) if 0 <= parent < len(words)}
    agents: dict[int, int] = {}
    for at, parent in parents.items():
        role = tags.role[at]
        if role == PREPOSITIONAL_NOUN and tags.role[parent] == PREPOSITION and parent in parents:
            noun = parents[parent]
            yield noun, f"{words[noun].lower()} . nmod . {words[parent]}", at
        elif role in VERB_ROLES and tags.verb_name[parent]:
            yield parent, f"{tags.verb_name[parent]} . {role}", at
            if role == "agent":
                agents.setdefault(parent, at)
    for at, parent in parents.items():  # left to right: a governor precedes what it governs
        governed = tags.role[at] == "xcomp" and tags.verb_name[at] != ""
        if governed and parent in agents and at not in agents:
            agents[at] = agents[parent]
            yield at, f"{tags.verb_name[at]} . agent", agents[at]


def _primitive_tags(word: str, form: str) -> WordTags:
    shapes = {shape.replace("WORD", word.lower()): kind for shape, kind in _PRIMITIVES.items()}
    shapes[word] = NAME
    expected = f"expected {', '.join(map(repr, shapes))}"
    require(form in shapes, f"the logical form of a single word is {form!r}, {expected}")
    verb_name = word.lower() if shapes[form] == VERB else ""
    return WordTags((NO_PARENT,), ("",), (shapes[form],), ("",), (verb_name,))


class _Draft:
    """The tags that the terms added so far determine."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.parent = [NO_PARENT] * len(words)
        columns = ([""] * len(words) for _ in range(4))
        self.role, self.category, self.noun_type, self.verb_name = columns

    def tags(self) -> WordTags:
        columns = (self.role, self.category, self.noun_type, self.verb_name)
        return WordTags(tuple(self.parent), *map(tuple, columns))

    def add(self, term: str) -> None:
        if match := _NOUN.fullmatch(term):
            star, noun, at = match.groups()
            self.noun_type[self._noun(noun, at)] = DEFINITE if star else INDEFINITE
        elif match := _MODIFIER.fullmatch(term):
            noun, preposition, at, other = match.groups()
            self._modify(self._noun(noun, at), preposition, self._position(other))
        elif match := _ROLE.fullmatch(term):
            verb, role, at, other, name = match.groups()
            self._fill(verb, role, self._position(at), other, name)
        else:
            nouns = "'* dog ( x _ 1 )', 'dog ( x _ 1 )', 'dog . nmod . in ( x _ 1 , x _ 4 )'"
            expected = f"{nouns} or 'like . ROLE ( x _ 2 , x _ 1 )' with {', '.join(VERB_ROLES)}"
            raise InputError(f"the logical form has the term {term!r}, expected {expected}")

    def _modify(self, noun: int, preposition: str, other: int) -> None:
        between = [at for at in range(noun + 1, other) if self.words[at] == preposition]
        where = f"between positions {noun} and {other}"
        require(
            between != [],
            f"the logical form has {preposition!r} {where}, but no word there is {preposition!r}",
        )
        self._attach(between[-1], noun, PREPOSITION)
        self._attach(other, between[-1], PREPOSITIONAL_NOUN)

    def _fill(self, verb: str, role: str, at: int, other: str | None, name: str) -> None:
        self.verb_name[at] = verb
        governed = self.role[at] == "xcomp"
        if not governed:
            self._classify(at, VERB)
        if not (governed and role == "agent"):
            self._attach(self._position(other) if other else self._next(name), at, role)

    def _attach(self, at: int, parent: int, role: str) -> None:
        free = self.role[at] == ""
        require(free, f"the logical form has position {at} in two roles, expected one")
        self.parent[at], self.role[at] = parent, role

    def _classify(self, at: int, category: str) -> int:
        known = self.category[at] or category
        both = f"{known} and {category}"
        require(known == category, f"the logical form has position {at} as both {both}")
        self.category[at] = category
        return at

    def _position(self, digits: str) -> int:
        expected = f"expected a position below {len(self.words)}"
        require(int(digits) < len(self.words), f"the logical form has 'x _ {digits}', {expected}")
        return int(digits)

    def _noun(self, noun: str, digits: str) -> int:
        at = self._position(digits)
        word = self.words[at].lower()
        require(noun == word, f"the logical form has {noun!r} at position {at}, expected {word!r}")
        return self._classify(at, NOUN)

    def _next(self, name: str) -> int:
        """A logical form mentions names in the order of the sentence."""
        free = (at for at, word in enumerate(self.words) if (word, self.category[at]) == (name, ""))
        at = next(free, NO_PARENT)
        require(at != NO_PARENT, f"the logical form has {name!r} more often than the sentence")
        return self._classify(at, NAME)
