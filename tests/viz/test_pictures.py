"""Pictures: well formed whatever the words are, complete, and the same every time."""

import math
import re
import xml.etree.ElementTree as ET
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.messages import refused
from helpers.pictures import HOSTILE, pictures, random_heads, random_labels
from probformer import viz
from probformer.config import (
    ArcLabelSettings,
    EncoderSettings,
    FullSettings,
    GlobalSettings,
    Inference,
    RootSettings,
    RotarySettings,
)
from probformer.sentinels import UNOBSERVED
from probformer.viz.words import pixels

SVG = "{http://www.w3.org/2000/svg}"
KINDS = list(pictures("abc"))


def texts(svg, kind=None):
    elements = ET.fromstring(svg).iter(f"{SVG}text")
    return ["".join(e.itertext()) for e in elements if kind in (None, e.get("class"))]


@pytest.mark.parametrize("name", KINDS)
def test_hostile_words_are_words(name):
    picture = pictures(HOSTILE)[name]
    svg, page, text = picture.svg(), picture.html(), picture.text()
    assert any("<script>" in line for line in texts(svg))
    for written in (svg, page, text):
        assert "\x1b" not in written
        assert "\u202e" not in written
        assert "\\u202eevil" in written
    for markup in (svg, page):
        assert "<script>alert" not in markup
        assert "&amp;amp;" in markup
    assert "<script>" in text


@pytest.mark.parametrize("name", KINDS)
def test_pages_ask_for_nothing(name):
    page = pictures(["a", "b", "c", "d"])[name].html()
    assert "default-src 'none'" in page
    links = re.findall(r"(?:href|src|url)\W*[=(]|https?://[^\s\"']+", page)
    assert set(links) <= {"http://www.w3.org/2000/svg"}


def test_the_same_bytes_every_time():
    first, second = pictures(HOSTILE), pictures(HOSTILE)
    for name, picture in first.items():
        assert picture.svg() == second[name].svg()
        assert picture.html() == second[name].html()
        assert picture.text() == second[name].text()


def test_tensors_are_numbers():
    heads = torch.tensor([[0, 0.75], [0.25, 0]], requires_grad=True)
    expected = viz.arcs("ab", [[0, 0.75], [0.25, 0]]).svg()
    for given in (heads, heads.bfloat16(), list(heads)):
        assert viz.arcs("ab", given).svg() == expected


def test_every_arc_above_the_threshold_is_drawn_and_no_other():
    words = ["the", "dogs", "of", "war", "are", "let", "loose"]
    (heads,), (root,) = random_heads(len(words), 1)
    picture = viz.arcs(words, heads, root, threshold=0.2)
    expected = {
        f"{words[i]} ← {words[j]}  {heads[i, j]:.2f}" for i, j in np.argwhere(heads >= 0.2)
    } | {f"{words[i]} ← ROOT  {root[i]:.2f}" for i in np.flatnonzero(root >= 0.2)}
    hints = ET.fromstring(picture.svg()).findall(f".//{SVG}g/{SVG}title")
    assert {hint.text for hint in hints} == expected
    edges = picture.tikz().count("\\depedge") + picture.tikz().count("\\deproot")
    assert edges == picture.text().count("▼") == len(expected)


def test_strength_is_opacity_and_width():
    heads = [[0, 0.9, 0], [0, 0, 0.3], [0, 0, 0]]
    svg = ET.fromstring(viz.arcs("abc", heads).svg())
    found = {
        group.find(f"{SVG}title").text: (
            float(group.get("opacity")),
            float(group.find(f"{SVG}path").get("stroke-width")),
        )
        for group in svg.iter(f"{SVG}g")
        if group.find(f"{SVG}title") is not None
    }
    strong, weak = found["a ← b  0.90"], found["b ← c  0.30"]
    assert strong[0] > weak[0]
    assert strong[1] > weak[1]


def test_the_probability_of_an_arc_to_another_row_is_not_on_that_words_name():
    heads = np.roll(np.eye(90), 1, 0) / 2
    svg = ET.fromstring(viz.arcs(["a"] * 90, heads, probabilities=True).svg())
    for row in svg.iter(f"{SVG}g"):
        written = row.findall(f"{SVG}text")
        names = [e for e in written if e.get("class") == "dim"]
        for name, share in product(names, [e for e in written if e.get("class") == "dim halo"]):
            edge, middle = float(name.get("x")), float(share.get("x"))
            beside = edge - middle if name.get("text-anchor") == "start" else middle - edge
            assert beside >= pixels("0.50", 10) / 2


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


