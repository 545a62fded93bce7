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
from helpers.pictures import HOSTILE, SVG, pictures, random_heads, texts
from probformer import viz
from probformer.config import (
    EncoderSettings,
)
from probformer.viz.words import pixels

KINDS = list(pictures("abc"))


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
