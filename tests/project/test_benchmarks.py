"""What is measured is what it says it is."""

import json
import sys
import tomllib

import pytest
import torch

from helpers.places import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import candidates
import epoch
import explore
import parsers
import partial
import performance
import trainings
import trees
import updates
from helpers.commands import probformer
from helpers.runs import saved, saved_with_labels
from probformer.config import EncoderSettings, TransformerSettings, UVSettings
from probformer.config.lookup import read_settings
from probformer.crf.structures import SpanningTrees
from probformer.data.builtin import builtin_corpus
from probformer.data.readers import SentenceFile
from probformer.runs.results import collect
from probformer.sentinels import UNOBSERVED


@pytest.mark.parametrize("name", ["UV", "Full"])
def test_the_dense_einsums_compute_the_same_as_the_encoder(name):
    sizes = candidates.Sizes(d=24, h=3, T=2, gamma=2, r=5)
    shape = candidates.Shape(2, 9, dropout=0.0, device=torch.device("cpu"), sizes=sizes)
    dense = candidates.CANDIDATES[f"{name} as dense einsums"](shape)
    model = candidates.CANDIDATES[name](shape)
    encoder = model.model
    encoder.word_scores.weight.data = dense.word_scores.weight.data
    for parameter, factor in zip(encoder.potentials.parameters(), dense.factors, strict=True):
        order = (0, 2, 3, 1)  # (k, a, c, l or b) -> (k, c, l or b, a)
        parameter.data = factor.data.permute(order)
    words = torch.randint(candidates.VOCABULARY, (2, 9))
    mask = torch.ones(2, 9, dtype=torch.bool)
    with torch.no_grad():
        torch.testing.assert_close(dense(words, mask), model(words, mask), rtol=1e-4, atol=1e-5)


def test_the_page_has_a_table_a_shape_and_a_plot(tmp_path, monkeypatch):
    """A tiny plan on this machine."""
    models = ("UV", "Rotary", "Transformer")
    tiny = performance.Plan(
        cases=(performance.Case(1, 5, models),),
        modes=("eager",),
        base=(1, 4),
        growth={"n": (3, 5)},
        growing=models,
        bf16=False,
    )
    monkeypatch.setitem(performance.PLANS, "cpu", tiny)
    monkeypatch.setattr(performance, "peak_memory", lambda *_: 2**20)
    monkeypatch.setattr(sys, "argv", ["performance.py", "--repeats", "1", "--docs", str(tmp_path)])
    performance.main()
    page = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert "### 1 × 5 words, d 384, h 16, T 5" in page
    for name in ("UV", "Rotary", "Transformer", "necessary products of UV"):
        assert f"| {name} | eager | " in page
    assert "<svg" in (tmp_path / "performance/cpu-growth.svg").read_text(encoding="utf-8")


def test_an_epoch_is_timed_for_each_model(monkeypatch, capsys):
    tiny = {
        "UV": EncoderSettings(labels=8, channels=2, potential=UVSettings(rank=2)),
        "Transformer": TransformerSettings(width=8, layers=1, heads=2, feed_forward=8),
    }
    monkeypatch.setattr(epoch, "encoders", lambda: tiny)
    line = ["epoch.py", "--sentences", "70", "--device", "cpu", "--profile"]
    monkeypatch.setattr(sys, "argv", line)
    epoch.main()
    out = capsys.readouterr().out
    assert "An epoch of 70 sentences in bf16" in out
    rows = [line.split("|") for line in out.splitlines() if line.startswith(("| UV", "| Trans"))]
    assert [row[1].strip() for row in rows] == ["UV", "Transformer"] * 2
    assert rows[1][5].strip() == "1.00"  # the Transformer, as a ratio to itself
    assert all(float(cell) > 0 for row in rows[2:] for cell in row[2:5])


def test_made_up_sentences_are_as_long_as_those_of_the_treebank(tmp_path):
    lines = epoch.made_up(tmp_path / "text", 5000).read_text().splitlines()
    lengths = [len(line.split()) for line in lines]
    assert len(lengths) == 5000
    assert 20 < sum(lengths) / 5000 < 22
    assert max(lengths) <= 82


def test_the_explorer_is_asked_as_often_as_it_says(tmp_path, monkeypatch, capsys):
    run = saved(tmp_path / "tiny", "mlm")
    monkeypatch.setattr(sys, "argv", ["explore.py", str(run), "--words", "7", "--requests", "4"])
    explore.main()
    out = capsys.readouterr().out
    assert "7 words, 4 requests" in out
    median, high, slowest = (float(line.split()[-2]) for line in out.splitlines()[-3:])
    assert 0 < median <= high <= slowest


def test_percentiles_of_the_explorer():
    found = explore.figures([number / 1000 for number in range(1, 301)])
    assert found == pytest.approx({"median": 150.5, "99th percentile": 298, "slowest": 300})


BENCHMARKS = ROOT / "benchmarks"