@pytest.mark.parametrize("probabilities", [False, True])
def test_labels_have_room(probabilities):
    """The text of each arc is between its ends, whatever the length of words and labels."""
    chance = np.random.default_rng(0)
    for n in range(2, 9):
        heads, labels = np.roll(np.arange(n), 1), ["x" * at for at in chance.integers(1, 16, n)]
        svg = ET.fromstring(
            viz.tree("abcdefgh"[:n], heads, labels, probabilities=probabilities).svg()
        )
        marks = [text for text in svg.iter(f"{SVG}text") if text.get("class") == "ink halo"]
        arcs = [group for group in svg.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
        assert len(marks) == len(arcs) == n
        for mark, arc in zip(marks, arcs, strict=True):
            label = arc.find(f"{SVG}title").text.split("  ")[2]
            assert mark.text == (f"{label} 1.00" if probabilities else label)
            ends = [float(path.get("d")[1:].split()[0]) for path in arc.iter(f"{SVG}path")]
            middle, half = float(mark.get("x")), pixels(mark.text, 10) / 2
            assert min(ends) - 0.01 <= middle - half
            assert middle + half <= max(ends) + 0.01


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


def test_titles_have_room():
    titles = ["a title that is longer than the sentence", "b"]
    heads = np.zeros((2, 1, 1))
    for draw in (viz.arcs, viz.heat_map):
        svg = ET.fromstring(draw(["a"], heads, titles=titles).svg())
        panels = svg.findall(f"./{SVG}g/{SVG}g")
        places = [float(panel.get("transform").split("(")[1].split()[0]) for panel in panels]
        assert places[1] - places[0] > pixels(titles[0], 13)


def test_the_names_of_columns_are_beside_each_other():
    """The lines of text at an angle are as far apart as letters are tall."""
    svg = ET.fromstring(viz.heat_map(["word"] * 80, np.zeros((80, 80))).svg())
    turned = [e for e in svg.iter(f"{SVG}text") if e.get("transform")]
    angle = math.radians(abs(float(turned[0].get("transform")[7:].split()[0])))
    apart = (float(turned[1].get("x")) - float(turned[0].get("x"))) * math.sin(angle)
    assert apart >= float(turned[0].get("font-size"))


def test_a_grid_has_a_panel_for_every_channel():
    words = ["a", "b", "c", "d"]
    heads, root = random_heads(4, 16)
    titles = [f"channel {c}" for c in range(16)]
    picture = viz.arcs(words, heads, root, titles=titles)
    shown = texts(picture.svg())
    assert [text for text in shown if text.startswith("channel")] == titles
    assert all(shown.count(word) == 16 for word in words)
    assert picture.tikz().count("\\begin{dependency}") == 16
    assert texts(viz.heat_map(words, heads, root).svg()).count("a") == 2 * 16


def test_an_animation_has_a_frame_for_every_iteration():
    words = ["a", "b", "c", "d"]
    heads, _ = random_heads(4, 5)
    picture = viz.animation(words, heads, titles=[f"iteration {t}" for t in range(1, 6)])
    frames = ET.fromstring(picture.svg()).findall(f".//{SVG}g[@class='frame']")
    assert len(frames) == 5
    times = [frame.find(f"{SVG}animate").get("keyTimes") for frame in frames]
    assert times[0] == "0.0000;0.0000;0.2000"
    assert times[-1] == "0.0000;0.8000;1.0000"
    assert [frame.get("visibility") for frame in frames] == ["hidden"] * 4 + ["visible"]
    places = [
        [(e.text, e.get("x")) for e in frame.iter(f"{SVG}text") if e.text in words]
        for frame in frames
    ]
    assert all(frame == places[0] for frame in places)  # words stay where they are
    page = picture.html()
    assert 'max="5"' in page
    assert page.count('class="frame"') == 5
    assert "<animate" not in page  # the slider moves it
    assert page.index('type="range"') < page.index("<svg")  # however long the sentence is


def test_words_from_right_to_left():
    words = ["הילד", "ראה", "כלב"]
    heads = [[0, 0.9, 0], [0, 0, 0], [0, 0.9, 0]]
    picture = viz.arcs(words, heads)
    elements = [e for e in ET.fromstring(picture.svg()).iter(f"{SVG}text") if e.text in words]
    assert all(e.get("direction") == "rtl" for e in elements)
    by_place = sorted(elements, key=lambda e: float(e.get("x")))
    assert [e.text for e in by_place] == words[::-1]
    assert "{כלב} \\& {ראה} \\& {הילד}" in picture.tikz()
    assert "\\depedge[" in picture.tikz()
    assert "]{2}{3}" in picture.tikz()  # from the word in the middle to the first, which is right
    last = picture.text().splitlines()[-1]
    assert last.replace("\u200e", "").split() == words[::-1]
    assert last.count("\u200e") == 6  # so that no terminal turns the line around again


def test_heat_maps_have_dependents_in_rows_and_heads_in_columns():
    heads = [[0, 0.9], [0, 0]]
    svg = ET.fromstring(viz.heat_map(["a", "b"], heads, [0.1, 1]).svg())
    cells = {
        hint.text.split("  ")[0]: cell
        for cell in svg.iter(f"{SVG}rect")
        if (hint := cell.find(f"{SVG}title")) is not None
    }
    assert set(cells) == {"a ← b", "a ← ROOT", "b ← ROOT"}
    assert cells["a ← b"].get("fill-opacity") == "0.9"
    assert float(cells["a ← ROOT"].get("x")) < float(cells["a ← b"].get("x"))
    assert float(cells["a ← ROOT"].get("y")) < float(cells["b ← ROOT"].get("y"))
    assert viz.heat_map(["a", "b"], heads, [0.1, 1]).text() == (
        "      R 1 2\n  1 a     ██\n  2 b ██\n"
    )


def test_the_strongest_labels_and_their_owners():
    picture = viz.label_table(["dog"], [[0.1, 0.7, 0.2]], {1: ["cat", "cow"]}, strongest=2)
    assert picture.text() == "dog     1  0.70  cat · cow\n        2  0.20\n"
    assert texts(picture.svg()) == ["dog", "0.70", "1", "cat · cow", "0.20", "2", ""]
    assert "<td>1</td><td>0.70</td>" in picture.html()


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (EncoderSettings(), {"H₁", "Z₃", "w₂"}),
        (EncoderSettings(root=RootSettings(7)), {"Z₀", "ROOT"}),
        (EncoderSettings(globals=GlobalSettings("dep-split", 9)), {"G₂"}),
    ],
)
def test_the_factor_graph_has_the_variables_of_the_config(settings, shown):
    svg = viz.factor_graph(settings).svg()
    assert shown <= set(texts(svg))
    pairs = 6 + (3 if settings.root else 0)
    factors = [r.get("class") for r in ET.fromstring(svg).iter(f"{SVG}rect")]
    assert factors.count("tip") + factors.count("root-tip") == pairs
    assert factors.count("dim") == 3
    assert ("G₂" in texts(svg)) == (settings.globals is not None)
    width = float(ET.fromstring(svg).get("width"))
    circles = ET.fromstring(svg).iter(f"{SVG}circle")
    assert all(float(c.get("cx")) + float(c.get("r")) + 12 < width - 12 for c in circles)
    assert ("ROOT" in texts(svg)) == (settings.root is not None)


