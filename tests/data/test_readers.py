"""Files become sentences, one at a time, and every bad line is named."""

import gzip
import os
import random
import subprocess
import sys
import tempfile
import tracemalloc
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path

import conllu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.messages import refused
from probformer.data.readers import SentenceFile, lines_of
from probformer.data.sentence import Sentence
from probformer.errors import InputError
from probformer.sentinels import ROOT, UNOBSERVED

read_text = partial(SentenceFile, format="text")
read_conllu = partial(SentenceFile, format="conllu")


def read_columns(path, columns, **settings):
    return SentenceFile(path, "columns", columns, **settings)


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "corpus") -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def row(number, word, head="_", **fields) -> str:
    values = [fields.get(name, "_") for name in ("lemma", "upos", "xpos", "feats")]
    return "\t".join([str(number), word, *values, str(head), fields.get("deprel", "_"), "_", "_"])


def block(*rows: str) -> str:
    return "\n".join(rows) + "\n\n"


GOOD = block(row(1, "cats", 2), row(2, "sleep", 0))


# What is read


def test_text_has_a_sentence_a_line(write):
    path = write("the cat  sat\r\n\n \t \n\u00a0\non\tmats , <unk>")
    assert list(read_text(path)) == [
        Sentence(("the", "cat", "sat")),
        Sentence(("on", "mats", ",", "<unk>")),
    ]


def test_conllu_has_words_columns_and_heads(write):
    path = write(
        "# sent_id = 1\n"
        + block(
            row("1-2", "Cats've"),
            row(1, "Cats", 3, lemma="cat", upos="NOUN", xpos="NNS", deprel="nsubj"),
            row(2, "'ve", 3, lemma="have", upos="AUX", xpos="VBP", deprel="aux"),
            row("2.1", "long"),
            row(3, "slept", 0, lemma="sleep", upos="VERB", xpos="VBN", deprel="root"),
        )
        + "# a comment alone\n\n\n"
        + row(1, "_", "_")
    )
    first, second = read_conllu(path)
    assert first == Sentence(
        ("Cats", "'ve", "slept"),
        {
            "lemma": ("cat", "have", "sleep"),
            "upos": ("NOUN", "AUX", "VERB"),
            "xpos": ("NNS", "VBP", "VBN"),
            "deprel": ("nsubj", "aux", "root"),
        },
        heads=(2, 2, ROOT),
    )
    assert second.words == ("_",)
    assert second.heads is None


def test_a_head_may_be_unknown(write):
    unknown = block(row(1, "a"), row(2, "b"))
    partial = block(row(1, "a", 2), row(2, "b", "_"), row(3, "c", 0))
    assert [s.heads for s in read_conllu(write(unknown + partial))] == [
        None,
        (1, UNOBSERVED, ROOT),
    ]


def test_a_cycle_of_known_heads_is_refused(write):
    cycle = block(row(1, "a"), row(2, "b", 4), row(3, "c", 2), row(4, "d", 3), row(5, "e", 1))
    with refused("corpus:2: "):
        list(read_conllu(write(cycle)))
    chain = block(row(1, "a"), row(2, "b", 4), row(3, "c", 2), row(4, "d", 1), row(5, "e", 1))
    assert next(iter(read_conllu(write(chain)))).heads == (UNOBSERVED, 3, 1, 0, 0)


def test_conllu_sentences_have_ids(write):
    path = write(
        f"# sent_id = a-1\n# text = x\n{GOOD}{GOOD}#sent_id=b 2\n{GOOD}# sent_ids = c\n{GOOD}"
    )
    sentences = list(read_conllu(path))
    assert [s.id for s in sentences] == ["a-1", "", "b 2", ""]
    assert len(set(map(repr, [replace(s, line=0) for s in sentences]))) == 1, "digests are of it"
    assert sentences[0] == sentences[1]
    assert sentences[0].place() == f"{path}:3 (sentence a-1)"
    assert sentences[1].place() == f"{path}:6"


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ((row(1, "a", 2), row(2, "b", 9)), ("corpus:7 (sentence w-1): ", "word 2, 'b',", "'9'")),
        ((row(1, "a", 2), row(2, "b", 2)), ("corpus:7 (sentence w-1): ", "word 2, 'b',")),
        ((row(1, "a", 2), row(2, "b", 1)), ("corpus:6 (sentence w-1): ", "word 1, 'a',")),
        ((row(1, "a", 2), row(2, "")), ("corpus:7 (sentence w-1): ",)),
    ],
    ids=["head beyond", "head itself", "cycle", "no word"],
)
def test_a_mistake_is_named_with_its_word_and_the_id_of_its_sentence(write, rows, named):
    path = write(f"# sent_id = w-0\n{GOOD}# sent_id = w-1\n{block(*rows)}")
    with refused(*named):
        list(read_conllu(path))