@pytest.mark.parametrize("name", ["claims", "table"])
def test_every_training_of_a_list_is_another_one(name):
    found = list(trainings.trainings(BENCHMARKS / f"{name}.toml"))
    settings = [read_settings(one.config, [*one.changes, f"seed={one.seed}"]) for one in found]
    assert all(one not in settings[:number] for number, one in enumerate(settings))
    assert len({one.folder for one in found}) == len(found)


def test_the_table_has_all_that_was_published_and_can_be_had():
    found = {one.config for one in trainings.trainings(BENCHMARKS / "table.toml")}
    published = tomllib.loads((BENCHMARKS / "../src/probformer/runs/published.toml").read_text())
    missing = published.keys() - found
    assert {name.rpartition("-")[0] for name in missing} == {"mlm-bllip", "tagging-ptb"}


def test_a_list_is_trained_and_not_twice(tmp_path, monkeypatch, capsys):
    common = ["training.epochs=1", "data.size=40", "encoder.labels=16"]
    group = f'[[groups]]\nconfig = "tagging-builtin-pt"\nseeds = "0..1"\ncommon = {common}\n'
    (tmp_path / "list.toml").write_text(group)
    line = ["trainings.py", str(tmp_path / "list.toml"), "--data", ".", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*line, "--parallel", "2"])
    trainings.main()
    name = "tagging-builtin-pt-epochs=1-size=40-labels=16"
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "2 runs, 0 of them done"
    assert sorted(said[1:]) == [f"{name}/seed-{seed} done" for seed in (0, 1)]
    assert "test: accuracy" in (tmp_path / name / "seed-1/output.txt").read_text()
    (row,) = collect([tmp_path / "figures.jsonl"])
    assert [run.seed for run in row.runs] == [0, 1]
    assert row.figure() == collect([tmp_path / name])[0].figure()
    kept = (tmp_path / "figures.jsonl").read_text()
    trainings.main()
    assert capsys.readouterr().out == "2 runs, 2 of them done\n"
    assert (tmp_path / "figures.jsonl").read_text() == kept


