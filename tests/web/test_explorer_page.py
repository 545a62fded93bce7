"""The explorer's page, used as people use it."""

import re
import xml.etree.ElementTree as ET
from urllib.parse import quote

import pytest

from helpers.browser import (
    CHROMIUM,
    QUIET,
    Watch,
    arc_labels,
    arcs,
    explorer,
    sentence,
    settle,
    word,
    words,
)

playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
expect = playwright.expect

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]

SENTENCE = "she did not see the dog ."
HOSTILE = "the <img src=x onerror=document.title='run'> <b>dog</b> \u202esleeps \x1b[31m ."


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with explorer(tmp_path_factory.mktemp("runs")) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=QUIET, chromium_sandbox=False
        )
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser, address):
    """Opens pages, and says in the end whether one did what it must not."""
    contexts, watches = [], []

    def opened(fragment="", **options):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.watch = Watch(page)
        watches.append(page.watch)
        page.goto(f"{address}/#{fragment}")
        expect(page.locator(".word").first).to_be_visible()
        settle(page)
        return page

    yield opened
    for watch in watches:
        watch.check()
    for context in contexts:
        context.close()


def test_it_opens_with_an_example_and_says_what_it_is(new_page):
    page = new_page()
    assert sentence(page).input_value()
    expect(page.get_by_text("the word that it depends on")).to_be_visible()
    expect(page.get_by_role("heading", name="reader")).to_be_visible()
    expect(page.get_by_text("iteration 4 of 4")).to_be_visible()
    assert len(words(page)) == len(sentence(page).input_value().split())


def test_typing_waits_for_the_person_and_marks_unknown_words(new_page):
    page = new_page()
    before = page.watch.inferences()
    sentence(page).fill("")
    expect(page.get_by_text("Type a sentence")).to_be_visible()
    sentence(page).press_sequentially("the zyzzyva was helped .", delay=20)
    expect(page.get_by_text("does not know “zyzzyva”")).to_be_visible()
    expect(page.get_by_text("Type a sentence")).to_have_count(0)
    assert words(page) == ["the", "zyzzyva", "was", "helped", "."]
    assert page.watch.inferences() - before <= 3
    assert "unknown" in word(page, 1).get_attribute("class")


def test_late_answers_are_dropped(new_page):
    page = new_page()
    held = []
    page.route("**/infer", lambda route: held.append(route) if not held else route.continue_())
    sentence(page).fill("the first one .")
    page.wait_for_timeout(500)
    assert held
    sentence(page).fill("the second one .")
    expect(word(page, 1)).to_contain_text("second")
    held[0].continue_()
    settle(page)
    assert words(page) == ["the", "second", "one", "."]


def test_the_slider_replays_inference(new_page):
    page = new_page("from=0.05&text=" + quote(SENTENCE))
    slider = page.get_by_role("slider", name="iteration")
    last = arcs(page)
    slider.focus()
    slider.press("Home")
    expect(page.get_by_text("iteration 1 of 4")).to_be_visible()
    assert "free energy" in slider.get_attribute("aria-valuetext")
    assert arcs(page) != last
    assert page.locator(".energy circle").nth(0).get_attribute("class") == "current"
    asked = page.watch.inferences()
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_text("iteration 4 of 4")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    assert arcs(page) == last
    assert page.watch.inferences() == asked


def test_channels_one_by_one_and_all(new_page):
    page = new_page("text=" + quote(SENTENCE))
    page.get_by_label("1", exact=True).check()
    expect(page.get_by_text(re.compile(r"Channel 1: the head comes"))).to_be_visible()
    page.get_by_label("all", exact=True).check()
    expect(page.locator(".cell")).to_have_count(2)
    page.get_by_role("button", name="channel 0").click()
    expect(page.get_by_label("0", exact=True)).to_be_checked()
    expect(page.locator(".picture")).to_be_visible()


def test_a_click_hides_a_word_and_another_shows_it(new_page):
    page = new_page("text=" + quote(SENTENCE))
    word(page, 5).click()
    expect(page.get_by_text("For “dog” it guesses")).to_be_visible()
    expect(word(page, 5)).to_have_attribute("aria-pressed", "true")
    assert sentence(page).input_value() == SENTENCE
    sentence(page).fill("maybe " + SENTENCE)  # what is hidden stays hidden
    expect(word(page, 6)).to_have_attribute("aria-pressed", "true")
    word(page, 6).click()
    expect(page.get_by_text("it guesses")).to_have_count(0)
    expect(word(page, 6)).to_have_attribute("aria-pressed", "false")