def test_words_have_their_own_lines_beside_ranges_and_empty_nodes(write):
    rows = row(1, "a", 0), row("1.1", "x"), row("2-3", "bc"), row(2, "b", 1), row(3, "c", 1)
    text = "# sent_id = w\n" + block(*rows) + GOOD
    first, second = read_conllu(path := write(text))
    assert [first.place(word) for word in range(3)] == [
        f"{path}:{line} (sentence w)" for line in (2, 5, 6)
    ]
    assert [second.place(word) for word in range(2)] == [f"{path}:8", f"{path}:9"]
    moved = next(iter(read_conllu(write("\n\n" + text))))
    assert (moved, repr(replace(moved, line=0))) == (first, repr(replace(first, line=0)))


def test_columns_are_separated_by_tabs_or_else_by_spaces(write):
    path = write("New York\tx\tB-LOC\nis  VBZ   O\n\n\nhere\t\tO\n")
    assert list(read_columns(path, ["word", "_", "entity"])) == [
        Sentence(("New York", "is"), {"entity": ("B-LOC", "O")}),
        Sentence(("here",), {"entity": ("O",)}),
    ]


def test_the_word_may_be_any_column(write):
    (sentence,) = read_columns(write("DT the\n"), ("pos", "word"))
    assert sentence == Sentence(("the",), {"pos": ("DT",)})


def test_a_number_sign_starts_a_comment_or_is_a_word(write):
    path = write("# sentence\n# # O\n# 5 O\na b O\n\n# only\n\n")
    (sentence,) = read_columns(path, ["word", "pos", "entity"])
    assert sentence.words == ("#", "#", "a")
    with refused("corpus:2: ", "word, pos, entity"):
        list(read_columns(write("a b O\n# late\n"), ["word", "pos", "entity"]))


def test_comments_name_documents(write):
    content = "# doc = one\na\tX\n\nb\tX\n\n#doc\n# doc\n# doc = two\n#\tY\nc\tX\n"
    sentences = list(read_columns(write(content), ["word", "tag"]))
    assert [s.words for s in sentences] == [("a",), ("b",), ("#", "c")]
    assert [s.document for s in sentences] == ["one", "one", "two"]
    content = "# newdoc id = x\n" + GOOD + GOOD + "# newdoc id = y\n" + GOOD
    assert [s.document for s in read_conllu(write(content))] == ["x", "x", "y"]


def test_sentences_know_where_they_are_from(write):
    path = write("# doc = one\na\tX\nb\tX\n\nc\tX\n")
    first, second = read_columns(path, ["word", "tag"])
    assert [first.place(0), first.place(1), second.place(0)] == [f"{path}:{n}" for n in (2, 3, 5)]
    (sentence,) = read_text(write("\na b\n"))
    assert sentence.place(1) == f"{path}:2"


def test_tsv_has_a_sentence_and_its_label_a_line(write):
    read = SentenceFile(write("a good film . \t1\n\nbad\t0\n"), "tsv", ["text", "label"])
    assert [(s.words, s.label) for s in read] == [
        (("a", "good", "film", "."), "1"),
        (("bad",), "0"),
    ]
    read = SentenceFile(write("3 so so\n0 bad\n"), "tsv", ["label", "text"])
    assert [(s.words, s.label) for s in read] == [(("so", "so"), "3"), (("bad",), "0")]
    line = "A cat slept .\tcat ( x _ 1 ) AND sleep . agent ( x _ 2 , x _ 1 )\tsome_case\n"
    (sentence,) = SentenceFile(write(line), "tsv", ["text", "logical_form", "label"])
    assert sentence.logical_form == line.split("\t")[1]
    assert sentence.label == "some_case"


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("good\t1\nbad\n", "corpus:2: "),
        ("good\t1\nthis is bad\n", "corpus:2: "),
        ("good\t1\t2\n", "text, label"),
        ("good\t\n", "'label'"),
        (" \t1\n", "'text'"),
    ],
    ids=["no tab", "spaces", "three fields", "no label", "no text"],
)
def test_a_mistake_in_tsv_is_named(write, content, named):
    with refused(named):
        list(SentenceFile(write(content), "tsv", ["text", "label"]))


TREES = "( (S (NP-SBJ (DT The) (NN cat) (-NONE- *T*-1)) (VP (VBD sat)) (. .)) )\n"


