"""`probformer describe` as a person uses it: tables, JSON, a page, and what it refuses."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.commands import probformer
from helpers.messages import check_wording, refused
from helpers.runs import PT, TRANSFORMER, settings
from probformer.analysis.describe import command
from probformer.analysis.describe.command import describe_run
from probformer.analysis.describe.page import _escaped
from probformer.config import FileData, from_dict
from probformer.data.builtin import builtin_corpus
from probformer.runs.run_folder import load_run
from probformer.training.commands import train_one

CONLLU = "1\tthe\t_\tDET\t_\t_\t2\t_\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t0\t_\t_\t_\n\n"
HERE = Path(".")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of both kinds, and files to describe them by."""
    path = tmp_path_factory.mktemp("describe")
    train_one(settings("tagging", PT, epochs=1), path / "pt")
    train_one(settings("mlm", TRANSFORMER, epochs=1), path / "transformer")
    (path / "two.conllu").write_text(CONLLU * 2)
    (path / "words.txt").write_text("the dog [/b] <unk> | ran\n")
    (path / "empty.txt").write_text("\n\n")
    (path / "riddle.dat").write_text("the dog\n")
    return path


def as_json(capsys, *arguments, **options):
    describe_run(*arguments, as_json=True, **options)
    return json.loads(capsys.readouterr().out)


def test_tables_on_the_terminal(folder):
    done = probformer("describe", "pt", cwd=folder)
    title, *rest = done.stdout.splitlines()
    words = [word for sentence in builtin_corpus(64)["dev"] for word in sentence.words]
    unknown = sum(word not in load_run(folder / "pt").vocabulary for word in words)
    size = f"{len(words)} words ({unknown} unknown)"
    assert title == f"pt: dev, 8 sentences, {size}, iteration 2 of 2"
    for name in ("Labels", "Labels and tags", "Channels", "What channels link"):
        assert name in [line.strip() for line in rest]
    assert "xpos when strongest" in done.stdout
    assert "uniform" in done.stdout


def test_a_transformer_says_that_it_has_no_labels(folder, capsys):
    describe_run(folder / "transformer", None, HERE)
    out = capsys.readouterr().out
    assert "layer 1 of 1" in out
    assert "A transformer has no latent labels" in out
    assert "strongest" not in out
    assert "itself" in out
    found = as_json(capsys, folder / "transformer", None, HERE)
    assert (found["layer"], found["layers"]) == (1, 1)
    assert not {"step", "iteration", "iterations"} & found.keys()


def test_json_has_everything(folder, capsys):
    found = as_json(capsys, folder / "pt", None, HERE, "train", "upos", iteration=1)
    assert (found["sentences"], found["iteration"], found["column"]) == (64, 1, "upos")
    assert len(found["labels"]) == 16
    assert sum(label["strongest"] for label in found["labels"]) == pytest.approx(1, abs=1e-4)
    assert sum(label["probability"] for label in found["labels"]) == pytest.approx(1, abs=1e-4)
    for channel in found["channels"]:
        spread = channel["spread"]
        assert spread["left"] + spread["right"] == pytest.approx(1, abs=1e-4)
        assert sum(spread["offsets"].values()) == pytest.approx(1, abs=1e-4)
        left = sum(share for at, share in spread["offsets"].items() if int(at) < 0)
        assert spread["left"] == pytest.approx(left, abs=1e-4)


def test_a_file_instead_of_a_split(folder, capsys):
    found = as_json(capsys, folder / "pt", folder / "two.conllu", HERE)
    assert (found["sentences"], found["words"], found["column"]) == (2, 4, "upos")
    assert found["tags"] == ["DET", "NOUN"]
    found = as_json(capsys, folder / "pt", folder / "words.txt", HERE)
    assert (found["words"], found["column"]) == (6, None)
    assert found["unknown"] == 3  # of: the dog [/b] <unk> | ran


def test_a_file_like_those_of_the_run(tmp_path, capsys):
    """Where .txt is no text but columns, as the config says."""
    for name in ("train", "dev", "new"):
        (tmp_path / f"{name}.txt").write_text("a X\nb Y\n\nb Y\na X\n")
    (tmp_path / "tiny.toml").write_text(
        '[task]\nkind = "tagging"\ncolumn = "tag"\n'
        '[data]\nkind = "files"\nformat = "columns"\ncolumns = "word tag"\n'
        'train = "train.txt"\ndev = "dev.txt"\ntest = "dev.txt"\n'
        '[encoder]\nkind = "pt"\nlabels = 4\nchannels = 1\n[training]\nepochs = 1\n'
    )
    probformer("train", "tiny.toml", "--out", "run", cwd=tmp_path)
    for text in (None, tmp_path / "new.txt"):
        found = as_json(capsys, tmp_path / "run", text, tmp_path)
        assert (found["sentences"], found["words"], found["column"]) == (2, 4, "tag")


