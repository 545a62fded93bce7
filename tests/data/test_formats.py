"""A format is one class: its name, its settings, its lines, its gold annotation."""

import runpy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from helpers.messages import refused
from helpers.places import ROOT
from helpers.runs import ready, settings
from probformer.config import FileData
from probformer.data.corpus import load_corpus, load_split
from probformer.data.formats import Format, find_format, format_names, register_format
from probformer.data.formats import format as registry
from probformer.data.readers import SentenceFile

SLASHES = '''
from dataclasses import dataclass

from probformer.data.formats import BadLine, Format, register_format
from probformer.data.sentence import Sentence


@register_format
@dataclass(frozen=True)
class Slashes(Format):
    """A sentence a line: "the/DT cat/NN"."""

    name = "slashes"
    written = "a line of `word/tag`"
    gold = "`xpos`"
    suffix = ".slashes"

    def parse(self, lines):
        for number, text in lines:
            pairs = [token.rpartition("/") for token in text.split()]
            if not all(word and tag for word, _, tag in pairs):
                raise BadLine(number, "a word has no tag, expected word/tag")
            if pairs:
                words, _, tags = zip(*pairs)
                yield Sentence(words, {"xpos": tags}, line=number)
'''
DATA = FileData("train", "train", "train", format="slashes")


@pytest.fixture
def slashes(tmp_path, monkeypatch) -> Path:
    """A folder with a file in a format that a file outside of the library registers."""
    monkeypatch.setattr(registry, "_FORMATS", dict(registry._FORMATS))
    (tmp_path / "slashes.py").write_text(SLASHES, encoding="utf-8")
    runpy.run_path(str(tmp_path / "slashes.py"))
    lines = ["the/DT cat/NN sleeps/VBZ", "a/DT dog/NN", "", "and/CC \u00bd/CD/NN"] * 8
    (tmp_path / "train").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_a_format_from_outside_is_read_and_trained_with(slashes):
    first, second, third, *_ = load_split(DATA, slashes, "train")
    assert (first.words, first.columns["xpos"]) == (("the", "cat", "sleeps"), ("DT", "NN", "VBZ"))
    assert [s.place(0) for s in (first, second, third)] == [
        f"{slashes / 'train'}:{line}" for line in (1, 2, 4)
    ]
    given = replace(settings("tagging"), data=replace(DATA, folder=str(slashes)))
    training = ready(given, slashes / "run")
    before = [p.detach().clone() for p in training.run.model.parameters()]
    for step in range(2):
        training._update(np.arange(4 * step, 4 * step + 4))
        training.progress.step += 1
    changed = [
        not p.equal(old) for p, old in zip(training.run.model.parameters(), before, strict=True)
    ]
    assert sum(changed) > len(changed) / 2


def test_its_bad_lines_are_named_or_skipped(slashes):
    with (slashes / "train").open("a") as file:
        file.write("\nno tag/NN\n")
    with refused("train:33: "):
        list(load_split(DATA, slashes, "train"))
    lenient = load_corpus(replace(DATA, skip_bad_lines=True), slashes).splits["train"]
    assert len(list(lenient)) == 24


def test_it_is_found_by_its_suffix(slashes):
    assert registry.formats_by_suffix()[".slashes"] == "slashes"


def test_names_are_taken_once(slashes):
    @dataclass(frozen=True)
    class Other(Format):
        name = "slashes"

    assert register_format(find_format("slashes")) is find_format("slashes")
    with refused("'slashes'"):
        register_format(Other)
    with refused("name"):
        register_format(type("Nameless", (Format,), {}))


def test_an_unknown_format_is_refused_when_data_is_read(tmp_path):
    (tmp_path / "train").write_text("a\n")
    with refused("data.format", *format_names()):
        load_corpus(DATA, tmp_path)
    with refused("data.format", *format_names()):
        load_split(DATA, tmp_path, "dev")


@pytest.mark.parametrize("name", ["text", "columns"])
def test_a_setting_that_a_format_does_not_take_is_refused(tmp_path, name):
    (tmp_path / "train").write_text("a b\n")
    data = replace(DATA, format=name, prepare="bllip")
    with refused("prepare", name):
        load_corpus(data, tmp_path)


def test_how_trees_are_prepared_has_known_names():
    with refused("prepare", "bllip"):
        SentenceFile("trees", "mrg", prepare="brown")


def test_the_readme_has_the_formats_that_are_registered():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [
        f"| `{name}` | {format.written} | {format.gold} |".replace("|  |", "| |")
        for name, format in ((name, find_format(name)) for name in format_names())
    ]
    assert "|---|---|---|\n" + "\n".join(rows) + "\n\n" in readme
