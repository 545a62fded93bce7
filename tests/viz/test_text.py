"""Pictures in letters: in a terminal, and for LaTeX."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from helpers.pictures import HOSTILE, pictures, random_heads
from probformer import viz
from probformer.sentinels import UNOBSERVED
from probformer.viz.words import cells, pixels


def test_the_terminal():
    heads = [[0, 0.9, 0], [0, 0, 0.3], [0, 0, 0]]
    assert viz.arcs(["the", "dog", "sleeps"], heads, [0, 0, 0.8]).text() == (
        "              ROOT\n  ┏━━━┓ ┌────┐ ┃\n  ▼   ┃ ▼    │ ▼\n the  dog  sleeps\n"
    )


def test_crossing_lines_in_the_terminal_and_probabilities():
    heads = np.zeros((4, 4))
    heads[0, 2], heads[1, 3] = 0.9, 0.4
    drawn = viz.arcs(["aaaa", "bbbb", "cccc", "dddd"], heads, probabilities=True).text()
    assert drawn == (
        "            ┌──────.40──────┐\n"
        "    ┏━━━━.90┿━━━━━━━┓       │\n"
        "    ▼       ▼       ┃       │\n"
        "  aaaa    bbbb    cccc    dddd\n"
    )


def test_every_arc_in_the_terminal_has_its_probability():
    words = list("abcdefg")
    (heads,), (root,) = random_heads(7, 1)
    heads[0], root[0] = [0, 1, 0, 0, 0, 0, 0], 0
    picture = viz.arcs(words, heads, root, threshold=0.1, probabilities=True)
    shares = [f"{arc.probability:.2f}" for arc in picture.panels[0].arcs]
    expected = sorted("1.0" if share == "1.00" else share[1:] for share in shares)
    assert sorted(re.findall(r"1\.0|\.\d\d", picture.text())) == expected


def test_in_the_terminal_arcs_to_another_row_have_its_word_and_the_probability():
    heads = np.zeros((9, 9))
    heads[0, 8] = 0.25
    drawn = viz.arcs(["eight"] * 8 + ["כלב"], heads, probabilities=True).text(60).splitlines()
    assert drawn[0].endswith("─.25 \u200eכלב\u200e")
    assert drawn[6].startswith("    eight .25─")


def test_labels_in_the_terminal():
    words, heads = ["she", "saw", "the", "dog"], [1, -1, 3, 1]
    labels, certain = ["nsubj", "root", "det", "obj"], [0.9, 1, 0.4, 0.75]
    tree = viz.tree(words, heads, labels, head_probabilities=certain)
    assert tree.text() == (
        "             ROOT\n"
        "             root\n"
        "              ┃ ┏━━━━━obj━━━━━━┓\n"
        "    ┏━nsubj━┓ ┃ ┃      ┌─det─┐ ┃\n"
        "    ▼       ┃ ▼ ┃      ▼     │ ▼\n"
        "   she       saw      the    dog\n"
    )
    sure = viz.tree(words, heads, labels, head_probabilities=certain, probabilities=True)
    for mark in ("nsubj .90", "root 1.0", "det .40", "obj .75"):
        assert mark in sure.text()
    assert sure.text(30) == (
        "she <- saw (nsubj) 0.90\nsaw <- ROOT (root) 1.00\nthe <- dog (det) 0.40\n"
        "dog <- saw (obj) 0.75\n"
    )


def test_every_arc_in_the_terminal_has_its_label():
    (heads,), (root,) = random_heads(7, 1)
    chance = np.random.default_rng(1)
    labels = [["x" * size + "y" for size in row] for row in chance.integers(1, 9, (7, 8))]
    picture = viz.arcs(list("abcdefg"), heads, root, labels=labels, threshold=0.15)
    found = re.findall(r"x+y", picture.text(10_000))
    assert sorted(found) == sorted(arc.label for arc in picture.panels[0].arcs)


def test_a_narrow_terminal_gets_a_list():
    heads = [[0, 0.9, 0], [0.2, 0, 0.3], [0, 0, 0]]
    assert viz.arcs(["the", "dog", "sleeps"], heads, [0, 0, 0.8]).text(20) == (
        "the <- dog 0.90\ndog <- sleeps 0.30, the 0.20\nsleeps <- ROOT 0.80\n"
    )
    busy = np.full((30, 30), 0.2)  # too many arcs for any picture of 60 columns
    assert "▼" not in viz.arcs(["a"] * 30, busy).text(60)


@pytest.mark.parametrize("width", [40, 60, 100])
@pytest.mark.parametrize("probabilities", [False, True])
def test_no_arc_is_wider_than_the_terminal(width, probabilities):
    words = ["word", "中文字"] * 15
    (heads,), (root,) = random_heads(30, 1)
    picture = viz.arcs(words, heads, root, threshold=0.3, probabilities=probabilities)
    assert "▼" in picture.text(width)
    assert max(map(cells, picture.text(width).splitlines())) <= width


@pytest.mark.parametrize("probabilities", [False, True])
def test_no_labelled_arc_is_wider_than_the_terminal(probabilities):
    words, labels = ["word", "中文字"] * 15, [["obj", "中文"] * 15] * 30
    (heads,), _ = random_heads(30, 1)
    options = {"labels": labels, "threshold": 0.3, "probabilities": probabilities}
    picture = viz.arcs(words, heads, **options)
    for width in (60, 80, 100):
        assert "▼" in picture.text(width)
        assert max(map(cells, picture.text(width).splitlines())) <= width


@pytest.mark.parametrize("width", [24, 40, 60, 100])
@pytest.mark.parametrize("name", ["heat", "labels"])
def test_no_table_is_wider_than_the_terminal(width, name):
    words = ["word", "中文字", "internationalization", "כלב"] * 6
    assert max(map(cells, pictures(words)[name].text(width).splitlines())) <= width


def test_a_heat_map_that_is_too_wide_for_the_terminal_goes_on_further_down():
    heads = np.zeros((5, 5))
    heads[0, 1] = heads[1, 4] = heads[3, 4] = heads[4, 0] = 1
    assert viz.heat_map("abcde", heads).text(12) == (
        "      1 2 3\n  1 a   ██\n  2 b\n  3 c\n  5 e ██\n"
        "      4 5\n  2 b   ██\n  4 d   ██\n  5 e\n"
    )


def test_latex_sees_no_command_of_a_word():
    tex = viz.arcs(["a&b", "$%#_{}\\", "--", "\x07"], np.eye(4)[::-1]).tikz()
    words = tex.split("\\begin{deptext}")[1].splitlines()[1]
    assert words.split(" \\& ") == [
        "{a\\char38{}b}",
        "{\\$\\%\\#\\_\\{\\}\\textbackslash{}}",
        "{-{}-{}}",
        "{\\textbackslash{}x07} \\\\",
    ]


def test_labels_for_latex():
    """Words are as wide as the labels of short arcs need it, and labels are no commands."""
    words, labels = ["a", "b", "c"], ["amod:long", "root", "50%_{}"]
    tex = viz.tree(words, [1, -1, 1], labels, probabilities=True).tikz()
    assert "]{2}{1}{amod:long 1.00}" in tex
    assert "]{2}{3}{50\\%\\_\\{\\} 1.00}" in tex
    assert "]{2}{ROOT root 1.00}" in tex
    (row,) = re.findall(r"(?<=\{deptext\}).*\n(.*)", tex.split("\\end{deptext}")[0])
    room = [re.search(r"width=([\d.]+)pt", cell) for cell in row.split(" \\& ")]
    first, second, third = [float(given[1]) if given else pixels("a", 10) for given in room]
    for one, other, mark in ((first, second, "amod:long 1.00"), (second, third, "50%_{} 1.00")):
        assert (one + other) / 2 + 12 > pixels(mark, 7)
    assert second > pixels("ROOT root 1.00", 7)
    assert "minimum width" not in viz.tree(words, [1, UNOBSERVED, UNOBSERVED]).tikz()


def test_a_file_for_latex_says_what_it_needs():
    header = viz.arcs(["כלב"], [[0]]).tikz().split("\\noindent")[0]
    assert all(line.startswith("% ") for line in header.splitlines())
    for needed in ("tikz-dependency", "LuaLaTeX", "babel", "font"):
        assert needed in header


def test_in_latex_dots_stand_where_a_sentence_goes_on():
    for words in (["word"] * 30, ["כלב"] * 30):
        rows = viz.arcs(words, np.zeros((30, 30))).tikz().split("\\begin{deptext}")[1:]
        cells = [row.splitlines()[1].removesuffix(" \\\\").split(" \\& ") for row in rows]
        cells = cells if words[0] == "word" else [row[::-1] for row in cells]  # from the right
        dots = [[cell == "\\dots" for cell in (row[0], row[-1])] for row in cells]
        assert dots == [[False, True], *[[True, True]] * (len(rows) - 2), [True, False]]


@pytest.mark.long
@pytest.mark.parametrize("size", [10, 12])
def test_latex_takes_it(size, tmp_path: Path):
    words = [*HOSTILE, "^~|", "``--''", "[a]", "naïve"]
    long = ["internationalization", "of", "a", "harbour", ",", "they"] * 10
    hostile, rows = pictures(words), pictures(long)
    drawn = [hostile[name] for name in ("arcs", "grid", "animation", "labelled", "tree")]
    drawn += [rows["arcs"], rows["labelled"], rows["tree"]]
    body = "A paragraph.\n\n".join(picture.tikz() for picture in drawn)
    (tmp_path / "x.tex").write_text(
        f"\\documentclass[{size}pt]{{article}}\n\\usepackage{{tikz-dependency}}\n"
        f"\\begin{{document}}\n{body}\n\\end{{document}}\n",
        encoding="utf-8",
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"]
    try:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("needs pdflatex")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "LaTeX Warning" not in done.stdout
    assert "Overfull" not in done.stdout
    assert (tmp_path / "x.pdf").stat().st_size > 10_000
