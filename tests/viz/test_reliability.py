"""Reliability diagrams: points where they belong, and a file that needs nothing else."""

import re
import xml.etree.ElementTree as ET

import pytest

from helpers.messages import refused
from helpers.pictures import HOSTILE
from probformer.viz import reliability_diagram

SVG = "{http://www.w3.org/2000/svg}"
BINS = ([0, 10, 12_345, 40], [None, 0.4, 0.625, 1], [None, 0.7, 0.625, 0])


def numbers(element, *names):
    return [float(element.get(name)) for name in names]


def test_points_and_bars_are_where_they_belong():
    root = ET.fromstring(reliability_diagram(*BINS, error=0.0123, title="a parser").svg())
    (diagonal,) = (x for x in root.iter(f"{SVG}line") if x.get("stroke-dasharray"))
    x0, y0, x1, y1 = numbers(diagonal, "x1", "y1", "x2", "y2")
    assert x1 - x0 == y0 - y1 > 0
    points = [numbers(x, "cx", "cy") for x in root.iter(f"{SVG}circle")]
    expected = [
        [x0 + p * (x1 - x0), y0 + right * (y1 - y0)]
        for p, right in zip(BINS[1][1:], BINS[2][1:], strict=True)
    ]
    assert points == [pytest.approx(point, abs=0.01) for point in expected]
    bars = [x for x in root.iter(f"{SVG}rect") if x.get("class") == "tip"]
    lefts = [numbers(bar, "x")[0] for bar in bars]
    quarter = (x1 - x0) / 4
    assert [int((left - x0) // quarter) for left in lefts] == [1, 2, 3]
    heights = [numbers(bar, "height")[0] for bar in bars]
    assert heights[2] / heights[1] == pytest.approx(40 / 12_345, rel=0.05)
    assert len({round(sum(numbers(bar, "y", "height")), 1) for bar in bars}) == 1
    texts = [x.text for x in root.iter(f"{SVG}text")]
    assert {"10", "12k", "40"} <= {*texts}
    assert any("0.0123" in text and "12,395" in text for text in texts)
    hints = [x.text for x in root.iter(f"{SVG}title")]
    assert "10 predictions, mean confidence 0.400, right 0.700" in hints


def test_the_file_needs_nothing_else_and_a_title_is_text():
    svg = reliability_diagram(*BINS, error=0.1, title=" ".join(HOSTILE)).svg()
    assert "<script>alert" not in svg
    assert "\x1b" not in svg
    links = re.findall(r"(?:href|src|url)\W*[=(]|https?://[^\s\"']+", svg)
    assert set(links) <= {"http://www.w3.org/2000/svg"}
    assert svg == reliability_diagram(*BINS, error=0.1, title=" ".join(HOSTILE)).svg()


def test_nothing_predicted():
    svg = reliability_diagram([0, 0], [None] * 2, [None] * 2, error=0).svg()
    assert "circle" not in svg
    assert "0 predictions" in svg


def test_wrong_values_are_refused(tmp_path):
    for bins in (([1], [0.5], []), ([], [], [])):
        with refused("counts", f"{len(bins[0])}, "):
            reliability_diagram(*bins, error=0)
    with refused("confidences"):
        reliability_diagram([1], [1.5], [1], error=0)
    with refused("right"):
        reliability_diagram([1], [0.5], [-1], error=0)
    with refused("reliability diagram", ".svg"):
        reliability_diagram([1], [0.5], [1], error=0).save(tmp_path / "a.tex")
