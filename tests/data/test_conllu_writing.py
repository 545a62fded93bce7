"""CoNLL-U with other annotation: what is given is written, all else stays byte for byte."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.messages import refused
from probformer.data.formats import find_format
from probformer.data.formats.conllu import Annotation, annotated, as_conllu
from probformer.data.readers import SentenceFile
from probformer.data.sentence import Sentence
from probformer.sentinels import ROOT, UNOBSERVED

TREEBANK = """\
# newdoc id = d
# sent_id = 1
# text = She can't see dogs.
1\tShe\tshe\tPRON\tPRP\tCase=Nom|Number=Sing\t4\tnsubj\t4:nsubj\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tStart=4|End=9
2\tca\tcan\tAUX\tMD\t_\t4\taux\t4:aux\tLemma=can|Gloss=may|X
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t4:advmod\t_
4\tsee\tsee\tVERB\tVB\t_\t0\troot\t0:root\t_
4.1\tsee\tsee\tVERB\tVB\t_\t_\t_\t0:root\tCopyOf=4
5\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t_\tobj\t_\tSpaceAfter=No
 6 \t.\t.\tPUNCT\t. \t_\t 04\t punct\t_\t_

# a comment alone
 \n\n\
# sent_id = 2
1\tdogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t2:nsubj\t_
2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t0:root\tSpaceAfter=No
# after the words
"""
LINES = TREEBANK.splitlines()
WORDS = [3, 5, 6, 7, 9, 10]
"""The lines of the words of the first sentence."""
HEADS = (3, 3, 3, ROOT, UNOBSERVED, 3)
TAGS = ("upos", "xpos")
NOTHING = Annotation()


def fields_of(lines, column):
    return [lines[at].split("\t")[column] for at in WORDS]


def other_columns(lines, *columns):
    return [
        [field for at, field in enumerate(line.split("\t")) if at not in columns] for line in lines
    ]


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.conllu"
    path.write_text(TREEBANK, encoding="utf-8")
    return list(SentenceFile(path, "conllu"))


def test_gold_annotation_gives_back_the_same_bytes(gold):
    assert gold[0].heads == HEADS
    misc = [{}, {"Gloss": "may", "Lemma": "can"}, {}, {}, {"SpaceAfter": "No"}, {}]
    same = [
        Annotation(s.heads, s.columns["deprel"], {name: s.columns[name] for name in TAGS}, entries)
        for s, entries in zip(gold, [misc, [{}, {}]], strict=True)
    ]
    assert annotated(LINES, same) == (LINES, 0)
    assert annotated(LINES, [NOTHING, NOTHING]) == (LINES, 0)


def test_only_what_changes_is_written():
    """The word whose head was not known gets one, and one that had a head loses it."""
    heads = (UNOBSERVED, 3, 4, ROOT, 3, 3)
    lines, dropped = annotated(LINES, [Annotation(heads), NOTHING])
    assert dropped == 1
    assert fields_of(lines, 6) == ["_", "4", "5", "0", "4", " 04"]
    assert fields_of(lines, 7) == ["_", "aux", "dep", "root", "dep", " punct"]
    assert fields_of(lines, 8) == ["_"] * 6
    assert other_columns(lines, 6, 7, 8) == other_columns(LINES, 6, 7, 8)
    for at in set(range(len(LINES))) - set(WORDS):
        assert lines[at] == LINES[at]


def test_a_new_root_is_said_to_be_one():
    lines, dropped = annotated(LINES, [NOTHING, Annotation(np.array([ROOT, 0]))])
    assert [line.split("\t")[6:9] for line in lines[-3:-1]] == [
        ["0", "root", "_"],
        ["1", "dep", "_"],
    ]
    assert dropped == 1
    assert lines[:-3] == LINES[:-3]


def test_sentences_without_enhanced_dependencies_do_not_lose_any():
    bare = [line.replace("2:nsubj", "_").replace("0:root", "_") for line in LINES]
    _, dropped = annotated(bare, [NOTHING, Annotation([ROOT, 0])])
    assert dropped == 0


def test_labels_are_written_whatever_the_heads_are():
    labels = ("a", "b", "c", "d", "e", "punct")
    lines, dropped = annotated(LINES, [Annotation(labels=labels), NOTHING])
    assert fields_of(lines, 7) == ["a", "b", "c", "d", "e", " punct"]
    assert other_columns(lines, 7) == other_columns(LINES, 7)
    assert dropped == 0
    lines, dropped = annotated(LINES, [Annotation((1, 2, 3, ROOT, 3, 3), labels), NOTHING])
    assert fields_of(lines, 7) == ["a", "b", "c", "d", "e", " punct"]
    assert dropped == 1


@pytest.mark.parametrize(("name", "column"), [("upos", 3), ("xpos", 4)])
def test_tags_are_written_to_their_column(name, column):
    lines, dropped = annotated(LINES, [Annotation(tags={name: tuple("ABCDEF")}), NOTHING])
    assert fields_of(lines, column) == list("ABCDEF")
    assert other_columns(lines, column) == other_columns(LINES, column)
    assert dropped == 0


def test_entries_are_added_to_misc_or_replaced():
    misc = [
        {"P": "0.9", "Q": "1"},
        {"Gloss": "can", "P": "0.5"},
        {},
        {},
        {"SpaceAfter": "Yes"},
        {"P": "1"},
    ]
    lines, _ = annotated(LINES, [Annotation(misc=misc), NOTHING])
    assert fields_of(lines, 9) == [
        "P=0.9|Q=1",
        "Lemma=can|Gloss=can|X|P=0.5",
        "_",
        "_",
        "SpaceAfter=Yes",
        "P=1",
    ]
    assert other_columns(lines, 9) == other_columns(LINES, 9)


@pytest.mark.parametrize(
    ("annotations", "named"),
    [
        (lambda: [NOTHING], ("one annotation", "1")),
        (lambda: [NOTHING] * 3, ("one annotation", "2")),
        (lambda: [NOTHING, Annotation(heads=[ROOT])], ("sentence 2", "heads", "2 words", "1")),
        (lambda: [Annotation(labels=["a"] * 7), NOTHING], ("sentence 1", "labels", "6 words", "7")),
        (lambda: [NOTHING, Annotation(tags={"upos": "ABC"})], ("upos", "2 words", "3")),
        (lambda: [NOTHING, Annotation(misc=[{}])], ("misc", "2 words", "1")),
        (lambda: [Annotation(tags={"lemma": []})], ("column", "upos", "xpos", "'lemma'")),
    ],
    ids=["too few", "too many", "heads", "labels", "tags", "misc", "column"],
)
def test_annotation_that_does_not_fit_is_refused(annotations, named):
    with refused(*named):
        annotated(LINES, annotations())


def test_sentences_become_lines_and_lines_sentences(tmp_path):
    words = Sentence(("a", "b", "c"), {"upos": ("X", "Y", "Z")})
    lines, _ = annotated(as_conllu(words), [Annotation([1, ROOT, UNOBSERVED])])
    path = tmp_path / "out.conllu"
    path.write_text("\n".join(lines))
    (sentence,) = SentenceFile(path, "conllu")
    assert (sentence.words, sentence.columns["upos"]) == (words.words, ("X", "Y", "Z"))
    assert sentence.heads == (1, ROOT, UNOBSERVED)
    assert sentence.columns["deprel"] == ("dep", "root", "_")


@given(st.data())
def test_what_is_written_is_read_again(data):
    """Whatever the heads, from none known to all, and whatever they were."""

    def heads():
        """Each word hangs from one before it, so that there is no cycle."""
        return tuple(data.draw(st.sampled_from([ROOT, UNOBSERVED, *range(at)])) for at in range(6))

    first, _ = annotated(LINES, [Annotation(heads()), NOTHING])
    wanted = heads()
    lines, _ = annotated(first, [Annotation(wanted), NOTHING])
    numbered = enumerate(lines[: WORDS[-1] + 1], start=1)
    (sentence,) = find_format("conllu")().parse(iter(numbered))
    assert (sentence.heads or (UNOBSERVED,) * 6) == wanted
