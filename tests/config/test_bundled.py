"""Every config that is bundled: it parses, builds the published sizes, and trains two steps."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from probformer.config import FileData
from probformer.config.lookup import read_settings, shipped_configs
from probformer.data.builtin import builtin_cogs, builtin_corpus
from probformer.data.sentence import Sentence
from probformer.runs.run_folder import build_encoder
from probformer.sentinels import ROOT
from probformer.training.progress import Reporter
from probformer.training.start import prepare

PUBLISHED_SIZES = {
    "mlm-ptb-pt": 6_291_456,
    "mlm-bllip-pt": 6_291_456,
    "mlm-enwiki-pt": 6_291_456,
    "tagging-ptb-pt": 3_145_728,
    "tagging-wsj_sample-pt": 3_145_728,
    "tagging-ud_ewt-xpos-pt": 2_359_296,
    "tagging-ud_ewt-upos-pt": 4_194_304,
    "ner-conll2003-pt": 9_437_184,
    "classification-sst2-pt": 10_485_760,
    "classification-sst5-pt": 2_630_656,
    "cogs-cogs-pt": 147_456,
    "mlm-ptb-transformer": 23_809_408,
    "mlm-bllip-transformer": 11_678_720,
    "mlm-enwiki-transformer": 11_678_720,
    "tagging-ptb-transformer": 15_358_464,
    "tagging-wsj_sample-transformer": 15_358_464,
    "tagging-ud_ewt-xpos-transformer": 3_155_456,
    "tagging-ud_ewt-upos-transformer": 14_368_256,
    "ner-conll2003-transformer": 1_709_312,
    "classification-sst2-transformer": 23_214_080,
    "classification-sst5-transformer": 8_460_800,
    "cogs-cogs-transformer": 100_000,
    "cogs-cogs-universal": 50_000,
}
"""Encoder parameters as published, without embeddings and output layers."""

BEST = [name for name in shipped_configs() if name.endswith("-best")]


@pytest.mark.parametrize("name", shipped_configs())
def test_a_config_is_named_after_what_it_does(name):
    settings = read_settings(name, [])
    assert settings.name == name
    assert name.startswith(f"{settings.task.kind}-")
    rest = name.removeprefix(f"{settings.task.kind}-")
    model = rest.rpartition("-")[2]
    kinds = {"pt": "pt", "best": "pt", "transformer": "transformer", "universal": "transformer"}
    assert settings.encoder.kind == kinds[model]
    assert getattr(settings.encoder, "universal", False) == (model == "universal")
    if isinstance(settings.data, FileData) and settings.data.folder != ".":
        assert rest.startswith(settings.data.folder.removesuffix("_lm"))


def test_every_published_row_has_a_config():
    corpora = [name for name in shipped_configs() if read_settings(name, []).data.kind == "files"]
    own_data = {
        "mlm-text-pt",
        "tagging-conllu-pt",
        "tagging-columns-pt",
        "classification-tsv-pt",
        "parsing-conllu-pt",
    }
    assert set(corpora) == set(PUBLISHED_SIZES) | own_data | set(BEST)


@pytest.mark.parametrize("name", [n for n in BEST if n.replace("-best", "-pt") in PUBLISHED_SIZES])
def test_a_better_model_is_no_larger_than_the_published_one(name):
    with torch.device("meta"):
        encoder = build_encoder(read_settings(name, []).encoder, vocabulary=10)
    assert encoder.count_parameters() <= PUBLISHED_SIZES[name.replace("-best", "-pt")]


@pytest.mark.parametrize(("name", "size"), PUBLISHED_SIZES.items())
def test_encoders_have_the_published_size(name, size):
    with torch.device("meta"):
        encoder = build_encoder(read_settings(name, []).encoder, vocabulary=10)
    assert encoder.count_parameters() == size


@pytest.mark.parametrize("name", shipped_configs())
def test_a_config_trains_on_data_of_its_format(name, tmp_path):
    settings = read_settings(name, ["training.batch=4", "training.chunk=none"])
    if isinstance(settings.data, FileData):
        write_corpus(settings.data, settings.task, tmp_path / settings.data.folder)
    else:
        settings = read_settings(name, ["training.batch=4", "data.size=40"])
    run = prepare(settings, tmp_path / "run", tmp_path, Reporter(), Accelerator(cpu=True))
    assert set(run.splits) >= {"train", "dev", "test"}
    assert ("gen" in run.splits) == (settings.task.kind == "cogs")
    before = [p.detach().clone() for p in run.model.parameters()]
    for step in range(2):
        run._update(np.arange(4 * step, 4 * step + 4))
        run.progress.step += 1
    changed = [not torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True)]
    assert sum(changed) > len(changed) / 2


def write_corpus(data: FileData, task, folder: Path) -> None:
    """Sentences of the built-in grammar, in the format and under the names that a config has."""
    corpus = builtin_cogs(60) if task.kind == "cogs" else builtin_corpus(150)
    for split in ("train", "dev", "test", "gen", "vocabulary"):
        given = getattr(data, split)
        if given is None:
            continue
        sentences = list(corpus[split if split in corpus else "train"])
        for path in (folder / concrete(pattern) for pattern in given.split()):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written(data, sentences), encoding="utf-8")


def concrete(pattern: str) -> str:
    """A file name that matches a pattern."""
    return re.sub(r"\[(.)[^]]*\]", r"\1", pattern).replace("*", "a")


def written(data: FileData, sentences: list[Sentence]) -> str:
    if data.format == "text":
        return "".join(f"{' '.join(s.words)}\n" for s in sentences)
    if data.format == "conllu":
        return "".join(map(as_conllu, sentences))
    if data.format == "mrg":
        return "".join(f"{as_tree(s)}\n" for s in sentences)
    if data.format == "tsv":
        separator = " " if data.columns == "label text" else "\t"
        return "".join(f"{separator.join(fields_of(s, data))}\n" for s in sentences)
    blocks = []
    for number, sentence in enumerate(sentences):
        rows = zip(*(column_of(sentence, name) for name in data.columns.split()), strict=True)
        document = f"# doc = {number}\n" if data.by_document else ""
        blocks.append(document + "".join(f"{' '.join(row)}\n" for row in rows))
    return "\n".join(blocks)


def fields_of(sentence: Sentence, data: FileData) -> list[str]:
    known = {"text": " ".join(sentence.words), "label": sentence.label or "in_distribution"}
    known["logical_form"] = sentence.logical_form or ""
    return [known[name] for name in data.columns.split()]


def column_of(sentence: Sentence, name: str) -> tuple[str, ...]:
    if name == "_":
        return ("-",) * len(sentence)
    return sentence.words if name == "word" else sentence.columns.get(name, sentence.words)


def as_tree(sentence: Sentence) -> str:
    leaves = zip(sentence.words, sentence.columns["xpos"], strict=True)
    return f"( (S {' '.join(f'({tag} {word})' for word, tag in leaves)} (-NONE- *T*)) )"


def as_conllu(sentence: Sentence) -> str:
    assert sentence.heads is not None
    rows = []
    for i, word in enumerate(sentence.words):
        head = 0 if sentence.heads[i] == ROOT else sentence.heads[i] + 1
        upos, xpos = sentence.columns["upos"][i], sentence.columns["xpos"][i]
        rows.append(f"{i + 1}\t{word}\t_\t{upos}\t{xpos}\t_\t{head}\t_\t_\t_\n")
    return "".join([*rows, "\n"])