def test_heads_are_clamped_in_the_picture_and_let_go(new_page):
    page = new_page("text=" + quote(SENTENCE))
    page.get_by_label("gives it a head").check()
    word(page, 1).click()
    expect(page.get_by_text("Choose the head of “did”")).to_be_visible()
    word(page, 4).click()
    expect(page.locator(".clamp-list li")).to_have_text(re.compile("did ← the in all channels"))
    settle(page)
    assert "did ← the  1.00" in arcs(page)
    page.get_by_role("button", name="Let go of did ← the").click()
    expect(page.locator(".clamp-list li")).to_have_count(0)
    settle(page)
    assert "did ← the  1.00" not in arcs(page)


def test_heads_and_labels_are_clamped_in_forms(new_page):
    page = new_page("text=" + quote(SENTENCE))
    page.get_by_text("Hold a head or a label").click()
    page.get_by_label("The head of").select_option("2 did")
    page.get_by_label("is", exact=True).first.select_option("2 did")
    page.get_by_role("button", name="Hold head").click()
    expect(page.get_by_text("A word cannot be its own head.")).to_be_visible()
    page.get_by_label("is", exact=True).first.select_option("6 dog")
    page.get_by_label("in", exact=True).select_option("channel 1")
    page.get_by_role("button", name="Hold head").click()
    page.get_by_label("The label of").select_option("3 not")
    page.get_by_label("is", exact=True).last.fill("7")
    page.get_by_role("button", name="Hold label").click()
    expect(page.locator(".clamp-list li")).to_have_count(2)
    expect(page.get_by_text("A word cannot be its own head.")).to_have_count(0)
    row = page.get_by_role("row", name=re.compile("^not "))
    expect(row.get_by_role("button", name="label 7, 100 %")).to_be_visible()


def test_labels_say_what_they_mean_and_can_be_held(new_page):
    page = new_page("text=" + quote(SENTENCE))
    row = page.get_by_role("row", name=re.compile("^dog "))
    row.locator(".label").nth(1).click()
    card = page.locator(".card")
    expect(card).to_contain_text(re.compile(r"Label \d+ is owned by \S+"))
    expect(card).to_contain_text("It is the strongest label of")
    card.get_by_role("button", name="Hold the word").click()
    expect(page.locator(".clamp-list li")).to_have_text(re.compile("dog has label"))
    expect(row.locator(".label").first).to_contain_text("100 %")


def test_two_runs_side_by_side(new_page):
    page = new_page("text=" + quote(SENTENCE))
    page.get_by_label("Compare with").select_option("layers")
    expect(page.get_by_text("layer 2 of 2")).to_be_visible()
    expect(page.get_by_text("iteration 4 of 4")).to_be_visible()
    expect(page.get_by_text("no free energy")).to_be_visible()
    left, right = page.locator(".panel").all()
    assert left.bounding_box()["y"] == right.bounding_box()["y"]
    expect(right.get_by_text("gives it a head")).to_have_count(0)
    right.locator(".word").nth(5).click()
    expect(page.get_by_text("For “dog” it guesses")).to_have_count(2)
    page.get_by_label("Compare with").select_option("nothing")
    expect(page.locator(".panel")).to_have_count(1)


def test_tags_and_classes(new_page):
    page = new_page("run=tagger&run2=classifier&text=" + quote(SENTENCE))
    tagger, classifier = page.locator(".panel").all()
    assert all(note.inner_text() for note in tagger.locator("tbody td:nth-of-type(1)").all())
    expect(tagger.locator(".word .note")).to_have_count(7)
    expect(classifier.locator(".answer")).to_contain_text(re.compile(r"Class .*\d+\s%"))
    page.get_by_label("gives it a head").last.check()
    classifier.locator(".word").nth(0).click()
    classifier.get_by_role("button", name="ROOT", exact=True).click()
    expect(classifier.locator(".clamp-list li")).to_have_text(re.compile("she ← ROOT"))


