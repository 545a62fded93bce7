"""Entities are read the same from every tag scheme, and counted as seqeval counts them."""

import random
from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOBES, Entities

from helpers.messages import refused
from probformer.data.spans import (
    SchemeReader,
    Span,
    f1,
    spans_by_conlleval,
    spans_by_vote,
    spans_strict,
)
from probformer.errors import InputError

KINDS = ("PER", "LOC", "work-of-art", "E-LOC", "_")
SCHEMES = ("IOB1", "IOB2", "BIOES")
UNWARNED = {"zero_division": 0}
"""Where there is nothing to count, seqeval then returns 0 as always, but without a warning."""


def place(word: int) -> str:
    return f"corpus:{word + 1}"


def converted(*sentences: Sequence[str]) -> list[tuple[str, ...]]:
    reader = SchemeReader()
    return [reader.to_bioes(tags, place) for tags in sentences]


def tags_over(kinds: Sequence[str]) -> list[str]:
    return ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in kinds)]


def sequences(tags: Sequence[str], longest: int) -> Iterator[list[str]]:
    for length in range(longest + 1):
        yield from map(list, product(tags, repeat=length))


# From any scheme to BIOES. The truth is a list of entities, written in each scheme.


def layouts(length: int, kinds: Sequence[str]) -> Iterator[list[tuple[str, int]]]:
    """All ways to cut a sentence into entities and words outside, as kinds and lengths."""
    if length == 0:
        yield []
    for first in range(1, length + 1):
        for rest in layouts(length - first, kinds):
            yield from ([(kind, first), *rest] for kind in kinds)
            if first == 1:
                yield [("", 1), *rest]


def written(layout: Sequence[tuple[str, int]], scheme: str) -> tuple[str, ...]:
    tags: list[str] = []
    for at, (kind, length) in enumerate(layout):
        if not kind:
            tags.append("O")
            continue
        touches = at > 0 and layout[at - 1][0] == kind
        prefixes = list("I" * length)
        if scheme != "IOB1" or touches:
            prefixes[0] = "B"
        if scheme == "BIOES":
            prefixes[-1] = "E" if length > 1 else "S"
        tags += [f"{prefix}-{kind}" for prefix in prefixes]
    return tuple(tags)


