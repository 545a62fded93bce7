"""Labels at arcs, and trees: which arc has which label, its room, and what is refused."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch

from helpers.messages import refused
from helpers.pictures import SVG, random_heads, random_labels, texts
from probformer import viz
from probformer.sentinels import UNOBSERVED
from probformer.viz.words import pixels

WORDS = ["she", "saw", "the", "dog"]


LABELS = ["nsubj", "root", "det", "obj"]


def test_labels_are_at_the_arcs_that_have_them():
    (heads,), (root,) = random_heads(4, 1)
    names, certain = random_labels(LABELS, ())
    names[0][1] = ""
    picture = viz.arcs(WORDS, heads, root, labels=names, label_probabilities=certain, threshold=0)
    expected = {
        (i, j if j < 4 else None): names[i][j] for i in range(4) for j in range(5) if i != j
    }
    svg = ET.fromstring(picture.svg())
    found = [hint.text for hint in svg.findall(f".//{SVG}g/{SVG}title")]
    for (i, j), name in expected.items():
        p = root[i] if j is None else heads[i, j]
        hint = f"{WORDS[i]} ← {'ROOT' if j is None else WORDS[j]}  {p:.2f}"
        place = 4 if j is None else j
        found.remove(f"{hint}  {name} {certain[i, place]:.2f}" if name else hint)
    assert not found
    assert sorted(texts(picture.svg(), "ink halo")) == sorted(filter(None, expected.values()))
    marks = re.findall(r"\{(?:ROOT )?(\w*)\}$", picture.tikz(), re.MULTILINE)
    assert sorted(filter(None, expected.values())) == sorted(
        mark for mark in marks if mark in LABELS
    )
    sure = viz.arcs(WORDS, heads, root, labels=names, threshold=0, probabilities=True)
    wanted = f"{names[2][3]} {heads[2, 3]:.2f}"
    assert wanted in texts(sure.svg(), "ink halo")
    assert f"{{{wanted}}}" in sure.tikz()


def test_each_panel_has_labels_of_its_own():
    heads, root = random_heads(4, 3)
    names, _ = random_labels(LABELS, (3,))
    picture = viz.arcs(WORDS, heads, root, labels=[None, names[1], None], threshold=0)
    labelled = [sum(bool(arc.label) for arc in panel.arcs) for panel in picture.panels]
    assert labelled == [0, 16, 0]
    without_root = [[row[:4] for row in table] for table in names]
    moving = viz.animation(WORDS, heads, root, labels=without_root, threshold=0)
    for panel, table in zip(moving.panels, names, strict=True):
        for arc in panel.arcs:
            assert arc.label == ("" if arc.head is None else table[arc.dependent][arc.head])


def assert_marks_are_between_ends(drawn, labels):
    """Of all arcs of one row, in the order in which they are drawn."""
    marks = [text for text in drawn.iter(f"{SVG}text") if text.get("class") == "ink halo"]
    arcs = [group for group in drawn.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    assert len(marks) == len(arcs) == len(labels)
    for mark, arc in zip(marks, arcs, strict=True):
        assert mark.text.split()[0] == arc.find(f"{SVG}title").text.split("  ")[2]
        ends = [float(path.get("d")[1:].split()[0]) for path in arc.iter(f"{SVG}path")]
        middle, half = float(mark.get("x")), pixels(mark.text, 10) / 2
        assert min(ends) - 0.01 <= middle - half
        assert middle + half <= max(ends) + 0.01


@pytest.mark.parametrize("probabilities", [False, True])
def test_labels_have_room(probabilities):
    """Whatever the length of words and labels, and in every frame of an animation."""
    chance = np.random.default_rng(0)
    for n in range(2, 9):
        words, heads = "abcdefgh"[:n], np.roll(np.arange(n), 1)
        labels = ["x" * size for size in chance.integers(1, 16, n)]
        tree = viz.tree(words, heads, labels, probabilities=probabilities)
        assert_marks_are_between_ends(ET.fromstring(tree.svg()), labels)
    steps = [[[name] * 2] * 2 for name in ("short", "much.longer", "a")]
    heads = [[[0, p], [0, 0]] for p in (0.5, 0.4, 0.6)]
    moving = viz.animation("ab", heads, labels=steps, probabilities=probabilities)
    for frame in ET.fromstring(moving.svg()).findall(f".//{SVG}g[@class='frame']"):
        assert_marks_are_between_ends(frame, ["one"])


def test_a_tree_has_an_arc_for_each_head():
    picture = viz.tree(
        WORDS,
        torch.tensor([1, -1, 3, 1]),
        LABELS,
        head_probabilities=[0.9, 1, 0.8, 0.7],
        label_probabilities=[0.6, 1, 0.5, 0.4],
    )
    hints = {hint.text for hint in ET.fromstring(picture.svg()).findall(f".//{SVG}g/{SVG}title")}
    assert hints == {
        "she ← saw  0.90  nsubj 0.60",
        "saw ← ROOT  1.00  root 1.00",
        "the ← dog  0.80  det 0.50",
        "dog ← saw  0.70  obj 0.40",
    }
    partial = viz.tree(WORDS, [1, UNOBSERVED, UNOBSERVED, 1])
    assert [arc[:2] for arc in partial.panels[0].arcs] == [(0, 1), (3, 1)]
    assert partial.panels[0].arcs[0].probability == 1


@pytest.mark.parametrize(
    ("heads", "options", "named"),
    [
        ([1, -1, 3], {}, "heads"),
        ([1, -1, 3, 4], {}, "4 for word 3"),
        ([1, 1, 3, 1], {}, "1 for word 1"),
        ([1, -1, 3, 0.5], {}, "0.5 for word 3"),
        ([1, -1, 3, float("nan")], {}, "nan for word 3"),
        ([1, -1, 3, "dog"], {}, "heads"),
        ([1, -1, 3, 1], {"labels": LABELS[:3]}, "labels"),
        ([1, -1, 3, 1], {"labels": [*LABELS[:3], 7]}, "a label"),
        ([1, -1, 3, 1], {"head_probabilities": [1, 1, 1, 2]}, "head_probabilities"),
        ([1, -1, 3, 1], {"label_probabilities": [1, 1]}, "label_probabilities"),
    ],
)
def test_what_is_no_tree_of_these_words_is_refused(heads, options, named):
    with refused(named):
        viz.tree(WORDS, heads, **options)


@pytest.mark.parametrize(
    ("labels", "probabilities", "named"),
    [
        ([["a", "b"]], None, "(1, 2)"),
        ([["a"], ["b"]], None, "(2, 1)"),
        ([["a", "b"], ["c"]], None, "(2,)"),
        ("ab", None, "()"),
        ([["a", "b"], ["c", 4]], None, "a label"),
        ([["a", "b"], ["c", "d"]], [[1, 1, 1], [1, 1, 1]], "(2, 3)"),
        ([["a", "b"], ["c", "d"]], [[1, 1], [1, 2]], "label_probabilities"),
        (None, [[1, 1], [1, 1]], "need labels"),
    ],
)
def test_wrong_labels_are_refused(labels, probabilities, named):
    heads = [[0, 1], [0, 0]]
    with refused(named):
        viz.arcs("ab", heads, labels=labels, label_probabilities=probabilities)
    with refused(named):
        viz.animation("ab", [heads], labels=[labels], label_probabilities=[probabilities])


def test_labels_are_those_of_every_panel():
    heads, names = [[0, 1], [0, 0]], [["a", "b"], ["c", "d"]]
    with refused("labels", "2 panels", "got 1"):
        viz.arcs("ab", [heads, heads], labels=[names])
    with refused("label_probabilities", "1 panel", "got 2"):
        viz.animation("ab", [heads], labels=[names], label_probabilities=[heads, heads])