def test_a_page_with_plots(folder, tmp_path, capsys):
    for name in ("one", "two"):
        describe_run(folder / "pt", None, HERE, out=tmp_path / "new" / name)
    files = {path.name: path.read_bytes() for path in (tmp_path / "new/one").iterdir()}
    assert files == {p.name: p.read_bytes() for p in (tmp_path / "new/two").iterdir()}
    assert set(files) == {"description.md", "labels.svg", "tags.svg", "distances.svg"}
    page = files["description.md"].decode()
    assert re.findall(r"\]\((.*?)\)", page) == ["labels.svg", "tags.svg", "distances.svg"]
    assert all(b"<path" in files[name] for name in files if name.endswith(".svg"))
    lines = [line for line in page.splitlines() if line.startswith("|")]
    widths = {line.count(" | ") for line in lines}
    assert widths == {3, 5, 6}  # of links, labels and information, channels
    assert f"the page is in {tmp_path / 'new/two/description.md'}" in capsys.readouterr().out


def test_a_page_without_tags_or_labels(folder, tmp_path):
    text = folder / "words.txt"
    describe_run(folder / "pt", text, HERE, out=tmp_path / "pt")
    page = (tmp_path / "pt/description.md").read_text(encoding="utf-8")
    assert r"\<unk\>" in page
    assert r"\| " in page
    assert not (tmp_path / "pt/tags.svg").exists()
    describe_run(folder / "transformer", text, HERE, out=tmp_path / "transformer")
    page = (tmp_path / "transformer/description.md").read_text(encoding="utf-8")
    assert "A transformer has no latent labels" in page
    assert not (tmp_path / "transformer/labels.svg").exists()


def test_a_lone_word_links_nothing_and_the_page_says_so(folder, tmp_path, capsys):
    (tmp_path / "one.txt").write_text("dog\n")
    describe_run(folder / "pt", tmp_path / "one.txt", HERE, out=tmp_path / "page")
    expected = "What channels link\nNo channel links anything more often than chance would.\n"
    assert expected in capsys.readouterr().out
    page = (tmp_path / "page/description.md").read_text(encoding="utf-8")
    assert page.endswith(expected.replace("\n", "\n\n", 1))


def test_a_page_replaces_only_a_page(folder, tmp_path, monkeypatch):
    text = folder / "words.txt"
    for _ in range(2):
        describe_run(folder / "pt", text, HERE, out=tmp_path / "page")
    monkeypatch.setattr(command, "describe", lambda *_: pytest.fail("described"))
    for name in ("labels.svg", "description.md"):
        (tmp_path / name).write_text("mine")
        with refused(name):
            describe_run(folder / "pt", text, HERE, out=tmp_path)
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    with refused("words.txt"):
        describe_run(folder / "pt", text, HERE, out=text)


def test_sentences_that_are_left_out_are_counted(tmp_path, capsys):
    """As the settings of the run have it, for its splits and for a file like them."""
    for name in ("train", "new"):
        (tmp_path / f"{name}.tsv").write_text("a\tX\nb\tY\n\n" * 20 + "b\n\n")
    data = {"kind": "files", "format": "columns", "skip_bad_lines": True}
    data = from_dict(FileData, data | dict.fromkeys(("train", "dev", "test"), "train.tsv"))
    given = replace(settings("mlm", PT, epochs=1), data=data)
    train_one(given, tmp_path / "run", tmp_path)
    capsys.readouterr()
    for file in (None, tmp_path / "new.tsv"):
        describe_run(tmp_path / "run", file, tmp_path)
        assert "left out 1 sentence with bad lines: line 61" in capsys.readouterr().err


def test_words_are_no_markdown():
    assert _escaped("a|b *c* <d>") == r"a\|b \*c\* \<d\>"


def test_a_page_needs_matplotlib(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refused("probformer[plot]"):
        describe_run(folder / "pt", None, HERE, out=tmp_path / "page")
    assert not (tmp_path / "page").exists()
    describe_run(folder / "pt", None, HERE)


def test_wrong_input_is_one_sentence_and_status_2(folder):
    done = probformer("describe", "nowhere", cwd=folder, check=2)
    check_wording(done.stderr, "nowhere", "config.json")
    done = probformer("describe", "pt", "empty.txt", cwd=folder, check=2)
    check_wording(done.stderr, "empty.txt")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"split": "dev", "file": "two.conllu"}, "--split"),
        ({"split": "gen"}, "gen"),
        ({"file": "none.txt"}, "none.txt"),
        ({"file": "riddle.dat"}, "riddle.dat"),
        ({"column": "lemma"}, "column"),
        ({"iteration": 0}, "iteration 0"),
    ],
)
def test_what_is_refused(folder, options, named):
    if "file" in options:
        options = {**options, "file": folder / options["file"]}
    with refused(named):
        describe_run(folder / "pt", **{"file": None, "data": HERE, **options})


def test_the_page_is_written_before_anything_is_printed(folder, tmp_path, monkeypatch):
    """Who reads what is printed may have had enough of it."""

    def closed(*_):
        raise BrokenPipeError

    monkeypatch.setattr(command, "_print_tables", closed)
    with pytest.raises(BrokenPipeError):
        describe_run(folder / "pt", folder / "two.conllu", HERE, out=tmp_path / "page")
    assert "two.conllu" in next((tmp_path / "page").glob("*.md")).read_text()
