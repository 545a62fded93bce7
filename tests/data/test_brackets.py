"""Trees in brackets become tagged words, one tree at a time, and every mistake has its line."""

import random
import tracemalloc
from itertools import accumulate, dropwhile, islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probformer.data.formats.mrg import (
    WORD_TAGS,
    BadLine,
    as_in_bllip,
    leaves_of_trees,
    without_traces,
)


def numbered(text: str):
    return enumerate(text.split("\n"), start=1)


def read(text: str):
    return list(leaves_of_trees(numbered(text)))


def leaves_of(text: str):
    ((_, leaves),) = read(text)
    return leaves


def tagged(text: str) -> list[tuple[str, str]]:
    """Leaves in shorthand: "DT/the NN/cat"."""
    return [(tag, word) for tag, _, word in (leaf.partition("/") for leaf in text.split())]


PENN = """
( (S
    (NP-SBJ-1 (DT The) (JJ old) (NN ferry) )
    (VP (VBD was)
      (VP (VBN painted)
        (NP (-NONE- *-1) )
        (PP-MNR (IN in)
          (NP (CD 2) (NNS greens) ))))
    (. .) ))
( (S
    (NP-SBJ (-NONE- *) )
    (VP (VB Row)
      (-LRB- -LRB-) (ADVP (RB slowly) ) (-RRB- -RRB-) )
    (. !) ))
"""


# What is read


def test_the_penn_treebank_has_an_outer_bracket_without_a_label():
    assert read(PENN) == [
        (
            2,
            tagged(
                "DT/The JJ/old NN/ferry VBD/was VBN/painted -NONE-/*-1 IN/in CD/2 NNS/greens ./."
            ),
        ),
        (10, tagged("-NONE-/* VB/Row -LRB-/-LRB- RB/slowly -RRB-/-RRB- ./!")),
    ]


def test_bllip_has_a_label_at_the_root_and_marks_on_labels():
    text = """
(S1 (S (NP-SBJ#7 (PRP We))
  (VP (AUX have) (VP (AUX been) (VP (AUXG having) (NP#2 (NN tea)))))))
"""
    assert leaves_of(text) == tagged("PRP/We AUX/have AUX/been AUXG/having NN/tea")


@pytest.mark.parametrize(
    "text",
    [
        "(S (NP (DT a) (NN cat)) (VP (VBZ naps)))",
        "((S (NP (DT a)(NN cat))(VP (VBZ naps))))",
        "( ( ( (DT a)) (NN cat)) (VBZ naps))",
        "(TOP (S|<x> (NP=2 (DT a) (NN cat)) (VP (VBZ naps))))",
        "\t( S ( NP ( DT  a )\t( NN\u00a0cat ) )( VP(VBZ naps)) )\r",
        "(\nS\n(NP (DT\n\na) (NN cat\n)\n) (VP (VBZ\n naps)))\n",
        "\n\n(S\n(DT a)\n(NN cat)\n(VBZ naps)\n)",
    ],
)
def test_labels_and_white_space_do_not_matter(text):
    assert leaves_of(text) == tagged("DT/a NN/cat VBZ/naps")


@pytest.mark.parametrize(
    "leaf", [("CD", "1\\/2"), ("$", "$"), ("``", "``"), (":", "--"), ("-LCB-", "-LCB-"), ("#", "#")]
)
def test_words_stay_as_they_are_written(leaf):
    assert leaves_of(f"(S ({leaf[0]} {leaf[1]}))") == [leaf]


def test_a_tree_may_be_a_single_leaf():
    assert leaves_of("(UH Yes)") == [("UH", "Yes")]


def test_several_trees_may_share_a_line():
    text = "(S (NN a)) (S (NN b))(S\n(NN c)) (UH d)\n\n(S (NN e))"
    begins, leaves = zip(*read(text), strict=True)
    assert begins == (1, 1, 1, 2, 4)
    assert [word for ((_, word),) in leaves] == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("text", ["()", "(S1)", "( (S ) )", "( END_OF_TEXT_UNIT )", "(S () (NP))"])
def test_nodes_with_nothing_in_them_have_no_leaves(text):
    assert read(text) == [(1, [])]
    assert leaves_of(f"(S (DT a) {text} (NN cat))") == tagged("DT/a NN/cat")


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_no_lines_have_no_trees(text):
    assert read(text) == []


def test_trees_may_be_deep():
    depth = 50_000
    assert leaves_of("(X " * depth + "(NN a)" + ")" * depth) == [("NN", "a")]


TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="()"), min_size=1, max_size=5
).filter(lambda text: not any(letter.isspace() for letter in text))
SPACE = st.sampled_from(["", " ", "\n", "\t \n\n  "])
GAP = st.sampled_from([" ", "  ", "\n", "\n\t"])
LEAF = st.tuples(TEXT, TEXT)
TREE = st.recursive(LEAF, lambda tree: st.tuples(st.none() | TEXT, st.lists(tree, max_size=4)))


def leaves_by_recursion(tree):
    label, inside = tree
    if isinstance(inside, str):
        return [(label, inside)]
    return [leaf for node in inside for leaf in leaves_by_recursion(node)]


@st.composite
def printed(draw, tree):
    """The tree as a file may have it, with white space wherever it is allowed."""
    label, inside = tree
    parts = ["(", draw(SPACE), label or "", draw(SPACE)]
    if isinstance(inside, str):
        parts += [draw(GAP), inside, draw(SPACE)]
    else:
        for node in inside:
            parts += [draw(printed(node)), draw(SPACE)]
    return "".join([*parts, ")"])


