"""Logical forms of COGS and tags, both ways: written by hand, taken from the grammar, and bad."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.messages import refused
from probformer.data.builtin import builtin_cogs
from probformer.data.builtin.logical_forms import NAMES
from probformer.data.cogs import NO_PARENT, VERB_ROLES, WordTags, form_from_tags, tags_from_form
from probformer.errors import InputError

ROLES = (*VERB_ROLES, "PREP", "PP_NOUN")
CATEGORIES, TYPES = ("PNOUN", "CNOUN", "VERB"), ("DEF", "INDEF")


def tagged(text: str) -> tuple[list[str], WordTags]:
    """From "Otto/1/agent/PNOUN fed/VERB/feed it": a number is a parent, the rest tells itself."""
    words, rows = [], []
    for word, *tags in (token.split("/") for token in text.split()):
        words.append(word)
        parent = next((int(tag) for tag in tags if tag.isdigit()), NO_PARENT)
        known = [next((t for t in tags if t in kinds), "") for kinds in (ROLES, CATEGORIES, TYPES)]
        verb = next((tag for tag in tags if not tag.isdigit() and tag not in known), "")
        rows.append((parent, *known, verb))
    return words, WordTags(*zip(*rows, strict=True))


def full(form: str) -> str:
    """From "*hat(3); feed.agent(1, Otto) & …" to the notation of COGS."""
    tokens = re.findall(r"\w+|\S", form.replace("&", "AND"))
    return " ".join(f"x _ {token}" if token.isdigit() else token for token in tokens)


def test_the_short_notation_of_these_tests():
    tags = WordTags((1, -1), ("theme", ""), ("CNOUN", "VERB"), ("DEF", ""), ("", "dry"))
    assert tagged("lake/1/theme/CNOUN/DEF dried/VERB/dry") == (["lake", "dried"], tags)
    assert full("*cat(3); feed.agent(1, Otto) & cat.nmod.in(3, 16)") == (
        "* cat ( x _ 3 ) ; feed . agent ( x _ 1 , Otto ) AND cat . nmod . in ( x _ 3 , x _ 16 )"
    )


SENTENCES = {
    "names": (
        "Otto/1/agent/PNOUN greeted/VERB/greet Ida/1/theme/PNOUN .",
        "greet.agent(1, Otto) & greet.theme(1, Ida)",
    ),
    "definite": (
        "The goat/2/agent/CNOUN/DEF ate/VERB/eat the hat/2/theme/CNOUN/DEF .",
        "*goat(1); *hat(4); eat.agent(2, 1) & eat.theme(2, 4)",
    ),
    "indefinite, then definite and in capitals": (
        "A goat/2/agent/CNOUN/INDEF broke/VERB/break the PC/2/theme/CNOUN/DEF .",
        "*pc(4); goat(1) & break.agent(2, 1) & break.theme(2, 4)",
    ),
    "a subject that is a theme": (
        "The lake/2/theme/CNOUN/DEF dried/VERB/dry .",
        "*lake(1); dry.theme(2, 1)",
    ),
    "passive": (
        "A tent/3/theme/CNOUN/INDEF was pitched/VERB/pitch by Ida/3/agent/PNOUN .",
        "tent(1) & pitch.theme(3, 1) & pitch.agent(3, Ida)",
    ),
    "dative with to": (
        "Otto/1/agent/PNOUN sold/VERB/sell a hat/1/theme/CNOUN/INDEF "
        "to the nun/1/recipient/CNOUN/DEF .",
        "*nun(6); sell.agent(1, Otto) & sell.theme(1, 3) & sell.recipient(1, 6) & hat(3)",
    ),
    "dative with two objects": (
        "Otto/1/agent/PNOUN sold/VERB/sell the nun/1/recipient/CNOUN/DEF "
        "a hat/1/theme/CNOUN/INDEF .",
        "*nun(3); sell.agent(1, Otto) & sell.recipient(1, 3) & sell.theme(1, 5) & hat(5)",
    ),
    "passive dative": (
        "Ida/2/recipient/PNOUN was sold/VERB/sell a hat/2/theme/CNOUN/INDEF "
        "by Otto/2/agent/PNOUN .",
        "sell.recipient(2, Ida) & sell.theme(2, 4) & sell.agent(2, Otto) & hat(4)",
    ),
    "clauses in clauses": (
        "Otto/1/agent/PNOUN swore/VERB/swear that a nun/5/agent/CNOUN/INDEF "
        "dreamt/1/ccomp/VERB/dream that Ida/8/agent/PNOUN sang/5/ccomp/VERB/sing .",
        "swear.agent(1, Otto) & swear.ccomp(1, 5) & nun(4) & dream.agent(5, 4) & "
        "dream.ccomp(5, 8) & sing.agent(8, Ida)",
    ),
    "phrases in phrases, with one preposition and one noun": (
        "Ida/1/agent/PNOUN saw/VERB/see a hat/1/theme/CNOUN/INDEF under/3/PREP "
        "the tub/4/PP_NOUN/CNOUN/DEF under/6/PREP a hat/7/PP_NOUN/CNOUN/INDEF .",
        "*tub(6); see.agent(1, Ida) & see.theme(1, 3) & hat(3) & hat.nmod.under(3, 6) & "
        "tub.nmod.under(6, 9) & hat(9)",
    ),
    "a phrase in the subject": (
        "The PC/5/agent/CNOUN/DEF under/1/PREP a tub/2/PP_NOUN/CNOUN/INDEF hummed/VERB/hum .",
        "*pc(1); pc.nmod.under(1, 4) & tub(4) & hum.agent(5, 1)",
    ),
    "two phrases with one preposition on one noun": (
        "A hat/8/theme/CNOUN/INDEF in/1/PREP a tub/2/PP_NOUN/CNOUN/INDEF "
        "in/1/PREP the tent/5/PP_NOUN/CNOUN/DEF dried/VERB/dry .",
        "*tent(7); hat(1) & hat.nmod.in(1, 4) & hat.nmod.in(1, 7) & tub(4) & dry.theme(8, 1)",
    ),
    "infinitive, with an object": (
        "A nun/2/agent/CNOUN/INDEF longed/VERB/long to see/2/xcomp/see Ida/4/theme/PNOUN .",
        "nun(1) & long.agent(2, 1) & long.xcomp(2, 4) & see.agent(4, 1) & see.theme(4, Ida)",
    ),
    "infinitives in infinitives": (
        "Ida/1/agent/PNOUN longed/VERB/long to learn/1/xcomp/learn to sing/3/xcomp/sing .",
        "long.agent(1, Ida) & long.xcomp(1, 3) & learn.agent(3, Ida) & learn.xcomp(3, 5) & "
        "sing.agent(5, Ida)",
    ),
    "one name for three people": (
        "Ida/1/agent/PNOUN longed/VERB/long to swear/1/xcomp/swear that "
        "Ida/7/theme/PNOUN was seen/3/ccomp/VERB/see by Ida/7/agent/PNOUN .",
        "long.agent(1, Ida) & long.xcomp(1, 3) & swear.agent(3, Ida) & swear.ccomp(3, 7) & "
        "see.theme(7, Ida) & see.agent(7, Ida)",
    ),
}
PRIMITIVES = {
    "Otto/PNOUN": "Otto",
    "hat/CNOUN": "LAMBDA a . hat ( a )",
    "PC/CNOUN": "LAMBDA a . pc ( a )",
    "sing/VERB/sing": "LAMBDA a . LAMBDA e . sing . agent ( e , a )",
    "dry/VERB/dry": "LAMBDA a . LAMBDA e . dry . theme ( e , a )",
    "do/VERB/do": "LAMBDA a . LAMBDA b . LAMBDA e . do . agent ( e , b ) AND do . theme ( e , a )",
}


def check_both_ways(text: str, form: str) -> None:
    words, tags = tagged(text)
    assert tags_from_form(words, full(form)) == tags
    assert form_from_tags(words, tags) == full(form)


@pytest.mark.parametrize("case", SENTENCES)
def test_a_sentence_is_converted_both_ways(case):
    check_both_ways(*SENTENCES[case])


@pytest.mark.parametrize("depth", [1, 3, 40])
def test_phrases_and_clauses_of_any_depth_are_converted_both_ways(depth):
    text = "Ida/1/agent/PNOUN saw/VERB/see a tub/1/theme/CNOUN/INDEF"
    form = "see.agent(1, Ida) & see.theme(1, 3) & tub(3)"
    for at in range(3, 3 + 3 * depth, 3):
        text += f" in/{at}/PREP a tub/{at + 1}/PP_NOUN/CNOUN/INDEF"
        form += f" & tub.nmod.in({at}, {at + 3}) & tub({at + 3})"
    check_both_ways(text, form)

    text, form = "Ida/1/agent/PNOUN swore/VERB/swear", "swear.agent(1, Ida)"
    for at in range(1, 1 + 3 * depth, 3):
        text += f" that Ida/{at + 3}/agent/PNOUN swore/{at}/ccomp/VERB/swear"
        form += f" & swear.ccomp({at}, {at + 3}) & swear.agent({at + 3}, Ida)"
    check_both_ways(text, form)


@pytest.mark.parametrize("text", PRIMITIVES)
def test_a_primitive_has_tags_but_no_form(text):
    words, tags = tagged(text)
    assert tags_from_form(words, PRIMITIVES[text]) == tags
    assert form_from_tags(words, tags) == ""


def test_the_built_in_corpus_is_converted_both_ways():
    for sentence in (s for split in builtin_cogs(400).values() for s in split):
        words, form = sentence.words, sentence.logical_form
        assert form is not None
        tags = tags_from_form(words, form)
        assert form_from_tags(words, tags) == form
        for at, (before, word) in enumerate(zip(("", *words), words, strict=False)):
            assert (tags.category[at] == "PNOUN") == (word in NAMES)
            assert tags.noun_type[at] == {"the": "DEF", "a": "INDEF"}.get(before.lower(), "")


# Tags that no logical form has


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("so it goes .", ""),
        ("the goat/CNOUN/DEF", "*goat(1)"),
        ("Ida/agent/PNOUN sang/VERB/sing", ""),
        ("Ida/2/agent/PNOUN sang/VERB/sing", ""),
        ("Ida/1/agent/PNOUN sang/VERB", ""),
        ("Ida/1/agent sang/VERB/sing", "sing.agent(1, 0)"),
        ("in/1/PREP it/PP_NOUN", ""),
        ("sang/sing in/0/PREP it/1/agent", ""),
        ("hat in/PREP tub/1/PP_NOUN", ""),
        ("hat in/0 tub/1/PP_NOUN", ""),
        ("Ida sang/1/xcomp/sing", "sing.xcomp(1, 1)"),
        ("Ida/1/agent longed/long to/1/xcomp", "long.agent(1, 0) & long.xcomp(1, 2)"),
        ("long/2/xcomp/long to sing/0/xcomp/sing", "long.xcomp(0, 2) & sing.xcomp(2, 0)"),
        (
            "Ida/2/agent/PNOUN Otto/2/agent/PNOUN longed/long to sing/2/xcomp/sing",
            "long.agent(2, Ida) & long.agent(2, Otto) & long.xcomp(2, 4) & sing.agent(4, Ida)",
        ),
        (
            "Ida/1/agent/PNOUN longed/long Otto/3/agent/PNOUN sing/1/xcomp/sing",
            "long.agent(1, Ida) & long.xcomp(1, 3) & sing.agent(3, Otto)",
        ),
    ],
)
def test_tags_that_make_no_sense_add_no_term(text, form):
    assert form_from_tags(*tagged(text)) == full(form)


def tag(*values: str):
    return st.sampled_from(["", *values]) | st.text(max_size=3)


ROW = st.tuples(
    tag("Ida", "The", "hat", "in", ";", "AND"),
    st.integers(-12, 12) | st.integers(),
    tag(*ROLES),
    tag(*CATEGORIES),
    tag(*TYPES),
    tag("sing", "see"),
)


@given(st.lists(ROW, min_size=1, max_size=10))
def test_any_tags_have_a_form(rows):
    words, *columns = zip(*rows, strict=True)
    assert isinstance(form_from_tags(words, WordTags(*columns)), str)


# Bad forms


WORDS = ["Ida", "saw", "a", "hat", "in", "the", "tub", "."]
SEEN = "see.agent(1, Ida) & see.theme(1, 3)"


@pytest.mark.parametrize(
    "term", ["", "hat", "hat(²)", "hat(3) &", "see.tool(1, 3)", "LAMBDA a.hat(a)", f"hat({9**99})"]
)
def test_a_term_that_cannot_be_read_is_refused(term):
    with refused(repr(full(term)), "agent"):
        tags_from_form(WORDS, full(term))


@pytest.mark.parametrize(
    ("form", "named"),
    [
        ("hat(8)", "x _ 8"),
        ("see.agent(1, 999999999)", "x _ 999999999"),
        ("cap(3)", "position 3"),
        ("cap.nmod.in(3, 6)", "position 3"),
        ("hat.nmod.on(3, 6)", "'on'"),
        ("tub.nmod.in(6, 3)", "'in'"),
        ("see.agent(1, Otto)", "'Otto'"),
        ("see.agent(1, Ida) & see.theme(1, Ida)", "'Ida'"),
        ("see.agent(1, 3) & see.theme(1, 3)", "position 3"),
        ("hat(3) & hat.agent(3, Ida)", "CNOUN and VERB"),
    ],
)
def test_a_form_that_does_not_fit_the_words_is_refused(form, named):
    with refused(named):
        tags_from_form(WORDS, full(form))


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("see.theme(1, 3) & see.agent(1, Ida)", SEEN),
        (f"{SEEN} & *hat(3)", f"*hat(3); {SEEN}"),
        ("see.agent(1, Ida) & watch.theme(1, 3)", "watch.agent(1, Ida) & watch.theme(1, 3)"),
        (
            "see.agent(1, Ida) & see.xcomp(1, 3) & be.agent(3, 6)",
            "see.agent(1, Ida) & see.xcomp(1, 3) & be.agent(3, Ida)",
        ),
    ],
)
def test_terms_that_no_tags_give_are_refused(form, expected):
    with refused(f"'{full(form)}'", f"'{full(expected)}'"):
        tags_from_form(WORDS, full(form))


@pytest.mark.parametrize("form", ["", "cap", "hat ( x _ 0 )", "LAMBDA a . cap ( a )"])
def test_a_bad_form_of_a_word_alone_is_refused(form):
    with refused(f"'{form}'", "'LAMBDA a . hat ( a )'"):
        tags_from_form(["hat"], form)


@given(st.data(), st.sampled_from(list(SENTENCES.values())))
def test_some_terms_in_some_order_are_converted_both_ways_or_refused(data, case):
    words, _ = tagged(case[0])
    terms = re.split(" ; | AND ", full(case[1]))
    form = data.draw(st.lists(st.sampled_from(terms), unique=True).map(" AND ".join) | st.text())
    try:
        tags = tags_from_form(words, form)
    except InputError:
        return
    assert form_from_tags(words, tags) == form