PARSER = EncoderSettings(
    labels=12,
    channels=4,
    potential=RotarySettings(rank=4),
    arc_labels=ArcLabelSettings(channel=1, count=5, rank=3),
    inference=Inference(heads=("independent", "tree", "projective", "tree"), single_root=False),
)


def test_the_factor_graph_of_trees_with_labels():
    """One factor over all heads; one of labels for each pair of words, and one for ROOT's arcs."""
    drawn = viz.factor_graph(PARSER).svg()
    svg, shown = ET.fromstring(drawn), texts(drawn)
    assert {"H₁,L₁", "H₂,L₂", "H₃,L₃", "Z₀"} <= set(shown)
    kinds = [rect.get("class") for rect in svg.iter(f"{SVG}rect")]
    assert kinds.count("tip") == kinds.count("line outline") == 6
    assert kinds.count("root-tip") == kinds.count("paper outline") == 3
    assert kinds.count("ink") == 1
    (tree,) = [rect for rect in svg.iter(f"{SVG}rect") if rect.get("class") == "ink"]
    start = f"M{float(tree.get('x')) + 6:g} {float(tree.get('y')) + 6:g} "
    reached = [path.get("d") for path in svg.iter(f"{SVG}path") if path.get("d").startswith(start)]
    heads = [circle for circle in svg.iter(f"{SVG}circle") if circle.get("cy") == "40"]
    assert {f"{start}L{circle.get('cx')} 40" for circle in heads} == set(reached)
    assert len(reached) == 3
    caption = " ".join(shown)
    for part in (
        "channel 1 are shown",
        "one of 5.",
        "Fᵢⱼₗ = Fᵢⱼ + Rᵢⱼₗ",
        "R = Uₗ Vₗᵀ + bₗ of rank 3",
        "R = wₗ + bₗ",
        "■ factor of a tree: all heads of channels 1, 3, with one word or more under ROOT",
        "factor of a projective tree: all heads of channel 2, with one word or more under ROOT",
        "with ROOT: 1 label",
    ):
        assert part in caption
    assert "■ factor of a projective" not in caption