@given(st.data(), st.lists(TREE, max_size=4))
def test_trees_come_back_as_printed(data, trees):
    text, begins = "", []
    for tree in trees:
        text += data.draw(SPACE)
        begins.append(text.count("\n") + 1)
        text += data.draw(printed(tree))
    assert read(text) == list(zip(begins, map(leaves_by_recursion, trees), strict=True))


# What is kept of it


def test_traces_are_dropped():
    (_, first), (_, second) = read(PENN)
    assert without_traces(first) == tagged(
        "DT/The JJ/old NN/ferry VBD/was VBN/painted IN/in CD/2 NNS/greens ./."
    )
    assert without_traces(second) == second[1:]
    assert without_traces(tagged("-NONE-/0 -NONE-/*T*-1")) == []
    assert without_traces(tagged("NN/-NONE-")) == tagged("NN/-NONE-")


def test_bllip_is_prepared_as_in_the_paper():
    given = "NNP/McCoy POS/'s CD/1.5 CD/12,500 JJ/90-day ,/, $/$ -NONE-/*U* AUXG/Being PRP$/Its ./."
    kept = "NNP/mccoy POS/'s CD/N.N CD/N,N JJ/N-day AUXG/being PRP$/its"
    assert as_in_bllip(tagged(given)) == tagged(kept)
    assert as_in_bllip(tagged("-LRB-/-LRB- ``/`` :/; #/# C/x NN#3/cat nn/cat")) == []


@pytest.mark.parametrize(
    ("word", "prepared"),
    [("N", "n"), ("3N", "Nn"), ("F-16A", "f-Na"), ("1\\/2", "N\\/N"), ("1990s", "Ns"), ("²", "²")],
)
def test_digits_become_n_after_lower_case(word, prepared):
    assert as_in_bllip([("NN", word)]) == [("NN", prepared)]


def test_there_are_38_tags_of_words():
    assert len(WORD_TAGS) == 38


# Bad input


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("(S (NN a))\n\n)", 3, "')' outside of a tree, expected '('"),
        ("(S\n(NN a)))", 2, "')' outside of a tree, expected '('"),
        ("text (S (NN a))", 1, "'text' outside of a tree, expected '('"),
        ("(S\n(NN a)) text", 2, "'text' outside of a tree, expected '('"),
        ("\n\n*x* copyright *x*", 3, "'*x*' outside of a tree, expected '('"),
        ("(NP (DT a)\ncat)", 2, "the word 'cat' has no tag, expected '(tag word)'"),
        ("( (DT a) cat)", 1, "the word 'cat' has no tag, expected '(tag word)'"),
        ("(NP\n(NN cat\nhouse))", 3, "the word 'house' has no tag, expected '(tag word)'"),
        ("(NN cat\n(NN house))", 2, "'(' after the word 'cat', expected ')'"),
    ],
)
def test_a_mistake_is_named_with_its_line(text, line, reason):
    with pytest.raises(BadLine) as error:
        read(text)
    assert (error.value.line, error.value.reason) == (line, reason)


@pytest.mark.parametrize(
    ("text", "line", "missing"),
    [("\n(S (NN a)\n\n", 2, 1), ("(S\n(NN", 1, 2), ("(S\n(NN a))\n(", 3, 1), ("(((", 1, 3)],
)
def test_a_tree_that_is_not_closed_is_named_by_where_it_begins(text, line, missing):
    with pytest.raises(BadLine) as error:
        read(text)
    reason = f"the file ends inside the tree that begins here, expected {missing} more of ')'"
    assert (error.value.line, error.value.reason) == (line, reason)


def test_the_trees_before_a_mistake_are_read():
    trees = leaves_of_trees(numbered("(S (NN a)) (S (NN b)) c (S (NN d))"))
    assert [words for _, words in islice(trees, 2)] == [tagged("NN/a"), tagged("NN/b")]
    with pytest.raises(BadLine):
        next(trees)


def test_the_lines_behind_a_mistake_can_still_be_read():
    lines = numbered("(S (NN a)\n  b\n  (NN c))\n(S\n  (NN d))")
    with pytest.raises(BadLine):
        list(leaves_of_trees(lines))
    unindented = dropwhile(lambda line: not line[1].startswith("("), lines)
    assert list(leaves_of_trees(unindented)) == [(4, tagged("NN/d"))]


@given(st.text("() \n", max_size=20))
def test_brackets_are_refused_exactly_if_they_do_not_match(text):
    depths = list(accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in text)) or [0]
    if min(depths) < 0 or depths[-1]:
        with pytest.raises(BadLine) as error:
            read(text)
        assert 1 <= error.value.line <= text.count("\n") + 1
    else:
        assert len(read(text)) == sum(pair == (1, 0) for pair in pairwise(depths))


# Streaming


def test_a_tree_is_there_as_soon_as_it_is_closed():
    def lines():
        yield 1, "(S (NN a))"
        raise AssertionError("the next line is not needed")

    assert next(leaves_of_trees(lines())) == (1, tagged("NN/a"))


def test_memory_does_not_grow_with_the_trees():
    letters = random.Random(0)
    lines = ((n, f"(S (NN {letters.getrandbits(64):x}))") for n in range(1, 20_001))
    tracemalloc.start()
    try:
        assert sum(len(leaves) for _, leaves in leaves_of_trees(lines)) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