def test_trees_are_tagged_sentences_without_traces(write):
    path = write("\n" + TREES + "( (NP (CD 1.5)\n  (NNS Cats)) ) ( (X (-NONE- *)) )\n")
    first, second = SentenceFile(path, "mrg")
    assert (first.words, first.columns["xpos"]) == (
        ("The", "cat", "sat", "."),
        ("DT", "NN", "VBD", "."),
    )
    assert [first.line, second.line] == [2, 3]
    prepared = SentenceFile(path, "mrg", prepare="bllip")
    assert [s.words for s in prepared] == [("the", "cat", "sat"), ("N.N", "cats")]


def test_a_mistake_in_a_tree_is_named_or_skipped(write):
    path = write(TREES + "( (S (NN a) b) )\n" + TREES)
    with refused("corpus:2: ", "'b'"):
        list(SentenceFile(path, "mrg"))
    lenient = SentenceFile(path, "mrg", skip_bad_lines=True)
    assert len(list(lenient)) == 2
    assert lenient.report.skipped == 1


def test_a_tree_without_an_end_spoils_no_other(write):
    path = write(TREES + "( (S (NN a)\n  (NN b))\n" + TREES * 3)
    with refused("corpus:2: "):
        list(SentenceFile(path, "mrg"))
    lenient = SentenceFile(path, "mrg", skip_bad_lines=True)
    assert len(list(lenient)) == 4
    assert lenient.report.skipped == 1


def test_document_starts_are_no_words(write):
    path = write("-DOCSTART- -X- O\n\nEU NNP B\n-DOCSTART- O\nPeter NNP B\n")
    read = read_columns(path, ["word", "pos", "entity"])
    assert [s.words for s in read] == [("EU",), ("Peter",)]


def test_a_byte_order_mark_is_no_letter(write):
    assert next(iter(read_text(write("\ufeffthe cat")))).words == ("the", "cat")
    marked = write("\ufeff-DOCSTART- -X- O\n\nEU NNP B\n")
    assert [s.words for s in read_columns(marked, ["word", "pos", "entity"])] == [("EU",)]
    assert [*lines_of(BytesIO("\ufeffthe cat\n".encode()))] == ["the cat"]


@pytest.mark.parametrize("name", ["corpus.conllu", "corpus.conllu.gz"])
def test_a_file_can_be_read_again(write, name):
    sentences = read_conllu(write(GOOD * 3, name))
    assert len(list(sentences)) == 3
    assert len(list(sentences)) == 3
    pairs = zip(sentences, sentences, strict=True)  # two passes at once
    assert all(a == b for a, b in pairs)


WORD = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0"), max_size=5)
    .map(lambda word: word.strip(" "))
    .filter(str.strip)
)
PLAIN_WORD = st.text(  # the other reader treats some white space as ends of lines
    st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5
).filter(lambda word: not any(letter.isspace() for letter in word))


@st.composite
def trees(draw, word=WORD):
    size = draw(st.integers(1, 6))
    words = st.lists(word, min_size=size, max_size=size).map(tuple)
    heads, order = [ROOT] * size, draw(st.permutations(range(size)))
    for place, position in enumerate(order):  # each hangs from one before it, or from the root
        heads[position] = draw(st.sampled_from([ROOT, *order[:place]]))
    columns = {name: draw(words) for name in ("lemma", "upos", "xpos", "deprel")}
    return Sentence(draw(words), columns, tuple(heads))


@st.composite
def as_conllu(draw, sentence: Sentence) -> str:
    """The sentence as a file has it, with things around the words that a reader must skip."""
    lines = [f"# {text}" for text in draw(st.lists(st.sampled_from(["x = 1", "text = a\tb", "#"])))]
    assert sentence.heads is not None
    for position, word in enumerate(sentence.words):
        number = position + 1
        if number < len(sentence) and draw(st.booleans()):
            lines.append(row(f"{number}-{number + 1}", "both"))
        fields = {name: values[position] for name, values in sentence.columns.items()}
        lines.append(row(number, word, sentence.heads[position] + 1, **fields))
        if draw(st.booleans()):
            lines.append(row(f"{number}.1", "silent"))
    return "\n".join(lines) + "\n" * draw(st.integers(2, 3))


def in_a_file(text: str):
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "trees.conllu"
    path.write_bytes(text.encode())
    return folder, path


@given(st.data(), st.lists(trees(), min_size=1, max_size=4))
def test_conllu_comes_back_as_written(data, sentences):
    folder, path = in_a_file("".join(data.draw(as_conllu(s)) for s in sentences))
    with folder:
        assert list(read_conllu(path)) == sentences


