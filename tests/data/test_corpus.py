"""Which sentences of which files make a split."""

import pytest

from helpers.messages import refused
from probformer.config import FileData, VocabularySettings
from probformer.data.corpus import build_vocabulary, load_corpus, load_split


def read(folder, **settings):
    corpus = load_corpus(FileData(**settings), folder)
    return {name: ["".join(s.words) for s in split] for name, split in corpus.splits.items()}


def test_a_split_needs_no_other(tmp_path):
    (tmp_path / "test.txt").write_text("a\n")
    data = FileData(train="train.txt", dev="dev.txt", test="test.txt")
    assert [s.words for s in load_split(data, tmp_path, "test")] == [("a",)]
    with refused("dev.txt", "--data"):
        load_split(data, tmp_path, "dev")
    with refused("split", "train, dev, test", "gen"):
        load_split(data, tmp_path, "gen")


def test_patterns_name_several_files_in_order(tmp_path):
    for name in ("a/1", "a/2", "b/1", "dev"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{name[0]}\n{name[-1]}\n")
    splits = read(tmp_path, train="b/* a/[12]", dev="dev", test="dev")
    assert splits["train"] == ["b", "1", "a", "1", "a", "2"]
    with refused("c/*", "--data"):
        read(tmp_path, train="a/* c/*", dev="dev", test="dev")
    with refused("/nowhere/*.x"):
        read(tmp_path, train="/nowhere/*.x", dev="dev", test="dev")


def test_a_file_may_be_compressed_or_have_a_space_in_its_name(tmp_path):
    (tmp_path / "my train").write_text("x\n")
    (tmp_path / "dev.gz").write_text("y\n")  # contents tell what is compressed
    splits = read(tmp_path, train="my train", dev="dev", test="dev")
    assert (splits["train"], splits["dev"]) == (["x"], ["y"])


def test_only_the_first_of_training_and_words_counted_elsewhere(tmp_path):
    (tmp_path / "all").write_text("a\nb\nc\n")
    settings = FileData(train="all", dev="all", test="all", first=2, vocabulary="all")
    corpus = load_corpus(settings, tmp_path)
    assert {name: len(list(split)) for name, split in corpus.splits.items()} == {
        "train": 2,
        "dev": 3,
        "test": 3,
    }
    assert "c" in build_vocabulary(VocabularySettings(), corpus.counted)


def test_documents_are_shared_out_by_tens(tmp_path):
    lines = [f"# doc = {d}\nw{d}\tX\n\nv{d}\tX\n\n" for d in range(25)]
    (tmp_path / "all").write_text("".join(lines))
    splits = read(tmp_path, train="all", dev="all", test="all", format="columns", by_document=True)
    documents = {name: {word[1:] for word in words} for name, words in splits.items()}
    assert documents["dev"] == {"8", "18"}
    assert documents["test"] == {"9", "19"}
    assert documents["train"] == {str(d) for d in range(25)} - {"8", "18", "9", "19"}
    assert len(splits["dev"]) == 4


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"dev": " "}, "dev"),
        ({"by_document": True, "gen": "a"}, "gen"),
        ({"by_document": True, "test": "b"}, "by_document"),
    ],
    ids=["empty", "gen", "several files"],
)
def test_settings_that_make_no_sense_are_refused(settings, named):
    with refused(named):
        FileData(**{"train": "a", "dev": "a", "test": "a", **settings})


def test_a_pipe_or_a_folder_is_refused(tmp_path):
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "folder").mkdir()
    with refused("folder"):
        read(tmp_path, train="folder", dev="a", test="a")
