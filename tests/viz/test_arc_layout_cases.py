"""The arc layout of the library and that of the explorer's page agree on the same cases."""

import json

import pytest

from helpers.browser import CHROMIUM, QUIET
from helpers.layout_cases import FILE, cases, laid_out, rounded, widths
from helpers.places import TESTS

CASES = json.loads(FILE.read_text(encoding="utf-8"))
BUILT = TESTS / "viz/page/comparison.js"
IN_THE_PAGE = """
async ([code, cases]) => {
  const url = URL.createObjectURL(new Blob([code], {type: "text/javascript"}));
  const { escaped, layOut, runRightToLeft } = await import(url);
  return cases.map(({ words, widths, arcs, measure }) => {
    const given = arcs.map(([dependent, head, mark]) => ({ dependent, head, mark }));
    const rightToLeft = runRightToLeft(words);
    const rows = layOut(widths, given, { ...measure, spread: 0 }, rightToLeft);
    return {
      escaped: words.map(escaped),
      rightToLeft,
      rows: rows.map((row) => ({
        width: row.width,
        levels: row.levels,
        places: [...row.places],
        bows: row.bows.map(({ arc, level, head, dependent, elsewhere }) =>
          [arc.dependent, arc.head, level, head, dependent, elsewhere]),
        roots: row.roots.map(({ arc, x }) => [arc.dependent, x]),
      })),
    };
  });
}
"""


def test_the_cases_are_those_of_the_generator():
    given = [{**case, "widths": widths(case)} for case in cases()]
    found = [{key: case[key] for key in ("words", "arcs", "measure", "widths")} for case in CASES]
    assert found == rounded(given)
    rows = [case["expected"]["rows"] for case in CASES]
    assert any(len(some) > 1 for some in rows)
    assert {case["expected"]["rightToLeft"] for case in CASES} == {True, False}


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_library_lays_out_as_expected(number):
    assert rounded(laid_out(CASES[number])) == CASES[number]["expected"]


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_page_lays_out_as_expected():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=QUIET, chromium_sandbox=False
        )
        code = BUILT.read_text(encoding="utf-8")
        found = browser.new_page().evaluate(IN_THE_PAGE, [code, CASES])
        browser.close()
    for case, own in zip(CASES, found, strict=True):
        assert as_floats(rounded(own)) == as_floats(case["expected"]), case["words"]


def as_floats(value):
    """JavaScript has one kind of number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, dict):
        return {key: as_floats(part) for key, part in value.items()}
    return [*map(as_floats, value)] if isinstance(value, list) else value