def test_the_factor_graph_of_trees_alone_and_of_labels_alone():
    trees = EncoderSettings(channels=3, inference=Inference(heads="projective"))
    shown = texts(viz.factor_graph(trees).svg())
    assert "H₁" in shown
    assert any(
        "■ factor of a projective tree: all heads of channels 0 to 2, with exactly one" in line
        for line in shown
    )
    labels = EncoderSettings(channels=3, arc_labels=ArcLabelSettings(channel=2))
    drawn = viz.factor_graph(labels).svg()
    assert "H₁,L₁" in texts(drawn)
    assert "one of those in the data" in " ".join(texts(drawn))
    assert "tree" not in drawn


def test_the_computation_graph_of_trees_with_labels():
    shown = texts(viz.computation_graph(PARSER).svg())
    order = [
        "F = X Yᵀ",
        "QH = softmax(F / λH)",
        "QH = projective trees(F / λH)",
        "QH = trees(F / λH)",
        "Fl = F + (QZ Ul) (QZ Vl)ᵀ + bl",
        "θ = log Σl exp(Fl / λH)",
        "QH = trees(θ)",
        "Ql = QH exp(Fl / λH − θ)",
        "A = QH Y,  C = QHᵀ X",
        "G + Σl Ql (QZ Vl) Ulᵀ + Qlᵀ (QZ Ul) Vlᵀ",
        "S + G",
    ]
    assert [line for line in shown if line in order] == order
    meanings = " ".join(shown)
    for part in (
        "channel 0: over words and ROOT, never itself",
        "channel 3: arcs of a random tree",
        "channel 2: arcs of a random projective tree",
        "channel 1: l is the label of the arc, one of 5",
        "channel 1: arcs of a random tree, P(tree) ∝ exp(Σ θ)",
    ):
        assert part in meanings
    alone = texts(viz.computation_graph(EncoderSettings(inference=Inference(heads="tree"))).svg())
    assert "QH = trees(F / λH)" in alone
    assert not any("softmax(F" in line for line in alone)


def test_the_computation_graph_says_what_the_config_computes():
    plain = texts(viz.computation_graph(EncoderSettings(channels=5)).svg())
    assert {"X = QZ U,  Y = QZ V", "QH = softmax(F / λH)", "5 channels", "5 ×"} <= set(plain)
    assert "feed-forward" not in plain
    settings = EncoderSettings(
        potential=FullSettings(), root=RootSettings(3), globals=GlobalSettings("single-split", 11)
    )
    special = set(texts(viz.computation_graph(settings).svg()))
    assert {"feed-forward", "11 features, single-split", "X = QZ T,  Y = QZ"} <= special
    assert "over words and ROOT, never itself" in special
    assert "T = U R(i−j) Vᵀ" in viz.factor_graph(EncoderSettings(potential=RotarySettings())).svg()


def test_files_by_suffix(tmp_path: Path):
    picture = viz.arcs("ab", [[0, 1], [0, 0]])
    for suffix, written in {
        "svg": picture.svg(),
        "html": picture.html(),
        "tex": picture.tikz(),
        "txt": picture.text(),
    }.items():
        path = tmp_path / "new" / f"x.{suffix}"
        picture.save(path)
        assert path.read_text(encoding="utf-8") == written
    with refused("x.pdf"):
        picture.save(tmp_path / "x.pdf")
    with refused("heat map", "TikZ"):
        viz.heat_map("ab", [[0, 1], [0, 0]]).save(tmp_path / "x.tex")
    with refused("factor graph", "text"):
        viz.factor_graph(EncoderSettings()).save(tmp_path / "x.txt")
    assert "<svg" in picture._repr_html_()


@pytest.mark.parametrize(
    ("words", "heads", "root", "named"),
    [
        ([], np.zeros((0, 0)), None, "words"),
        (["a"], [[0, 1]], None, "heads"),
        (["a"], [[2.0]], None, "heads"),
        (["a"], [[float("nan")]], None, "heads"),
        (["a"], [[0]], [0, 1], "root"),
        (["a", "b"], [[0, 1], [0]], None, "heads"),
        (["a"], [["x"]], None, "heads"),
        (["a"], [[0]], {}, "root"),
        ([7], [[0]], None, "word"),
    ],
)
def test_wrong_numbers_are_refused(words, heads, root, named):
    for draw in (viz.arcs, viz.animation, viz.heat_map):
        with refused(named):
            draw(words, heads, root)


def test_other_wrong_input_is_refused():
    with refused("titles"):
        viz.heat_map("a", [[0]], titles=["b", "c"])
    with refused("words"):
        viz.label_table([], np.zeros((0, 3)))
    with refused("marginals", "(3,)"):
        viz.label_table("a", [0.2, 0.3, 0.5])
    with refused("marginals", "(1, 0)"):
        viz.label_table("a", [[]])
    for wrong in (float("nan"), -0.1, 1.5):
        with refused("marginals"):
            viz.label_table("a", [[wrong, 0.5]])
