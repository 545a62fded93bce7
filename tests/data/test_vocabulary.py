"""The order of a vocabulary, what it does with words, and that `tokenizers` agrees."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from helpers.messages import refused
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import MASK, UNKNOWN, Vocabulary

TEXT = [
    ["the", "cat", "sat", "on", "the", "mat"],
    ["The", "dog", "sat"],
    ["<unk>", "sat", "<unk>"],
]
WORD = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda word: not any(letter.isspace() for letter in word)
)
ODD_WORDS = [
    "ΣΑΣ",  # Python lowers the last Σ to ς
    "İstanbul",
    "ẞ",
    "ǅ",
    "e\u0301",
    "é",
    "👩‍👩‍👧",
    "\u200b",
    "\ufeff",
    "猫",
    "ﬁ",
    "a<unk>b",
    "x<mask>",
    "##a",
    "Ġ",
    "\x00",
    "\U00010d50",  # a capital of a recent Unicode
]


def subwords(lower: bool = False) -> Vocabulary:
    return Vocabulary.from_subwords(TEXT, 270, lower)


# Entries


def test_entries_are_ordered_by_frequency_then_by_code_point():
    vocabulary = Vocabulary.from_sentences(TEXT)
    expected = [UNKNOWN, "sat", "the", "The", "cat", "dog", "mat", "on", MASK]
    assert vocabulary.words == expected
    assert len(vocabulary) == 9
    assert (vocabulary.unk, vocabulary.mask) == (0, 8)
    assert [vocabulary.id_of(word) for word in expected] == list(range(9))


def test_ties_go_by_code_point_and_not_by_first_sight():
    words = ["z", "\U0001f600", "\uffff", "Z", "é", "a"]
    assert Vocabulary.from_sentences([words]).words[1:-1] == ["Z", "a", "z", "é", "\uffff", "😀"]


def test_rare_words_and_words_beyond_the_size_are_left_out():
    assert Vocabulary.from_sentences(TEXT, min_frequency=2).words == [UNKNOWN, "sat", "the", MASK]
    assert Vocabulary.from_sentences(TEXT, size=3).words == [UNKNOWN, "sat", MASK]
    assert len(Vocabulary.from_sentences(TEXT, size=100)) == 9
    assert Vocabulary.from_sentences(TEXT, min_frequency=9).words == [UNKNOWN, MASK]


def test_lower_case_is_counted_together():
    vocabulary = Vocabulary.from_sentences([*TEXT, ["<UNK>", "<Mask>"]], lower=True)
    assert vocabulary.words == [UNKNOWN, "sat", "the", "cat", "dog", "mat", "on", MASK]
    assert vocabulary.encode(["THE", "Cat", "<MASK>"]).ids == [2, 3, 7]
    assert "DOG" in vocabulary
    assert vocabulary.lower


def test_special_entries_in_the_text_are_no_words_of_their_own():
    text = [[UNKNOWN] * 5 + [MASK] * 3 + ["a"]]
    for vocabulary in (Vocabulary.from_sentences(text), Vocabulary.from_subwords(text, 300)):
        assert vocabulary.words.count(UNKNOWN) == vocabulary.words.count(MASK) == 1
        assert vocabulary.words[0] == UNKNOWN
        assert vocabulary.words[-1] == MASK
        ids, word_of = vocabulary.encode([UNKNOWN, MASK])
        assert ids == [vocabulary.unk, vocabulary.mask]
        assert word_of == [0, 1]
    assert Vocabulary.from_sentences(text).words == [UNKNOWN, "a", MASK]


def test_one_pass_over_a_generator_is_enough():
    by_generator = Vocabulary.from_sentences(iter(TEXT))
    assert by_generator.words == Vocabulary.from_sentences(TEXT).words


# Encoding


def test_words_have_one_id_each():
    vocabulary = Vocabulary.from_sentences(TEXT)
    ids, word_of = vocabulary.encode(("the", "bird", "sat"))
    assert ids == [2, 0, 1]
    assert word_of == [0, 1, 2]
    assert vocabulary.decode(ids) == ["the", UNKNOWN, "sat"]
    assert vocabulary.encode([]) == ([], [])
    assert "bird" not in vocabulary
    assert 3 not in vocabulary
    assert vocabulary.id_of("bird") == vocabulary.unk


def test_unknown_words_are_counted():
    vocabulary = Vocabulary.from_sentences(TEXT)
    assert vocabulary.count_unknown(["the", "bird", UNKNOWN, "flew", MASK]) == 3
    assert subwords().count_unknown(["the", "bird", UNKNOWN, "flew", MASK]) == 1


@pytest.mark.parametrize("lower", [False, True])
def test_pieces_know_their_word_and_give_it_back(lower):
    vocabulary = subwords(lower)
    words = ["The", "catmat", UNKNOWN, "naïve", MASK, "猫", "dog"]
    ids, word_of = vocabulary.encode(words)
    assert sorted(set(word_of)) == list(range(7))
    assert word_of == sorted(word_of)
    assert vocabulary.decode(ids) == [word.lower() if lower else word for word in words]
    for position, word in enumerate(words):
        alone = [index for index, at in zip(ids, word_of, strict=True) if at == position]
        assert alone == vocabulary.encode([word]).ids
    assert vocabulary.id_of("Ġsat") == vocabulary.encode(["sat"]).ids[0] != 0
    assert "Ġsat" in vocabulary


def test_every_word_has_a_piece_even_if_it_is_blank():
    assert subwords().encode(["a", "", "\u00a0", "b"]).word_of[-1] == 3
    assert sorted(set(subwords().encode(["", "\u00a0"]).word_of)) == [0, 1]


@given(st.lists(WORD))
def test_pieces_of_any_words_give_them_back(words):
    vocabulary = subwords()
    words = [word for word in words if UNKNOWN not in word and MASK not in word]
    assert vocabulary.decode(vocabulary.encode(words).ids) == words
    assert vocabulary.count_unknown(words) == 0


def test_pieces_that_start_no_word_are_decoded_too():
    vocabulary = subwords()
    a, b = vocabulary.id_of("a"), vocabulary.id_of("b")
    assert vocabulary.decode([a, b, vocabulary.mask, b, a]) == ["ab", MASK, "ba"]


def test_subwords_have_the_size_asked_for_and_are_always_the_same():
    first, second = subwords(), subwords()
    assert len(first) == 270
    assert first.to_json() == second.to_json()
    assert len(Vocabulary.from_subwords([["a"]], 10_000)) == 259  # "Ġa" is the only pair


# Files


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("kind", ["words", "subwords"])
def test_a_saved_vocabulary_comes_back(tmp_path, kind, lower):
    vocabulary = (
        subwords(lower) if kind == "subwords" else Vocabulary.from_sentences(TEXT, lower=lower)
    )
    path = tmp_path / "tokenizer.json"
    vocabulary.save(path)
    for copy in (Vocabulary.load(str(path)), pickle.loads(pickle.dumps(vocabulary))):
        assert copy.words == vocabulary.words
        assert (copy.lower, copy.subwords) == (lower, kind == "subwords")
        assert copy.encode(["The", "zebra"]) == vocabulary.encode(["The", "zebra"])
    assert json.loads(path.read_text(encoding="utf-8"))["model"]["unk_token"] == UNKNOWN


@given(st.lists(WORD | st.sampled_from(ODD_WORDS)), st.lists(WORD), st.booleans())
def test_the_tokenizer_that_is_saved_agrees(known, unknown, lower):
    vocabulary = Vocabulary.from_sentences([[*known, "a"]], lower=lower)
    tokenizer = Tokenizer.from_str(vocabulary.to_json())
    words = [*known, *unknown, *ODD_WORDS, UNKNOWN, MASK]
    encoding = tokenizer.encode(" ".join(words))
    assert vocabulary.encode(words).ids == encoding.ids
    assert vocabulary.decode(encoding.ids) == encoding.tokens
    assert vocabulary.count_unknown(known) == vocabulary.decode(encoding.ids)[: len(known)].count(
        UNKNOWN
    )


@pytest.mark.parametrize("lower", [False, True])
def test_the_tokenizer_of_subwords_that_is_saved_agrees(tmp_path, lower):
    vocabulary = subwords(lower)
    vocabulary.save(tmp_path / "tokenizer.json")
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    words = [*ODD_WORDS, "The", UNKNOWN, "mat", MASK]
    assert vocabulary.encode(words).ids == tokenizer.encode(" ".join(words)).ids


def test_padding_that_another_program_saved_is_not_ours():
    tokenizer = Tokenizer.from_str(subwords().to_json())
    tokenizer.enable_padding(length=50)
    tokenizer.enable_truncation(1)
    ids = subwords().encode(["the", "zebra"]).ids
    assert Vocabulary.from_json(tokenizer.to_str()).encode(["the", "zebra"]).ids == ids


# Bad input


def tokenizer_of(words, splitter=None, normalizer=None) -> str:
    ids = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=words[0]))
    tokenizer.pre_tokenizer = splitter or pre_tokenizers.WhitespaceSplit()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    return tokenizer.to_str()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "tokenizers"),
        ("{}", "tokenizers"),
        ("hello", "tokenizers"),
        (b"\xff", "cannot be read"),
        (tokenizer_of(["[UNK]", "a", MASK]), UNKNOWN),
        (tokenizer_of(["a", UNKNOWN, MASK]), UNKNOWN),
        (tokenizer_of([UNKNOWN, "a"]), MASK),
        (tokenizer_of([UNKNOWN, MASK, "a"]), MASK),
        (tokenizer_of([UNKNOWN, MASK], pre_tokenizers.Whitespace()), "white space"),
        (tokenizer_of([UNKNOWN, MASK], normalizer=normalizers.NFD()), "white space"),
    ],
    ids=[
        *("empty", "object", "text", "bytes", "no unk", "unk second", "no mask", "mask second"),
        *("pre-tokenizer", "normalizer"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path, content, named):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with refused(f"{path}: ", named):
        Vocabulary.load(path)


def test_places_that_cannot_be_read_or_written_are_named(tmp_path):
    with refused("nowhere"):
        Vocabulary.load(tmp_path / "nowhere")
    with refused(str(tmp_path), "directory"):
        Vocabulary.load(tmp_path)
    with refused("nowhere/tokenizer.json", "written"):
        subwords().save(tmp_path / "nowhere" / "tokenizer.json")


@pytest.mark.parametrize("make", [Vocabulary.from_sentences, Vocabulary.from_subwords])
@pytest.mark.parametrize(
    ("sentences", "named"),
    [
        ([], "words"),
        ([[], []], "words"),
        (["the cat"], "sentence"),
        ([Sentence(("a",))], "Sentence"),
        ([["a", 3]], "int"),
        ([["a", "\ud800"]], r"\ud800"),
    ],
    ids=["none", "empty", "text", "Sentence", "number", "surrogate"],
)
def test_sentences_that_are_none_are_refused(make, sentences, named):
    with refused(named):
        make(sentences, size=300)


def test_sizes_ids_and_words_out_of_range_are_refused():
    with refused("size"):
        Vocabulary.from_sentences(TEXT, size=2)
    with refused("min_frequency"):
        Vocabulary.from_sentences(TEXT, min_frequency=0)
    with refused("size"):
        Vocabulary.from_subwords(TEXT, 257)
    vocabulary = Vocabulary.from_sentences(TEXT)
    for index in (-1, 9):
        with refused("ids", str(index)):
            vocabulary.decode([index])
    with refused("words", "'the cat'"):
        vocabulary.encode("the cat")
    with refused(r"\ud800"):
        subwords().encode(["\ud800"])