def test_arcs_of_a_parser_have_labels(new_page, tmp_path):
    page = new_page("run=parser&from=0.05&text=" + quote(SENTENCE))
    expect(page.get_by_label("0", exact=True)).to_be_checked()
    expect(page.get_by_text(re.compile("The root of the predicted tree is “.*”"))).to_be_visible()

    def labels_in_titles():
        found = [re.fullmatch(r".+ ← .+  \d\.\d\d  (\S+) \d\.\d\d", arc) for arc in arcs(page)]
        return [title[1] for title in found]

    last = arc_labels(page)
    assert last
    assert last == labels_in_titles()
    page.get_by_role("slider", name="iteration").press("Home")
    assert arc_labels(page) == labels_in_titles() != last
    page.get_by_role("slider", name="iteration").press("End")
    expect(page.get_by_role("columnheader", name="label of the arc")).to_be_visible()
    for row, text in zip(page.locator("tbody tr").all(), SENTENCE.split(), strict=True):
        cells = [
            cell.inner_text().split("\N{NO-BREAK SPACE}")[0] for cell in row.locator("td").all()
        ]
        (head, certain), (label, share) = (cell.split(" ") for cell in cells[:2])
        (title,) = {arc for arc in arcs(page) if arc.startswith(f"{text} ← {head}  ")}
        assert title.split("  ")[2].split(" ")[0] == label
        assert float(title.split("  ")[1]) == pytest.approx(int(certain) / 100, abs=0.011)
        assert float(title.rpartition(" ")[2]) == pytest.approx(int(share) / 100, abs=0.011)
    with page.expect_download() as download:
        page.get_by_role("button", name="Picture (SVG)").click()
    download.value.save_as(tmp_path / "parser.svg")
    written = [*ET.parse(tmp_path / "parser.svg").getroot().itertext()]
    assert {*last} <= {*written}
    page.get_by_label("1", exact=True).check()
    assert not "".join(arc_labels(page))
    expect(page.get_by_role("columnheader", name="label of the arc")).to_have_count(0)
    page.get_by_label("all", exact=True).check()
    assert not "".join(page.locator(".grid .arc-label").all_text_contents())
    assert {*last} <= {
        arc.split("  ")[2].split(" ")[0] for arc in arcs(page) if arc.count("  ") == 2
    }


def test_a_run_is_opened_in_its_channel(new_page):
    page = new_page("run=reader&text=" + quote(SENTENCE))
    expect(page.get_by_label("average")).to_be_checked()
    page.get_by_label("Compare with").select_option("parser")
    expect(page.get_by_label("0", exact=True).last).to_be_checked()
    expect(page.get_by_label("average").first).to_be_checked()
    page.get_by_label("average").last.check()
    settle(page)
    page.wait_for_timeout(300)  # the address follows with a delay
    again = new_page(page.url.split("#")[1])
    expect(again.get_by_label("average").last).to_be_checked()


def test_pictures_and_pages_are_saved(new_page, tmp_path):
    page = new_page("hide=5&text=" + quote(SENTENCE))
    for name, suffix in (("Picture (SVG)", "svg"), ("Page (HTML)", "html")):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        assert download.value.suggested_filename == f"reader.{suffix}"
        download.value.save_as(tmp_path / f"reader.{suffix}")
    svg = ET.parse(tmp_path / "reader.svg").getroot()
    assert "<mask>" in "".join(svg.itertext())
    html = (tmp_path / "reader.html").read_text(encoding="utf-8")
    assert "iteration 4 of 4" in html
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", html)


def test_a_link_brings_everything_back(new_page):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    sentence(page).fill(SENTENCE)
    settle(page)
    word(page, 0).click()
    page.get_by_label("gives it a head").check()
    word(page, 2).click()
    word(page, 4).click()
    page.get_by_label("1", exact=True).check()
    page.get_by_label("Compare with").select_option("layers")
    page.get_by_role("slider", name="iteration").press("Home")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    other = new_page(link.split("#")[1])
    assert sentence(other).input_value() == SENTENCE
    expect(word(other, 0)).to_have_attribute("aria-pressed", "true")
    expect(other.locator(".clamp-list li")).to_have_text(re.compile("not ← the in all channels"))
    expect(other.get_by_label("1", exact=True).first).to_be_checked()
    expect(other.get_by_text("iteration 1 of 4")).to_be_visible()
    expect(other.get_by_text("layer 2 of 2")).to_be_visible()
    assert arcs(other) == arcs(page)
    assert "text=" not in "".join(request.url.split("#")[0] for request in other.watch.requests)


def test_links_that_make_no_sense_here_do_no_harm(new_page):
    page = new_page(
        "run=../../etc&run2=%00&hide=99 x&heads=0:0:all 5:a:1&channel=77&step=-3&from=9"
    )
    expect(
        page.get_by_text("The link names a run that is not open here: ../../etc.")
    ).to_be_visible()
    expect(page.locator(".clamp-list li")).to_have_count(0)
    expect(page.get_by_label("average")).to_be_checked()


