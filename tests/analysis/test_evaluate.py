"""`probformer evaluate`: metrics as in training, a parser's tables, JSON, a picture, bad input."""

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from helpers.commands import probformer
from helpers.messages import check_wording, refused
from helpers.runs import PT, saved
from probformer.analysis.evaluate import evaluate_run
from probformer.config.lookup import read_settings
from probformer.data.readers import SentenceFile
from probformer.runs.run_folder import load_run
from probformer.training.commands import train_one
from probformer.training.evaluation import total_counts

CONFIG = """
[task]
kind = "parsing"
tags = ["upos", "xpos"]

[data]
kind = "files"
format = "conllu"
train = "train.conllu"
dev = "dev.conllu"
test = "test.conllu"

[encoder]
kind = "pt"
labels = 8
channels = 1
[encoder.potential]
kind = "uv"
rank = 4
gamma = 1
[encoder.inference]
iterations = 1
heads = "tree"

[training]
epochs = 8
batch = 4
learning_rate = 3e-2
"""
DOGS = [
    ("the", "DET", "DT", 2, "det"),
    ("dogs", "NOUN", "NNS", 3, "nsubj"),
    ("bark", "VERB", "VBP", 0, "root"),
    (".", "PUNCT", ".", 3, "punct"),
]
WEIRD = [("loudly", "ADV", "RB", 2, "adv[mod]"), ("bark", "VERB", "VBP", 0, "root")]


def text(*sentences, id="s"):
    lines = []
    for number, sentence in enumerate(sentences, 1):
        lines.append(f"# sent_id = {id}-{number}")
        for i, (word, upos, xpos, head, label) in enumerate(sentence, 1):
            lines.append(f"{i}\t{word}\t_\t{upos}\t{xpos}\t_\t{head}\t{label}\t_\t_")
        lines.append("")
    return "\n".join(lines) + "\n"


