"""`probformer describe` as a person uses it: tables, JSON, a page, and what it refuses."""

import json
import re
import sys
from pathlib import Path

import pytest

from probformer.analysis.description_page import _escaped, describe_run
from probformer.data.builtin import builtin_corpus
from probformer.errors import InputError
from probformer.training.commands import train_one
from runs import PT, TRANSFORMER, settings
from test_cli import probformer

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
    words = sum(map(len, builtin_corpus(64)["dev"]))
    assert title == f"pt: dev, 8 sentences, {words} words, iteration 2 of 2"
    for name in ("Labels", "Labels and tags", "Channels", "What channels link"):
        assert name in [line.strip() for line in rest]
    assert "xpos when strongest" in done.stdout
    assert "uniform" in done.stdout


def test_a_transformer_says_that_it_has_no_labels(folder, capsys):
    describe_run(folder / "transformer", HERE, "dev")
    out = capsys.readouterr().out
    assert "layer 1 of 1" in out
    assert "A transformer has no latent labels" in out
    assert "strongest" not in out
    assert "itself" in out


def test_json_has_everything(folder, capsys):
    found = as_json(capsys, folder / "pt", HERE, "train", column="upos", iteration=1)
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
    found = as_json(capsys, folder / "pt", HERE, "dev", folder / "two.conllu")
    assert (found["sentences"], found["words"], found["column"]) == (2, 4, "upos")
    assert found["tags"] == ["DET", "NOUN"]
    found = as_json(capsys, folder / "pt", HERE, "dev", folder / "words.txt")
    assert (found["words"], found["column"]) == (6, None)


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
        found = as_json(capsys, tmp_path / "run", tmp_path, "dev", text)
        assert (found["sentences"], found["words"], found["column"]) == (2, 4, "tag")


def test_a_page_with_plots(folder, tmp_path, capsys):
    for name in ("one", "two"):
        describe_run(folder / "pt", HERE, "dev", out=tmp_path / "new" / name)
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
    describe_run(folder / "pt", HERE, "dev", text, out=tmp_path / "pt")
    page = (tmp_path / "pt/description.md").read_text(encoding="utf-8")
    assert r"\<unk\>" in page
    assert r"\| " in page
    assert not (tmp_path / "pt/tags.svg").exists()
    describe_run(folder / "transformer", HERE, "dev", text, out=tmp_path / "transformer")
    page = (tmp_path / "transformer/description.md").read_text(encoding="utf-8")
    assert "A transformer has no latent labels" in page
    assert not (tmp_path / "transformer/labels.svg").exists()


def test_words_are_no_markdown():
    assert _escaped("a|b *c* <d>") == r"a\|b \*c\* \<d\>"


def test_a_page_needs_matplotlib(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'probformer\[plot\]'"):
        describe_run(folder / "pt", HERE, "dev", out=tmp_path / "page")
    assert not (tmp_path / "page").exists()
    describe_run(folder / "pt", HERE, "dev")


def test_wrong_input_is_one_sentence_and_status_2(folder):
    done = probformer("describe", "nowhere", cwd=folder, check=2)
    assert done.stderr == "error: nowhere: is no run folder: config.json is missing\n"
    done = probformer("describe", "pt", "--file", "empty.txt", cwd=folder, check=2)
    assert done.stderr == "error: empty.txt: the file has no sentence, expected at least one\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "gen"}, "split must be one of train, dev, test, got 'gen'"),
        ({"file": "none.txt"}, "there is no such file"),
        ({"file": "riddle.dat"}, "says nothing about the format, expected one that ends in .conll"),
        ({"column": "deprel"}, "with tags (upos, xpos, entity), got 'deprel'"),
        ({"iteration": 0}, "there is no iteration 0: the model has 2 iterations, 1 to 2"),
    ],
)
def test_what_is_refused(folder, options, message):
    if "file" in options:
        options = {**options, "file": folder / options["file"]}
    with pytest.raises(InputError, match=re.escape(message)):
        describe_run(folder / "pt", HERE, **{"split": "dev", **options})
