"""The card of a run says what Hugging Face and those who share weights need to know."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from helpers.places import ROOT
from helpers.runs import PT, TRANSFORMER, ready, saved, settings
from probformer.config import FileData
from probformer.config.lookup import read_settings, shipped_configs
from probformer.data.registry import list_corpora
from probformer.runs.model_card import known_corpus, model_card
from probformer.runs.run_folder import write_description, write_model_card

RESULTS = ROOT / "docs/results.md"
PAGE = ROOT / "docs/model-card.md"


def front_matter(card):
    _, front, _ = card.split("---\n", 2)
    return yaml.safe_load(front)


@pytest.mark.parametrize(
    ("task", "encoder", "pipeline"),
    [
        ("mlm", PT, "fill-mask"),
        ("tagging", TRANSFORMER, "token-classification"),
        ("classification", PT, "text-classification"),
        ("cogs", PT, None),
    ],
)
def test_what_hugging_face_reads(tmp_path, task, encoder, pipeline):
    card = (saved(tmp_path, task, encoder) / "README.md").read_text("utf-8")
    facts = front_matter(card)
    kind = "probabilistic-transformer" if encoder is PT else "transformer"
    assert facts.pop("tags") == [kind, task]
    assert facts.pop("pipeline_tag", None) == pipeline
    assert facts == {"library_name": "probformer", "license": "mit"}
    assert "- Licence of the data: MIT\n" in card


def test_hugging_face_reads_it(tmp_path):
    hub = pytest.importorskip("huggingface_hub", reason="needs the package huggingface_hub")
    card = hub.ModelCard.load(saved(tmp_path, "mlm") / "README.md")
    assert (card.data.library_name, card.data.license) == ("probformer", "mit")
    assert card.text.lstrip().startswith("# A probabilistic transformer trained on mlm")


@pytest.fixture
def run(tmp_path):
    return ready(settings(size=8), tmp_path).run


@pytest.mark.parametrize(
    ("folder", "licence"),
    [
        ("ud_ewt", "CC BY-SA 4.0"),
        ("my/corpora/cogs", "MIT"),
        ("ptb", "LDC User Agreement, not free"),
        ("mine", "not known to Probformer"),
        (".", "not known to Probformer"),
    ],
)
def test_the_licence_of_the_data_is_stated_and_that_of_the_weights_left_open(run, folder, licence):
    data = FileData("train.txt", "dev.txt", "test.txt", folder=folder)
    card = model_card(replace(run, settings=replace(run.settings, data=data)), None, {})
    assert f"- Licence of the data: {licence}\n" in card
    assert front_matter(card)["license"] == "unknown"
    assert "Before you share the weights, write their licence above" in card


def test_every_config_for_files_of_others_names_a_known_corpus():
    for name in shipped_configs():
        data = read_settings(name, []).data
        if isinstance(data, FileData) and data.folder != ".":
            corpus = known_corpus(data.folder)
            assert corpus, name
            files = {file.name for file in corpus.files}
            made = {data.train, data.dev, data.test} - files if files else set()
            for file in made:  # from those that are known
                assert f'"{file}"' in RESULTS.read_text("utf-8"), f"how is {file} of {name} made?"


def test_an_encoder_that_began_with_other_data_leaves_the_licence_open(run, tmp_path):
    write_description(tmp_path / "run", run, Path("runs/first"))
    figures = {"test": {"perplexity": 12.3456789, "loss": 2.5, "score": 1.0}}
    write_model_card(tmp_path / "run", run, figures)
    card = (tmp_path / "run/README.md").read_text("utf-8")
    assert "Began with the encoder of 'runs/first'" in card
    assert "- test: perplexity 12.3457, loss 2.5\n" in card
    assert front_matter(card)["license"] == "unknown"


def test_the_page_has_the_licence_of_every_known_corpus():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", PAGE.read_text("utf-8"), re.M)
    assert rows == [(corpus.name, corpus.title, corpus.licence) for corpus in list_corpora()]
