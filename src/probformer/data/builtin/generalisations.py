"""The cases of generalisation: a word in a role that it never has in training, or a structure that
is deeper or in another position. Training has the same word in another role, or the same structure
less deep or elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from probformer.data.builtin.logical_forms import (
    ACTIVE_ONLY,
    ANIMATE,
    DOUBLE_OBJECT_ONLY,
    FOR_ANIMATE,
    FOR_THINGS,
    INTRANSITIVE,
    OBJECT_ONLY,
    PASSIVE_ONLY,
    SUBJECT_ONLY,
    THINGS,
    TO_ONLY,
    TRAIN_DEPTH,
    Writer,
)
from probformer.data.sentence import Sentence

DEEPEST = 5

Rule = Callable[[Writer], int]


@dataclass(frozen=True)
class Generalisation:
    """A case: what training has of it, and what "gen" tests."""

    seen: Rule
    """A sentence for training, to learn from."""
    unseen: Rule
    """A clause for "gen"."""
    embedded: bool = True
    """Whether "gen" has it inside another clause too."""


def _with_object(noun: str) -> Rule:
    return lambda w: w.transitive(w.pick(FOR_ANIMATE), w.person(), lambda: w.noun(noun))


def _with_modified_object(write_depth: Callable[[Writer], int]) -> Rule:
    def rule(w: Writer) -> int:
        verb, noun, depth = w.pick(FOR_THINGS), w.pick(THINGS), write_depth(w)
        return w.transitive(verb, w.agent(), lambda: w.nested(noun, depth))

    return rule


def _with_modified_subject(w: Writer) -> int:
    subject = w.nested(w.pick(ANIMATE), 1)
    return w.transitive(w.pick(FOR_THINGS), subject, w.thing)


def _deeper(w: Writer) -> int:
    return w.random.randint(TRAIN_DEPTH + 1, DEEPEST)


GENERALISATIONS: dict[str, Generalisation] = {
    "subject noun seen only as object": Generalisation(
        seen=_with_object(OBJECT_ONLY),
        unseen=lambda w: w.transitive(w.pick(FOR_THINGS), w.noun(OBJECT_ONLY), w.thing),
    ),
    "object noun seen only as subject": Generalisation(
        seen=lambda w: w.bare(w.pick(INTRANSITIVE), w.noun(SUBJECT_ONLY)),
        unseen=_with_object(SUBJECT_ONLY),
    ),
    "active verb seen only in the passive": Generalisation(
        seen=lambda w: w.passive_of(PASSIVE_ONLY, w.pick(ANIMATE)),
        unseen=lambda w: w.transitive(PASSIVE_ONLY, w.agent(), w.person),
    ),
    "passive verb seen only in the active": Generalisation(
        seen=lambda w: w.transitive(ACTIVE_ONLY, w.agent(), w.person),
        unseen=lambda w: w.passive_of(ACTIVE_ONLY, w.pick(ANIMATE)),
    ),
    "double-object verb seen only with to": Generalisation(
        seen=lambda w: w.dative_with_to(TO_ONLY),
        unseen=lambda w: w.double_object(TO_ONLY),
    ),
    "verb with to seen only with two objects": Generalisation(
        seen=lambda w: w.double_object(DOUBLE_OBJECT_ONLY),
        unseen=lambda w: w.dative_with_to(DOUBLE_OBJECT_ONLY),
    ),
    "prepositional phrase on the subject": Generalisation(
        seen=_with_modified_object(lambda w: 1),
        unseen=_with_modified_subject,
    ),
    "deeper recursion of prepositional phrases": Generalisation(
        seen=_with_modified_object(lambda w: TRAIN_DEPTH),
        unseen=_with_modified_object(_deeper),
    ),
    "deeper recursion of sentential complements": Generalisation(
        seen=lambda w: w.clause(TRAIN_DEPTH, w.simple),
        unseen=lambda w: w.clause(_deeper(w), w.simple),
        embedded=False,
    ),
}
_NAMED_CASES = tuple(GENERALISATIONS.items())


def draw_in_distribution(random: Random, place: int) -> Sentence:
    """A sentence of "train", "dev" or "test"; the first ones are the `seen` of each case."""
    writer = Writer(random)
    if place < len(_NAMED_CASES):
        _NAMED_CASES[place][1].seen(writer)
    else:
        depth = random.choices(range(TRAIN_DEPTH + 1), (0.7, 0.18, 0.12))[0]
        writer.clause(depth, writer.simple)
    return writer.sentence(label=None)


def draw_generalisation(random: Random, place: int) -> Sentence:
    """A sentence of "gen", the cases in turn."""
    name, case = _NAMED_CASES[place % len(_NAMED_CASES)]
    writer = Writer(random)
    depth = 1 if case.embedded and writer.chance(0.3) else 0
    writer.clause(depth, lambda: case.unseen(writer))
    return writer.sentence(name)