def test_updates_of_a_config_are_timed(monkeypatch, capsys):
    line = ["updates.py", "tagging-builtin-pt", "--data", ".", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", [*line, "--warm-up", "1", "--updates", "2"])
    updates.main()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("tagging-builtin-pt, bf16, ")
    assert float(second.removesuffix(" ms an update")) > 0
    monkeypatch.setattr(sys, "argv", ["updates.py", "nosuch", "--data", "."])
    with pytest.raises(SystemExit, match="2"):
        updates.main()
    assert "nosuch: is neither a file nor a bundled config" in capsys.readouterr().err


WHOLE = 'config = "tagging-builtin-pt"\nseeds = "0..0"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seeds = 1", "unknown setting seeds; known here: groups"),
        ("groups = [3]", "groups[0] must be of kind Mapping, got int"),
        ('[[groups]]\nconfig = "x"', "missing setting groups[0].seeds"),
        (f"[[groups]]\n{WHOLE}changes = [['a', 3]]", "common must be a list of texts"),
        (f"[[groups]]\n{WHOLE}common = ['training.epoch=3']", "did you mean 'epochs'?"),
        (
            "[[groups]]\nconfig = 'nosuch'\nseeds = '0'",
            "nosuch: is neither a file nor a bundled config",
        ),
    ],
)
def test_a_wrong_list_is_one_sentence_and_nothing_begins(text, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "list.toml").write_text(text)
    out = tmp_path / "out"
    line = ["trainings.py", str(tmp_path / "list.toml"), "--data", ".", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit, match="2"):
        trainings.main()
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_a_run_that_fails_is_pointed_at(tmp_path, monkeypatch, capsys):
    (tmp_path / "list.toml").write_text("[[groups]]\nconfig = 'tagging-conllu-pt'\nseeds = '0'")
    line = ["trainings.py", str(tmp_path / "list.toml"), "--data", str(tmp_path / "nowhere")]
    monkeypatch.setattr(sys, "argv", [*line, "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="1"):
        trainings.main()
    log = tmp_path / "tagging-conllu-pt/seed-0/output.txt"
    assert f"ended with status 2: {log} says why" in capsys.readouterr().out
    assert "nowhere" in log.read_text()


def test_the_performance_page_ends_with_its_notes():
    docs = BENCHMARKS.parent / "docs"
    notes = (docs / "performance/notes.md").read_text(encoding="utf-8")
    assert (docs / "performance.md").read_text(encoding="utf-8").endswith(notes)


@pytest.mark.parametrize("whole", [True, False])
def test_a_part_of_the_heads_of_a_file(whole, tmp_path, monkeypatch):
    words = "".join(f"{i}\tw\tw\tX\tX\t_\t{i - 1}\tdep\t_\tA=b\n" for i in range(1, 11))
    lines = [f"# sent_id = {number}\n{words}\n" for number in range(20)]
    (tmp_path / "all.conllu").write_text("".join(lines), encoding="utf-8")
    command = ["partial.py", str(tmp_path / "all.conllu"), str(tmp_path / "few.conllu")]
    more = ["--share", "0.3", *(["--sentences"] if whole else [])]
    monkeypatch.setattr(sys, "argv", [*command, *more])
    partial.main()
    few = (tmp_path / "few.conllu").read_text(encoding="utf-8")
    sentences = list(SentenceFile(tmp_path / "few.conllu", "conllu"))
    known = [0 if s.heads is None else sum(h != UNOBSERVED for h in s.heads) for s in sentences]
    for sentence, count in zip(sentences, known, strict=True):
        labels = sentence.columns["deprel"]
        assert labels.count("dep") == count
        assert labels.count("_") == 10 - count
    if whole:
        assert sorted(known) == [0] * 14 + [10] * 6
    else:
        assert 40 <= sum(known) <= 80
        assert 0 < min(known, default=0) + 1 < max(known) < 10
    assert few.count("A=b") == 200
    assert few.count("# sent_id") == 20


@pytest.mark.parametrize("single_root", [True, False])
def test_the_inverse_of_the_laplacian_gives_the_marginals_of_trees(single_root):
    scores = torch.randn(3, 2, 5, 6, dtype=torch.float64, requires_grad=True)
    forbidden, weights = torch.eye(5, 6, dtype=torch.bool), torch.randn(3, 2, 5, 6)
    found = trees.inverse_marginals(scores, forbidden, single_root)
    expected = SpanningTrees(single_root).marginals(scores, forbidden)
    torch.testing.assert_close(found, expected)
    pair = [torch.autograd.grad((x * weights).sum(), scores) for x in (found, expected)]
    torch.testing.assert_close(*pair)


def test_trees_are_timed_beside_the_inverse_and_in_a_training_step(tmp_path, monkeypatch, capsys):
    sizes = ["--sentences", "2", "--words", "4", "--batch", "2", "--length", "3"]
    line = ["trees.py", *sizes, "--repeats", "1", "--device", "cpu", "--docs", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", line)
    trees.main()
    found = json.loads((tmp_path / "performance/trees-cpu.json").read_text(encoding="utf-8"))
    assert capsys.readouterr().out.splitlines() == trees.tables(found)
    rows = {row["name"]: row for row in found["marginals"]["rows"]}
    assert rows.keys() == trees.MARGINALS.keys()
    assert all(row["forward"] > 0 and row["both"] > 0 for row in rows.values())
    assert rows[f"{trees.INVERSE}, one root"]["both / inverse"] == 1
    rows = {row["name"]: row for row in found["steps"]["rows"]}
    assert rows.keys() == trees.STEPS.keys()
    assert rows[trees.REFERENCE]["step / independent"] == 1


def test_the_page_on_parsing_shows_the_figures_of_trees():
    page = (BENCHMARKS.parent / "docs/parsing.md").read_text(encoding="utf-8")
    files = sorted((BENCHMARKS.parent / "docs/performance").glob("trees-*.json"))
    assert files
    for file in files:
        assert "\n".join(trees.tables(json.loads(file.read_text(encoding="utf-8")))) in page


def test_a_parser_is_scored_beside_others(tmp_path, monkeypatch, capsys):
    """Without UDPipe and spaCy: scores are those of `evaluate`, and gold trees have all right."""
    lines = [line for s in builtin_corpus(64)["test"] for line in gold_lines(s)]
    (tmp_path / "test.conllu").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sentences = list(SentenceFile(tmp_path / "test.conllu", "conllu"))
    columns = ("deprel", "upos", "xpos")
    gold = [parsers.Parsed(s.heads, *(s.columns[name] for name in columns)) for s in sentences]
    assert set(parsers.scores(sentences, gold).values()) == {1.0}
    run = saved_with_labels(tmp_path / "run", tags=("upos",))
    out = tmp_path / "figures.json"
    line = ["parsers.py", str(run), "--data", str(tmp_path), "--models", str(tmp_path / "models")]
    monkeypatch.setattr(sys, "argv", [*line, "--anchors", "", "--threads", "1", "--json", str(out)])
    parsers.main()
    (row,) = json.loads(out.read_text())["rows"].values()
    shown = probformer("evaluate", run, "test.conllu", "--json", cwd=tmp_path).stdout
    expected = json.loads(shown)["metrics"]
    for name in ("uas", "las", "clas", "upos"):
        assert row[name] == pytest.approx(expected[name])
    assert row["xpos"] == 0
    assert row["words/s"] > 0


def gold_lines(sentence):
    for number, word in enumerate(sentence.words):
        head = str(sentence.heads[number] + 1)
        label, upos, xpos = (sentence.columns[name][number] for name in ("deprel", "upos", "xpos"))
        fields = [str(number + 1), word, "_", upos, xpos, "_", head, label, "_", "_"]
        yield "\t".join(fields)
    yield ""