def with_heads(*heads):
    return [(*word[:3], head, word[4]) for word, head in zip(DOGS, heads, strict=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data, a parser trained on it, and what training has printed of test."""
    path = tmp_path_factory.mktemp("evaluate")
    for split in ("train", "dev"):
        (path / f"{split}.conllu").write_text(text(*[DOGS] * 20))
    (path / "test.conllu").write_text(text(DOGS, WEIRD, with_heads("_", 3, 0, "_")))
    (path / "config.toml").write_text(CONFIG)
    done = probformer("train", "config.toml", "--out", "run", cwd=path)
    (path / "trained").write_text(done.stdout)
    return path


def test_metrics_then_tables(folder):
    done = probformer("evaluate", "run", cwd=folder)
    size, *lines = done.stdout.splitlines()
    assert size.startswith("test: 3 sentences, 10 tokens")
    metrics = dict(line.split(" ") for line in lines[: lines.index("")])
    trained = re.findall(r"^test: (\w+ \d.*)$", (folder / "trained").read_text(), re.MULTILINE)
    by_training = dict(pair.split() for pair in trained[-1].split(", "))
    assert {name: float(x) for name, x in metrics.items()} == {
        name: pytest.approx(float(x), abs=1e-4) for name, x in by_training.items()
    }
    tables = "\n".join(lines)
    for heading in ("by label", "by distance", "by length", "confusions of labels", "of upos"):
        assert heading in tables
    assert re.search(r"│ adv\[mod\] │ +1 │ +0 │ +– │ +0\.0 │ +0\.0 │", tables)
    warnings = done.stderr.splitlines()
    assert any("labels of arcs" in line and "'adv[mod]' (1)" in line for line in warnings)
    assert any("column upos" in line and "'ADV' (1)" in line for line in warnings)


def test_json_has_everything_as_fractions(folder, capsys):
    evaluate_run(folder / "run", None, folder, as_json=True)
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert [*found] == [
        "metrics",
        "by_label",
        "by_distance",
        "by_length",
        "confusions_of_labels",
        "confusions_of_upos",
        "confusions_of_xpos",
        "calibration",
    ]
    metrics = found["metrics"]
    assert "score" not in metrics
    words = 4 + 2 + 2
    for table, metric in (("by_label", "las"), ("by_distance", "uas")):
        assert sum(row["gold"] for row in found[table]) == words
        right = sum(row["gold"] * (row["recall"] or 0) for row in found[table])
        assert right / words == pytest.approx(metrics[metric])
    (row,) = found["by_length"]
    counts = {"length": "1–10", "sentences": 3, "words": words}
    assert row == {**counts, "uas": metrics["uas"], "las": metrics["las"]}
    bins = found["calibration"]
    assert sum(row["count"] for row in bins) == words
    gaps = sum(x["count"] * abs(x["confidence"] - x["right"]) for x in bins if x["count"])
    assert gaps / words == pytest.approx(metrics["ece"])
    (confused,) = (row for row in found["confusions_of_labels"] if row["gold"] == "adv[mod]")
    assert confused["count"] == 1
    assert "test: 3 sentences" in printed.err


def test_a_picture_and_a_file_of_ones_own(folder, tmp_path, capsys):
    own = tmp_path / "own.conllu"
    own.write_text(text(*[DOGS] * 3))
    plot = tmp_path / "new" / "plot.svg"
    done = probformer("evaluate", "run", own, "--plot", plot, "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert sum(row["count"] for row in found["calibration"]) == 12
    assert str(plot) in done.stderr
    picture = plot.read_text()
    assert "run, own.conllu" in "".join(ET.fromstring(picture).itertext())
    assert f"{found['metrics']['ece']:.4f}" in picture
    assert picture.count("<circle") == sum(row["count"] > 0 for row in found["calibration"])
    page = tmp_path / "plot.html"
    evaluate_run(folder / "run", own, folder, plot=page)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{own}: 3 sentences")
    assert lines[-1].endswith(str(page))
    assert picture in page.read_text()


def test_the_batches_of_two_processes_add_up(folder):
    """Each process counts every second batch."""
    run = load_run(folder / "run")
    sentences = [*SentenceFile(folder / "test.conllu", "conllu")] * 600
    split = run.task.encode(sentences)

    def counts(index, processes):
        shared = SimpleNamespace(
            device=torch.device("cpu"), process_index=index, num_processes=processes
        )
        return total_counts(run.model, run.task, run.task.count_details, split, shared)

    parts = [counts(index, 2) for index in range(2)]
    assert all(part["uas_words"] > 0 for part in parts)
    total = Counter()
    for part in parts:
        total.update(part)
    whole = counts(0, 1)
    assert {**total} == pytest.approx(whole)
    assert run.task.details(total) == run.task.details(whole)


BAD = {
    "cycle": (with_heads(2, 1, 0, 3), ":8 ", "word 1, 'the',"),
    "two roots": (with_heads(2, 0, 0, 3), ":10 ", "word 3, 'bark',"),
    "head out of range": (with_heads(2, 3, 0, 5), ":11 ", "word 4, '.',", "'5'"),
    "itself": (with_heads(2, 2, 0, 3), ":9 ", "word 2, 'dogs',"),
}


@pytest.mark.parametrize("bad", BAD)
def test_gold_heads_that_are_no_tree_are_one_sentence(folder, tmp_path, bad):
    heads, *named = BAD[bad]
    (tmp_path / "bad.conllu").write_text(text(DOGS, heads))
    with refused("bad.conllu", "s-2", *named):
        evaluate_run(folder / "run", tmp_path / "bad.conllu", folder)
    settings = read_settings(str(folder / "config.toml"), [f"data.train={tmp_path}/bad.conllu"])
    with refused("bad.conllu", "s-2", *named):
        train_one(settings, tmp_path / "never", folder)
    assert not (tmp_path / "never").exists()


def test_on_the_command_line_they_end_with_status_2(folder):
    (folder / "bad.conllu").write_text(text(DOGS, BAD["two roots"][0]))
    done = probformer("evaluate", "run", "bad.conllu", cwd=folder, check=2)
    check_wording(done.stderr, "bad.conllu", "s-2", "word 3, 'bark',")


def test_bad_sentences_are_left_out_and_counted(folder, tmp_path, capsys):
    bad = tmp_path / "bad.conllu"
    bad.write_text(text(*(heads for heads, *_ in BAD.values()), *[DOGS] * 4))
    changes = ["data.skip_bad_lines=true", f"data.train={bad}", "training.epochs=1"]
    train_one(read_settings(str(folder / "config.toml"), changes), tmp_path / "run", folder)
    printed = capsys.readouterr()
    assert "train: 4 sentences, 16 tokens" in printed.out
    found = [x for x in printed.err.splitlines() if x.startswith("warning: train: ")]
    assert len(found) == 2
    assert "left out 3 sentences with bad lines" in found[0]
    assert "left out 1 sentence with wrong annotation" in found[1]
    assert "bad.conllu:10 (sentence s-2): word 3, 'bark'," in found[1]


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("tagger"), "tagging", PT)


def test_what_evaluate_cannot_do(folder, tagger, tmp_path):
    run, test, plot = folder / "run", folder / "test.conllu", tmp_path / "plot.svg"
    (tmp_path / "bare.conllu").write_text(text(with_heads(*"____")))
    (tmp_path / "file").touch()
    for named, given in (
        (["bare.conllu", "heads"], {"file": tmp_path / "bare.conllu"}),
        (["--split"], {"file": test, "split": "dev"}),
        (["no.conllu"], {"file": tmp_path / "no.conllu"}),
        (["plot.png", ".svg"], {"file": None, "plot": tmp_path / "plot.png"}),
        (["file/plot.svg"], {"file": None, "plot": tmp_path / "file" / "plot.svg"}),
        (["--plot", "'tagging'"], {"folder": tagger, "file": None, "plot": plot}),
    ):
        with refused(*named):
            evaluate_run(**{"folder": run, "data": folder, **given})
    assert not plot.exists()


def test_other_tasks_have_metrics_alone(tagger, tmp_path, capsys):
    evaluate_run(tagger, None, tmp_path, "dev")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["dev:", "loss", "accuracy"]
    evaluate_run(tagger, None, tmp_path, as_json=True)
    assert set(json.loads(capsys.readouterr().out)) == {"metrics"}
