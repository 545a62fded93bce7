"""The graphs of a model: what they draw and say is what its settings compute."""

import xml.etree.ElementTree as ET

import pytest

from helpers.pictures import SVG, texts
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