def test_with_the_keyboard_only(new_page):
    page = new_page("text=" + quote(SENTENCE))
    keyboard = page.keyboard

    def tab_to(test, most=60):
        for _ in range(most):
            keyboard.press("Tab")
            if page.evaluate(f"(() => {{ const e = document.activeElement; return {test} }})()"):
                return
        raise AssertionError(f"Tab does not lead to {test}")

    tab_to("e.tagName === 'TEXTAREA'")
    keyboard.press("Control+A")
    keyboard.type("they did not see her .")
    settle(page)
    tab_to("e.classList.contains('word')")
    keyboard.press("ArrowRight")
    keyboard.press("ArrowRight")
    keyboard.press("Enter")
    expect(page.get_by_text("For “not” it guesses")).to_be_visible()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("not, hid")
    assert page.evaluate("document.activeElement.matches(':focus-visible')")
    keyboard.press("Space")
    expect(page.get_by_text("it guesses")).to_have_count(0)
    tab_to("e.type === 'range'")
    keyboard.press("Home")
    expect(page.get_by_text("iteration 1 of 4")).to_be_visible()
    tab_to("e.tagName === 'SUMMARY'")
    keyboard.press("Enter")
    tab_to("e.textContent === 'Hold head'")
    keyboard.press("Enter")
    expect(page.locator(".clamp-list li")).to_have_count(1)
    tab_to("e.classList.contains('label')")
    keyboard.press("Enter")
    expect(page.locator(".card")).to_be_visible()
    tab_to("e.textContent === 'Close'")
    keyboard.press("Enter")
    expect(page.locator(".card")).to_have_count(0)
    assert page.evaluate("document.activeElement.classList.contains('label')")
    tab_to("e.textContent === 'Page (HTML)'")


def test_everything_has_a_name_for_screen_readers(new_page):
    page = new_page("run2=layers&channel=all")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea, [role=button]")]
            .filter((e) => !e.getAttribute("aria-label") && !e.labels?.length && !e.textContent)
            .map((e) => e.outerHTML)"""
    )
    assert not nameless
    assert page.get_by_role("table").count() == 2
    expect(page.locator(".answer[aria-live=polite]")).to_have_count(2)


def test_hostile_text_stays_text(new_page):
    page = new_page("text=" + quote(HOSTILE))
    assert page.title() == "Probformer explorer"
    assert page.locator("main img, main b").count() == 0
    assert words(page)[1:5] == ["<img", "src=x", "onerror=document.title='run'>", "<b>dog</b>"]
    assert words(page)[5:7] == ["\\u202esleeps", "\\x1b[31m"]
    word(page, 4).click()
    expect(page.get_by_text("For “<b>dog</b>” it guesses")).to_be_visible()


def test_errors_are_told_where_they_arise_and_nothing_is_lost(new_page):
    page = new_page("text=" + quote(SENTENCE))
    sentence(page).fill("word " * 201)
    expect(page.locator("#sentence-errors")).to_contain_text("at most 200 words")
    sentence(page).fill("word " * 200_000)
    expect(page.locator("#sentence-errors")).to_contain_text("too many for one sentence")
    assert words(page) == SENTENCE.split()
    sentence(page).fill(SENTENCE)
    expect(page.locator("#sentence-errors")).to_have_text("")
    page.route("**/draw", lambda route: route.fulfill(status=422, json={"error": "no room"}))
    page.get_by_role("button", name="Picture (SVG)").click()
    expect(page.locator(".share-bar .error")).to_have_text("no room")
    assert len(page.watch.refusals()) == 2


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_themes_and_phones(new_page, theme):
    page = new_page(
        "run2=layers&hide=1", color_scheme=theme, viewport={"width": 360, "height": 740}
    )
    background = "getComputedStyle(document.documentElement).backgroundColor"
    shown = page.evaluate(background)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_label("auto").press("ArrowRight")
    if theme == "light":
        page.get_by_label("light").press("ArrowRight")
    assert page.evaluate(background) != shown
    page.reload()
    settle(page)
    assert page.evaluate(background) != shown


def test_long_sentences_and_right_to_left_ones(new_page):
    page = new_page("text=" + quote(" ".join([SENTENCE] * 11)))
    heights = {round(word(page, at).bounding_box()["y"]) for at in range(77)}
    assert len(heights) > 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    sentence(page).fill("הכלב לא ראה את החתול")
    settle(page)
    places = [word(page, at).bounding_box()["x"] for at in range(5)]
    assert places == sorted(places, reverse=True)


def test_nothing_moves_for_those_who_asked_for_that(new_page):
    seconds = "getComputedStyle(document.querySelector('.arc')).transitionDuration"
    assert new_page().evaluate(seconds) != "0s"
    assert new_page(reduced_motion="reduce").evaluate(seconds) == "0s"