@given(st.data(), st.lists(trees(PLAIN_WORD), min_size=1, max_size=4))
def test_conllu_is_read_as_the_conllu_package_reads_it(data, sentences):
    text = "".join(data.draw(as_conllu(s)) for s in sentences)
    folder, path = in_a_file(text)
    with folder:
        ours = list(read_conllu(path))
    theirs = [tokens.filter(id=lambda i: isinstance(i, int)) for tokens in conllu.parse(text)]
    assert [s.words for s in ours] == [tuple(t["form"] for t in tokens) for tokens in theirs]
    assert [s.heads for s in ours] == [tuple(t["head"] - 1 for t in tokens) for tokens in theirs]
    for name in ("lemma", "deprel", "upos", "xpos"):
        read = [[value for value in s.columns[name] if value != "_"] for s in ours]
        wanted = [[t[name] for t in tokens if t[name] not in (None, "_")] for tokens in theirs]
        assert read == wanted


@given(st.lists(st.lists(st.tuples(PLAIN_WORD, PLAIN_WORD), min_size=1), min_size=1))
def test_columns_come_back_as_written(sentences):
    for separator in ("\t", " "):
        lines = "\n".join("".join(f"{w}{separator}{t}\n" for w, t in s) for s in sentences)
        folder, path = in_a_file(lines)
        with folder:
            read = [
                list(zip(s.words, s.columns["tag"], strict=True))
                for s in read_columns(path, ["word", "tag"])
            ]
        assert read == sentences


# Bad input


CONLLU_MISTAKES = {
    "9 fields": (7, block(row(1, "a").rsplit("\t", 1)[0])),
    "11 fields": (7, block(row(1, "a") + "\t_")),
    "spaces": (7, block(row(1, "a").replace("\t", " "))),
    "begins with 2": (7, block(row(2, "a"))),
    "1 again": (8, block(row(1, "a"), row(1, "b"))),
    "3 after 1": (8, block(row(1, "a"), row(3, "b"), row(2, "c"))),
    "id x": (7, block(row("x", "a"))),
    "no word": (7, block(row(1, ""))),
    "head x": (8, block(row(1, "a", 0), row(2, "b", "x"))),
    "head beyond": (7, block(row(1, "a", 3), row(2, "b", "_"))),
    "head -1": (7, block(row(1, "a", -1))),
    "head squared": (7, block(row(1, "a", "²"))),
    "no head": (7, block(row(1, "a", ""))),
    "head itself": (7, block(row(1, "a", 1))),
    "not UTF-8": (7, b"1\t\xc3\xff\n\n"),
}


@pytest.mark.parametrize("mistake", CONLLU_MISTAKES)
def test_a_mistake_in_conllu_is_named_or_skipped(write, mistake):
    line, bad = CONLLU_MISTAKES[mistake]
    bad = bad if isinstance(bad, bytes) else bad.encode()
    path = write(GOOD.encode() * 2 + bad + GOOD.encode())
    strict = iter(read_conllu(path))
    assert len(list(islice(strict, 2))) == 2
    with refused(f"{path}:{line}: "):
        next(strict)

    lenient = read_conllu(path, skip_bad_lines=True)
    assert [s.words for s in lenient] == [("cats", "sleep")] * 3
    assert lenient.report.skipped == 1
    assert [at for at, _ in lenient.report.problems] == [line]


def test_a_head_with_thousands_of_digits_is_one_more_bad_head(write):
    with refused(":1: ", "0 to 1"):
        list(read_conllu(write(row(1, "a", "9" * 5000))))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("a", "word, tag"),
        ("a b c", "word, tag"),
        ("a\tb\t", "word, tag"),
        ("\tb", "'word'"),
        ("a\t", "'tag'"),
    ],
    ids=["1 field", "3 fields", "tab at the end", "no word", "no tag"],
)
def test_a_mistake_in_columns_is_named_or_skipped(write, line, named):
    path = write(f"the DT\n\na b\n{line}\nc d\n\nend NN\n")
    with refused(f"{path}:4: ", named):
        list(read_columns(path, ["word", "tag"]))
    lenient = read_columns(path, ["word", "tag"], skip_bad_lines=True)
    assert [s.words for s in lenient] == [("the",), ("end",)]
    ((at, reason),) = lenient.report.problems
    assert at == 4
    assert named in reason


def test_text_that_is_not_utf8_is_named_or_skipped(write):
    path = write(b"one\ncaf\xe9 here\ntwo\n")
    with refused(":2: ", "byte 4"):
        list(read_text(path))
    lenient = read_text(path, skip_bad_lines=True)
    assert [s.words for s in lenient] == [("one",), ("two",)]
    ((at, reason),) = lenient.report.problems
    assert at == 2
    assert "byte 4" in reason


