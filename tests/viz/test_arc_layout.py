"""Where words and arcs go: nothing overlaps, nothing is lost."""

import math
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probformer.viz.arc_layout import Arc, Bow, Measure, lay_out
from probformer.viz.words import cells, escaped, is_right_to_left, pixels, run_right_to_left

WIDE = Measure(width=len, gap=2, port=2, root=4, margin=9, limit=float("inf"))
NARROW = Measure(width=len, gap=2, port=2, root=4, margin=9, limit=60)


@st.composite
def sentences(draw):
    n = draw(st.integers(1, 9))
    pairs = [(i, j) for i in range(n) for j in [None, *range(n)] if i != j]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=14))
    words = draw(st.lists(st.text("abc", min_size=1, max_size=12), min_size=n, max_size=n))
    return words, [Arc(i, j, 0.5) for i, j in chosen]


def span(bow: Bow) -> tuple[float, float]:
    return min(bow.head, bow.dependent), max(bow.head, bow.dependent)


@pytest.mark.parametrize("measure", [WIDE, NARROW])
@given(sentences())
def test_arcs_of_a_level_are_beside_each_other(measure, sentence):
    for row in lay_out(*sentence, measure):
        for one, other in combinations(row.bows, 2):
            (a, b), (c, d) = span(one), span(other)
            if one.level == other.level:
                assert b < c or d < a, (one, other)


@given(sentences())
def test_an_arc_over_another_is_above_it_and_does_not_touch_it(sentence):
    (row,) = lay_out(*sentence, WIDE)
    for one, other in combinations(row.bows, 2):
        words = [{bow.arc.head, bow.arc.dependent} for bow in (one, other)]
        if words[0] == words[1]:
            continue
        inner, outer = sorted((one, other), key=lambda bow: abs(bow.head - bow.dependent))
        low, high = sorted((outer.arc.head, outer.arc.dependent))
        if low <= min(inner.arc.head, inner.arc.dependent) and high >= max(
            inner.arc.head, inner.arc.dependent
        ):
            assert outer.level > inner.level
            assert span(outer)[0] < span(inner)[0] < span(inner)[1] < span(outer)[1]


@pytest.mark.parametrize("measure", [WIDE, NARROW])
@given(sentences())
def test_every_arc_and_every_word_is_there(measure, sentence):
    words, arcs = sentence
    rows = lay_out(words, arcs, measure)
    assert [word for row in rows for word in row.places] == list(range(len(words)))
    for arc in arcs:
        seen = [bow for row in rows for bow in row.bows if bow.arc == arc]
        straight = [arc for row in rows for other, _ in row.roots if other == arc]
        if arc.head is None:
            assert (len(seen), len(straight)) == (0, 1)
        elif any({arc.head, arc.dependent} <= row.places.keys() for row in rows):
            assert [bow.elsewhere for bow in seen] == [None]
        else:
            assert sorted(bow.elsewhere for bow in seen) == sorted((arc.head, arc.dependent))


@given(sentences())
def test_words_have_room_for_themselves_and_for_their_arcs(sentence):
    words, arcs = sentence
    for row in lay_out(words, arcs, NARROW):
        places = sorted((x, len(words[word])) for word, x in row.places.items())
        for (x, size), (after, other) in pairwise(places):
            assert x + size / 2 + NARROW.gap <= after - other / 2 + 1e-9
        assert places[0][0] - places[0][1] / 2 >= 0
        assert places[-1][0] + places[-1][1] / 2 <= row.width
        ends = [x for bow in row.bows for x in (bow.head, bow.dependent)]
        assert all(0 <= x <= row.width for x in ends)
        landing = [bow.dependent for bow in row.bows if bow.elsewhere != bow.arc.dependent]
        landing += [x for _, x in row.roots]
        assert len(set(landing)) == len(landing)
        roots = sorted(x for _, x in row.roots)
        assert all(after - x >= NARROW.root + NARROW.gap for x, after in pairwise(roots))
        assert all(NARROW.root / 2 <= x <= row.width - NARROW.root / 2 for x in roots)


@given(sentences(), st.lists(st.floats(0, 30), min_size=14, max_size=14))
def test_arcs_are_as_long_as_their_marks_are_wide(sentence, widths):
    words, arcs = sentence
    marks = dict(zip((arc[:2] for arc in arcs), widths, strict=False))
    (row,) = lay_out(words, arcs, replace(WIDE, mark=lambda arc: marks[arc[:2]]))
    for bow in row.bows:
        left, right = span(bow)
        assert right - left >= marks[bow.arc[:2]] - 1e-9
    roots = sorted((x, marks[arc[:2]]) for arc, x in row.roots)
    for (x, width), (after, other) in pairwise(roots):
        assert x + width / 2 + WIDE.gap <= after - other / 2 + 1e-9
    assert all(width / 2 <= x <= row.width - width / 2 for x, width in roots)
    assert sum(row.slots.values()) == pytest.approx(row.width)
    (plain,) = lay_out(words, arcs, WIDE)
    assert [bow.level for bow in plain.bows] == [bow.level for bow in row.bows]


def test_long_sentences_go_on_in_rows_no_wider_than_allowed():
    words = ["word"] * 40
    arcs = [Arc(0, 39, 0.5), Arc(20, 19, 0.5)]
    rows = lay_out(words, arcs, NARROW)
    assert len(rows) > 3
    assert all(row.width <= NARROW.limit for row in rows)
    assert rows[0].bows[0].head == rows[0].width - NARROW.margin  # runs off to the right
    assert rows[-1].bows[0].dependent == NARROW.margin


@pytest.mark.parametrize("n", range(9, 60))
def test_rows_are_as_few_and_then_as_narrow_as_possible(n):
    """A row of 60 has room for seven words of four letters, or for ten where it is the only one."""
    rows = [len(row.places) for row in lay_out(["word"] * n, [], NARROW)]
    assert len(rows) == (1 if n <= 10 else math.ceil(n / 7))
    assert max(rows) == math.ceil(n / len(rows))


def test_right_to_left_scripts_are_mirrored():
    words = ["הילד", "ראה", "כלב"]
    (row,) = lay_out(words, [Arc(0, 1, 0.5), Arc(2, None, 0.5)], WIDE)
    assert row.places[0] > row.places[1] > row.places[2]
    (bow,) = row.bows
    assert bow.dependent > bow.head
    assert row.roots[0][1] == row.places[2]


def test_directions():
    assert run_right_to_left(["שלום", "עולם", "(", "2"])
    assert run_right_to_left(["مرحبا", "hello", "بك"])
    assert not run_right_to_left(["hello", "שלום"])
    assert not run_right_to_left(["1", "."])
    assert is_right_to_left("(שלום")


def test_widths():
    assert cells("dog") == 3
    assert cells("中文") == 4
    assert cells("e\u0301") == 1
    assert pixels("中文") == 2 * 15
    assert pixels("ill") < pixels("mmm")


def test_what_steers_is_written_out():
    assert escaped("a\x1b[31m\u202eb\x00\ud800\ufffe") == "a\\x1b[31m\\u202eb\\x00\\ud800\\ufffe"
    assert escaped("می\u200cخواهم") == "می\u200cخواهم"  # a joiner belongs to the word
    assert escaped("naïve 中文") == "naïve 中文"