def loosened(tags: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """IOB1 tags with "B" for any of the "I"s that start an entity."""
    choices = []
    for before, tag in zip(("O", *tags), tags, strict=False):
        starts = tag.startswith("I") and tag[1:] != before[1:]
        choices.append((tag, "B" + tag[1:]) if starts else (tag,))
    yield from product(*choices)


def readings(longest: int, kinds: Sequence[str]) -> dict[str, dict[tuple[str, ...], tuple]]:
    """For each scheme, its taggings, and what each of them is in BIOES."""
    return {
        scheme: {
            tags: written(layout, "BIOES")
            for length in range(longest + 1)
            for layout in layouts(length, kinds)
            for tags in (loosened if scheme == "IOB1" else lambda tags: [tags])(
                written(layout, scheme)
            )
        }
        for scheme in SCHEMES
    }


def check_a_corpus(corpus: Sequence[Sequence[str]], truth: dict[str, dict]) -> bool:
    """It is read if there is a scheme that allows all of it; returns whether there is."""
    entities = [tag for tags in corpus for tag in tags if tag != "O"]
    possible = [truth[scheme] for scheme in SCHEMES if all(map(truth[scheme].__contains__, corpus))]
    if entities and not entities[0].startswith("I"):  # the first entity decides
        possible = [bioes for bioes in possible if bioes is not truth["IOB1"]]
    if possible:
        found = converted(*corpus)
        assert all(found == [bioes[tags] for tags in corpus] for bioes in possible), corpus
    else:
        with pytest.raises(InputError):
            converted(*corpus)
    return bool(possible)


def test_all_short_sentences_are_read_or_refused():
    truth = readings(4, ("X", "Y"))
    taggings = list(map(tuple, sequences(tags_over(("X", "Y")), 4)))
    assert 500 < sum(check_a_corpus([tags], truth) for tags in taggings) < len(taggings) / 2


def test_all_pairs_of_short_sentences_are_read_or_refused():
    truth = readings(2, ("X", "Y"))
    taggings = list(map(tuple, sequences(tags_over(("X", "Y")), 2)))
    pairs = list(product(taggings, repeat=2))
    assert 500 < sum(check_a_corpus(pair, truth) for pair in pairs) < len(pairs) / 2


def random_layout(chance: random.Random) -> list[tuple[str, int]]:
    kinds = [chance.choice(("", "", *KINDS)) for _ in range(chance.randint(0, 6))]
    return [(kind, chance.randint(1, 4) if kind else 1) for kind in kinds]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_corpus_is_read_from_its_scheme(scheme):
    chance = random.Random(0)
    corpus = [random_layout(chance) for _ in range(300)]
    sentences = [written(layout, scheme) for layout in corpus]
    found = converted(*sentences)
    assert found == [written(layout, "BIOES") for layout in corpus]
    assert list(map(seqeval_tolerant, found)) == list(map(seqeval_tolerant, sentences))


@pytest.mark.parametrize(
    ("given", "bioes"),
    [
        ("", ""),
        ("O O", "O O"),
        ("I-A I-A B-A O I-B", "B-A E-A S-A O S-B"),
        ("I-A I-B I-B I-B I-A", "S-A B-B I-B E-B S-A"),
        ("B-A B-A I-A B-B", "S-A B-A E-A S-B"),
        ("S-A B-A E-A O B-B I-B E-B", "S-A B-A E-A O B-B I-B E-B"),
        ("I-a-b I-b I-a", "S-a-b S-b S-a"),
        ("I-A O B-B I-B B-A I-B", "S-A O B-B E-B S-A S-B"),
    ],
)
def test_conversions_by_hand(given, bioes):
    assert converted(given.split()) == [tuple(bioes.split())]


# What is refused


@pytest.mark.parametrize(
    "tag", ["", "o", "B", "B-", "-PER", "BPER", "L-PER", "b-PER", "O-PER", "_"]
)
def test_a_tag_of_another_shape_is_named(tag):
    with refused("corpus:2: ", repr(tag)):
        converted(["O", tag])


@pytest.mark.parametrize(
    ("first", "second", "place", "tag", "known"),
    [
        ("O B-PER", "O O I-LOC", "dev:3", "'I-LOC'", "'B-PER' at train:2"),
        ("I-PER", "O S-LOC", "dev:2", "'S-LOC'", "'I-PER' at train:1"),
        ("B-PER I-PER", "B-PER I-PER E-PER", "dev:3", "'E-PER'", "'B-PER' at train:1"),
        ("B-PER E-PER", "O B-LOC I-LOC O", "dev:3", "'I-LOC'", "'E-PER' at train:2"),
        ("S-PER", "I-LOC", "dev:1", "'I-LOC'", "'S-PER' at train:1"),
        ("S-PER", "S-LOC B-LOC O", "dev:2", "'B-LOC'", "'S-PER' at train:1"),
        ("O O", "B-LOC I-PER", "dev:2", "'I-PER'", "'B-LOC' at dev:1"),
        ("O", "B-LOC O S-PER", "dev:1", "'B-LOC'", "'S-PER' at dev:3"),
    ],
)
def test_mixed_schemes_are_named_with_their_places(first, second, place, tag, known):
    reader = SchemeReader()
    reader.to_bioes(first.split(), lambda word: f"train:{word + 1}")
    with refused(place, tag, known):
        reader.to_bioes(second.split(), lambda word: f"dev:{word + 1}")


def test_a_refused_sentence_shows_no_scheme():
    reader = SchemeReader()
    with pytest.raises(InputError):
        reader.to_bioes(["I-PER", "S-LOC"], place)
    assert reader.to_bioes(["B-PER"], place) == ("S-PER",)


# Counting as seqeval does


def seqeval_tolerant(tags: Sequence[str]) -> set[Span]:
    return {Span(start, last + 1, kind) for kind, start, last in get_entities(list(tags))}


def seqeval_strict(tags: Sequence[str]) -> set[Span]:
    (entities,) = Entities([list(tags)], IOBES).entities
    return {Span(entity.start, entity.end, entity.tag) for entity in entities}


def random_tags(chance: random.Random, length: int) -> list[str]:
    """Of few types, so that neighbours often agree, and well-formed entities are not rare."""
    return chance.choices(tags_over(chance.sample(KINDS, chance.randint(1, 3))), k=length)


def with_mistakes(chance: random.Random, tags: Sequence[str]) -> list[str]:
    return [tag if chance.random() < 0.8 else chance.choice(tags_over(KINDS)) for tag in tags]


def check_spans(tags: Sequence[str]) -> None:
    assert spans_by_conlleval(tags) == seqeval_tolerant(tags), tags
    assert spans_strict(tags) == seqeval_strict(tags), tags


def test_the_spans_of_all_short_sentences_are_those_of_seqeval():
    for tags in sequences(tags_over(("X", "a-b")), 3):
        check_spans(tags)


def test_the_spans_of_random_sentences_are_those_of_seqeval():
    chance = random.Random(1)
    for _ in range(2_000):
        check_spans(random_tags(chance, chance.randint(1, 15)))


@pytest.mark.parametrize(
    ("spans_of", "settings"),
    [
        (spans_by_conlleval, UNWARNED),
        (spans_strict, {"mode": "strict", "scheme": IOBES, **UNWARNED}),
    ],
    ids=["conlleval", "strict"],
)
@pytest.mark.parametrize("sentences", [1, 2, 100])
def test_f1_of_summed_counts_is_that_of_seqeval(spans_of, settings, sentences):
    chance = random.Random(sentences)
    seen = set()
    for _ in range(2_000 // sentences):
        gold, predicted = [], []
        for _ in range(sentences):
            gold.append(random_tags(chance, chance.randint(1, 15)))
            predicted.append(with_mistakes(chance, gold[-1]))
        golds, guesses = list(map(spans_of, gold)), list(map(spans_of, predicted))
        right = sum(len(a & b) for a, b in zip(golds, guesses, strict=True))
        found = f1(right, sum(map(len, guesses)), sum(map(len, golds)))
        assert found == pytest.approx(f1_score(gold, predicted, **settings))
        seen.add(found)
    assert len(seen) > 10


# Reading by vote


def test_by_vote_well_formed_entities_are_what_they_say():
    entities = [["O"], ["S-X"], ["S-Y"], ["B-X", "E-X"], ["B-Y", "I-Y", "E-Y"]]
    for chosen in product(entities, repeat=4):
        tags = [tag for entity in chosen for tag in entity]
        assert spans_by_vote(tags) == spans_strict(tags), tags


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-X E-Y", [(0, 2, "X")]),  # the first word counts more
        ("B-X I-Y E-Y", [(0, 3, "Y")]),
        ("I-X I-Y", [(0, 2, "X")]),  # of as many votes the first
        ("B-X E-X I-X", [(0, 3, "X")]),  # an "E" ends nothing
        ("S-X I-X", [(0, 2, "X")]),
        ("S-X E-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("S-X E-Y I-X I-X", [(0, 1, "X"), (1, 4, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("O I-X O", [(1, 2, "X")]),
    ],
)
def test_by_vote_tags_that_do_not_fit_are_joined(tags, expected):
    assert spans_by_vote(tags.split()) == {Span(*span) for span in expected}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((0, 0, 0), 0), ((0, 3, 0), 0), ((0, 0, 3), 0), ((2, 2, 2), 1), ((1, 2, 4), 1 / 3)],
)
def test_f1_by_hand(counts, expected):
    assert f1(*counts) == pytest.approx(expected)