def test_skipped_sentences_are_counted_anew_in_each_pass(write):
    bad = block(row(1, "a", 7), row(2, "b", 8))  # two bad lines are one bad sentence
    sentences = read_conllu(write((GOOD + bad) * 25), skip_bad_lines=True)
    for _ in range(2):
        assert len(list(sentences)) == 25
        assert sentences.report.skipped == 25
        assert [line for line, _ in sentences.report.problems] == [4 + 6 * i for i in range(10)]


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    "content", ["", "\n \n\n", "# a comment\n\n"], ids=["empty", "blank", "comment"]
)
def test_a_file_without_sentences_is_refused(write, content, skip):
    for name in ("corpus", "corpus.gz"):
        path = write(content, name)
        with refused(f"{path}: "):
            list(read_conllu(path, skip_bad_lines=skip))


def test_a_file_with_bad_sentences_only_is_refused(write):
    path = write("one\n\ntwo\n")
    with refused(f"{path}: ", "line 1: "):
        list(read_conllu(path, skip_bad_lines=True))


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with refused("nowhere: "):
        list(read_text(tmp_path / "nowhere", skip_bad_lines=True))
    with refused(f"{tmp_path}: "):
        list(read_text(str(tmp_path)))
    with pytest.raises(InputError, match="null"):
        list(read_text("a\0b"))


def test_a_file_that_may_not_be_read_is_refused(write, monkeypatch):
    path = write("a")
    path.chmod(0)
    if os.access(path, os.R_OK):  # for root, everything may be read

        def refuse(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match="Permission denied"):
        list(read_text(path))


def random_text(lines: int) -> str:
    letters = random.Random(0)
    return "".join(f"{letters.getrandbits(200):x} word\n" for _ in range(lines))


def test_a_truncated_gzip_is_refused_even_where_bad_lines_are_skipped(write):
    path = write(random_text(1000), "corpus.gz")
    path.write_bytes(path.read_bytes()[:-2000])
    for skip in (False, True):
        with pytest.raises(InputError, match=r"corpus\.gz:\d+: "):
            list(read_text(path, skip_bad_lines=skip))


def test_a_damaged_gzip_is_refused(write):
    path = write(random_text(1000), "corpus.gz")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"corpus\.gz:\d+: "):
        list(read_text(path))


def test_contents_tell_what_is_compressed(write):
    path = write(b"plain text\n", "plain")
    named = path.rename(path.with_name("plain.gz"))
    assert [s.words for s in read_text(named)] == [("plain", "text")]
    packed = write("packed text\n", "packed.gz").rename(path.with_name("packed"))
    assert [s.words for s in read_text(packed)] == [("packed", "text")]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"path": 3}, "path"),
        ({"format": "csv"}, "format"),
        ({"columns": ["word"]}, "columns"),
        ({"prepare": "bllip"}, "prepare"),
        ({"format": "tsv", "columns": ["label"]}, "'text'"),
        ({"format": "tsv", "columns": ["text", "a"]}, "'a'"),
        ({"format": "columns"}, "'word'"),
        ({"format": "columns", "columns": "word"}, "columns"),
        ({"format": "columns", "columns": ["word", ""]}, "columns"),
        ({"format": "columns", "columns": ["word", "a", "a"]}, "columns"),
        ({"format": "columns", "columns": ["_", "tag"]}, "'word'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, named):
    with refused(named):
        SentenceFile(**{"path": "corpus", **settings})


# Streaming


def test_the_first_sentence_is_there_before_the_end_of_the_file_is_touched(write):
    """The end is missing, which a reader of the whole file would notice."""
    path = write(random_text(20_000), "corpus.gz")
    path.write_bytes(path.read_bytes()[:-10])
    assert next(iter(read_text(path))).words[1] == "word"


def test_a_mistake_is_found_before_the_sentence_ends(write):
    """A file of the wrong format is one long sentence; it is not collected to be refused."""
    path = write(random_text(20_000), "corpus.gz")
    path.write_bytes(path.read_bytes()[:-10])
    with refused(":1: "):
        next(iter(read_conllu(path)))


def test_memory_does_not_grow_with_the_file(write):
    path = write(GOOD * 10_000, "corpus.gz")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_conllu(path)) == 10_000
        assert tracemalloc.get_traced_memory()[1] < 300_000 < len(GOOD) * 10_000
    finally:
        tracemalloc.stop()


def test_reading_and_counting_words_does_not_import_torch():
    code = """
import sys
import probformer.data.readers, probformer.data.vocabulary
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
