"""`probformer report` and the commands for known corpora, as a person uses them."""

import json
import platform
import runpy
import shlex
import shutil
import statistics
import subprocess
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import pytest
import torch

from helpers.commands import probformer
from helpers.messages import check_wording, refused
from helpers.places import ROOT
from helpers.runs import TRANSFORMER, settings
from probformer.config import RunSettings, from_dict, to_dict, to_toml
from probformer.config.lookup import read_settings, shipped_configs
from probformer.config.reading import differences
from probformer.errors import counted
from probformer.runs.results import (
    ReportRow,
    _changes,
    _published,
    _published_for,
    collect,
    print_report,
)
from probformer.runs.run_folder import load_run
from probformer.training.commands import train_one


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of a tagger, and a model with a split "gen"."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        train_one(settings("tagging", seed=seed, epochs=2), folder / "tagger" / f"seed-{seed}")
    train_one(settings("cogs", TRANSFORMER, size=72, epochs=1), folder / "cogs")
    return folder


def test_seeds_are_one_row_with_mean_and_deviation(runs):
    (row,) = collect([runs / "tagger"])
    values = [100 * run.figures["test"]["accuracy"] for run in row.runs]
    assert row.figure() == f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"
    assert (row.split, row.metric, len(row.runs)) == ("test", "accuracy", 2)
    assert row.speed > 0
    encoder = load_run(runs / "tagger/seed-0").model.encoder
    assert row.runs[0].parameters == encoder.count_parameters()
    threads = counted(torch.get_num_threads(), "thread")
    assert row.machine == f"{threads} of a CPU ({platform.machine()}), torch {torch.__version__}"


def test_scores_of_parsers_are_in_per_cent(tmp_path):
    train_one(settings("parsing", size=32, epochs=1), tmp_path / "parser")
    (row,) = collect([tmp_path / "parser"])
    (run,) = row.runs
    assert row.figure() == f"{100 * run.figures['test']['las']:.2f}"
    assert row.figure("uas", "dev") == f"{100 * run.figures['dev']['uas']:.2f}"
    assert row.figure("loss") == f"{run.figures['test']['loss']:.2f}"


def test_unlike_runs_are_not_one_row(runs, tmp_path):
    other = tmp_path / "tagger"
    train_one(settings("tagging", epochs=1), other)
    rows = collect([runs / "tagger", runs / "tagger/seed-0", other])
    assert sorted(len(row.runs) for row in rows) == [1, 2]
    two = next(row for row in rows if len(row.runs) == 2)
    total = sum(line["seconds"] for run in two.runs for line in run.curve)
    assert two.seconds == pytest.approx(total / 2, abs=0.1)


def test_runs_on_other_data_are_not_one_row(runs, tmp_path):
    kept = tmp_path / "kept.jsonl"
    print_report([runs / "tagger"], True, None, kept)
    first, second = map(json.loads, kept.read_text().splitlines())
    second["environment"]["data"]["test"] = "another"
    older = {**first, "seed": 7, "environment": {**first["environment"], "data": None}}

    def sizes(*results):
        kept.write_text("".join(json.dumps(result) + "\n" for result in results))
        return sorted(len(row.runs) for row in collect([kept]))

    assert sizes(first, second) == [1, 1]
    assert sizes(older, first) == sizes(first, older) == [2]  # it does not say which data it has


def test_a_run_too_short_to_be_timed_has_no_speed(runs, tmp_path, capsys):
    kept = tmp_path / "kept.jsonl"
    print_report([runs / "cogs"], True, None, kept)
    result = json.loads(kept.read_text()) | {"seconds": 0.0}
    kept.write_text(json.dumps(result) + "\n")
    capsys.readouterr()
    print_report([kept], True, None, None)
    out = capsys.readouterr().out
    assert "sentences/s" not in out  # nor has any other run of the table
    assert "| 0:00:00 |" in out


def test_runs_that_began_elsewhere_are_rows_of_their_own(runs, tmp_path):
    init = runs / "tagger/seed-0"
    train_one(settings("tagging", epochs=2), tmp_path / "tagger", init=init)
    scratch, tuned = collect([init, tmp_path / "tagger"])
    assert (scratch.title, tuned.title) == ("tagger", f"tagger --init {init}")
    assert tuned.command.endswith(f"--seeds 0..0 --init {init}")


def test_tables_in_the_terminal_and_as_markdown(runs, capsys):
    print_report([runs / "tagger", runs / "cogs"], True, None, None)
    out = capsys.readouterr().out
    header = "run | figure | ours | dev | seeds | parameters | sentences/s | time"
    assert f"| {header} |" in out
    (row,) = collect([runs / "tagger"])
    assert f"| {row.figure()} | {row.figure(split='dev')} | 2 |" in out
    assert "gen accuracy by case" in out
    assert "| deeper recursion of prepositional phrases | " in out
    kept = ROOT / "results/published-mlm-ptb-pt.jsonl"
    print_report([runs / "tagger", kept], True, None, None)
    out = capsys.readouterr().out
    assert "| ours | published | dev |" in out
    assert f"| {row.figure()} |  | {row.figure(split='dev')} | 2 |" in out
    print_report([runs / "tagger"], False, None, None)
    assert "accuracy" in capsys.readouterr().out


def test_cases_of_several_runs_stand_side_by_side(runs, tmp_path, capsys):
    print_report([runs / "cogs"], True, None, tmp_path / "one.jsonl")
    line = json.loads((tmp_path / "one.jsonl").read_text(encoding="utf-8"))
    case = "accuracy/deeper recursion of prepositional phrases"
    line["config"], line["figures"]["gen"][case] = "another", 0.75
    (tmp_path / "two.jsonl").write_text(json.dumps(line), encoding="utf-8")
    capsys.readouterr()
    print_report([tmp_path / "one.jsonl", tmp_path / "two.jsonl"], True, None, None)
    out = capsys.readouterr().out
    (row,) = collect([runs / "cogs"])
    assert out.count("### gen accuracy by case") == 1
    assert f"| case | another | {row.title} |" in out
    assert f"| {case.partition('/')[2]} | 75.00 | {row.figure(case)} |" in out


def test_curves_are_drawn_the_same_every_time(runs, tmp_path, capsys):
    for name in ("new", "again"):
        print_report([runs / "tagger", runs / "cogs"], False, tmp_path / name / "curves.svg", None)
    svg = (tmp_path / "new" / "curves.svg").read_text(encoding="utf-8")
    assert svg == (tmp_path / "again" / "curves.svg").read_text(encoding="utf-8")
    assert svg.lstrip().startswith("<?xml")
    assert svg.count("<path") > 10
    assert "curves.svg" in capsys.readouterr().out


def test_figures_are_kept_a_line_a_run(runs, tmp_path):
    print_report([runs / "tagger"], True, None, tmp_path / "results/tagger.jsonl")
    kept = (tmp_path / "results/tagger.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [json.loads(line) for line in kept]
    (row,) = collect([runs / "tagger"])
    assert [line["seed"] for line in lines] == [0, 1]
    assert [line["figures"] for line in lines] == [run.figures for run in row.runs]
    assert lines[0]["environment"]["torch"]
    assert lines[0]["sentences"] == 2 * 64


def test_a_kept_figure_says_when_by_which_commit_and_from_which_data_it_comes(runs, tmp_path):
    print_report([runs / "tagger"], True, None, tmp_path / "kept.jsonl")
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    for line in (tmp_path / "kept.jsonl").read_text(encoding="utf-8").splitlines():
        environment = json.loads(line)["environment"]
        assert datetime.fromisoformat(environment["date"]).tzinfo is not None
        assert (environment["commit"] or "").removesuffix("-dirty") == commit
        assert set(environment["data"]) == {"train", "dev", "test"}


def test_kept_figures_are_reported_like_the_runs(runs, tmp_path, capsys):
    kept = tmp_path / "kept.jsonl"
    folders = [runs / "tagger", runs / "cogs"]
    print_report(folders, True, None, kept)
    of_runs = capsys.readouterr().out
    print_report([kept], True, None, None)
    assert capsys.readouterr().out == of_runs
    assert len(collect([kept, *folders])) == 2  # a run that is given twice is one
    with refused("curves"):
        print_report([kept], True, tmp_path / "curves.svg", None)
    with refused("no.jsonl"):
        collect([tmp_path / "no.jsonl"])
    kept.write_bytes(b"\xff\xfe")
    with refused("kept.jsonl:1"):
        collect([kept])
    kept.write_text('{"seed": 0}\n')
    with refused("kept.jsonl, line 1"):
        collect([kept])


def test_figures_kept_before_a_setting_came_are_of_the_same_row(runs, tmp_path):
    print_report([runs / "tagger"], True, None, tmp_path / "kept.jsonl")
    first, second = map(json.loads, (tmp_path / "kept.jsonl").read_text().splitlines())
    del first["settings"]["training"]["average"]
    (tmp_path / "kept.jsonl").write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")
    (row,) = collect([tmp_path / "kept.jsonl", runs / "tagger"])
    assert len(row.runs) == 2


def test_the_page_shows_the_figures_that_are_kept(capsys):
    root = ROOT
    page = ""
    for part in ("published", "starts", "better", "tried", "claims"):
        print_report(sorted((root / "results").glob(f"{part}-*.jsonl")), True, None, None)
        page += (root / f"results/{part}.md").read_text(encoding="utf-8") + capsys.readouterr().out
    page += (root / "results/structure.md").read_text(encoding="utf-8")
    runpy.run_path(str(root / "benchmarks/structure_table.py"), run_name="__main__")
    page += capsys.readouterr().out
    page += (root / "results/sentence.md").read_text(encoding="utf-8")
    assert page == (root / "docs/results.md").read_text(encoding="utf-8"), "`make results` does it"
    print_report(sorted((root / "results").glob("*.jsonl")), False, None, None)
    assert "…" not in capsys.readouterr().out, "names are shown whole"


def test_a_kept_run_is_described_by_the_config_of_today(tmp_path):
    kept = ROOT / "results/published-mlm-ptb-pt.jsonl"
    line = json.loads(kept.read_text(encoding="utf-8").splitlines()[0])
    line["settings"]["training"]["epochs"] = 3
    (tmp_path / "kept.jsonl").write_text(json.dumps(line))
    (row,) = collect([tmp_path / "kept.jsonl"])
    assert row.title == "mlm-ptb-pt training.epochs=3 training.precision=bf16"


def test_published_figures_stand_beside_unchanged_configs_only(runs, tmp_path):
    name = "tagging-ud_ewt-xpos-pt"
    folder = tmp_path / "run"
    shutil.copytree(runs / "tagger/seed-0", folder)
    published = read_settings(name, ["seed=3"])
    (folder / "run.toml").write_text(to_toml(published))
    (row,) = collect([folder])
    assert (row.title, str(row.published)) == (name, "90.96 ± 0.10")
    changed = read_settings(name, ["training.epochs=17"])
    (folder / "run.toml").write_text(to_toml(changed))
    (row,) = collect([folder])
    assert (row.title, row.published) == (f"{name} training.epochs=17", None)
    changes = "--seeds 0..0 --set training.epochs=17"
    assert row.command == f"probformer train {name} --data corpora {changes}"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("tagging-ud_ewt-xpos-pt", ["training.by_length=true", "training.chunk=none"]),
        (
            "tagging-wsj_sample-pt",  # a rank that the other kind had too
            ["encoder.potential.kind=rotary", "encoder.potential.rank=128"],
        ),
        ("mlm-ptb-pt", ["training.schedule.kind=cosine", "encoder.inference.lambda_h=0.5"]),
        ("mlm-ptb-pt", ["encoder.root.labels=3", "encoder.globals.mode=all-dep"]),
        ("mlm-ptb-pt", ["encoder.kind=transformer", "training.penalty=0", "data.train=a b.txt"]),
        ("classification-sst5-pt", ["encoder.kind=transformer", "encoder.readout=cls"]),
        ("cogs-builtin-pt", ["data.kind=files", "data.train=a", "data.dev=b", "data.test=c"]),
        (
            "classification-tsv-pt",
            ["task.kind=tagging", "encoder.root=none", "encoder.readout=scores"],
        ),
    ],
)
def test_the_command_of_a_row_gives_its_settings(runs, name, changes):
    given = read_settings(name, changes)
    (row,) = collect([runs / "tagger"])
    run = replace(row.runs[0], config=name, changes=_changes(given))
    parts = shlex.split(ReportRow([run], None).command)
    sets = [part for before, part in pairwise(parts) if before == "--set"]
    assert parts[:3] == ["probformer", "train", name]
    assert read_settings(name, sets) == given


def test_a_better_model_stands_beside_the_stronger_published_one():
    assert str(_published_for("tagging-ud_ewt-xpos-best")) == "91.17 ± 0.11"
    assert str(_published_for("ner-conll2003-best")) == "75.47 ± 0.35"
    assert str(_published_for("mlm-ptb-best")) == "58.43 ± 0.58"
    for of_a_user in ("mlm-text-pt", "mlm-text-best", "best"):  # a search writes best.toml
        assert _published_for(of_a_user) is None


def test_every_published_figure_has_a_config():
    for name, figure in _published().items():
        assert name in shipped_configs()
        assert figure.mean > figure.deviation > 0


def test_runs_that_are_none_or_not_done_are_named(runs, tmp_path, capsys):
    with refused(str(tmp_path)):
        collect([tmp_path])
    folder = tmp_path / "run"
    shutil.copytree(runs / "tagger/seed-0", folder)
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:-1]))
    with refused(str(folder)):
        collect([folder])
    (row,) = collect([folder, runs / "tagger"])
    assert len(row.runs) == 2
    check_wording(capsys.readouterr().err, str(folder))


def test_differences_have_full_names():
    first = settings("mlm")
    second = from_dict(RunSettings, json.loads(json.dumps(_values(first, labels=8))))
    assert differences(first, second) == {"encoder.labels": (16, 8)}


def _values(given: RunSettings, **encoder):
    values = to_dict(given)
    return {**values, "encoder": {**values["encoder"], **encoder}}


# Known corpora


def test_known_corpora_are_listed_checked_and_taken_from_a_folder(tmp_path):
    listed = probformer("data", "list", cwd=tmp_path).stdout
    assert "conll2003" in listed
    assert "CC BY-SA" in listed
    done = probformer("data", "check", cwd=tmp_path, check=2)
    check_wording(done.stderr)
    done = probformer("data", "check", "sst5", cwd=tmp_path, check=2)
    assert "missing: " in done.stdout
    check_wording(done.stderr, "3")
    done = probformer("data", "fetch", "conl2003", cwd=tmp_path, check=2)
    check_wording(done.stderr, "conll2003")
    done = probformer("data", "fetch", "conll2003", cwd=tmp_path, check=2)
    check_wording(done.stderr, "conll2003")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "eng.train").write_text("not what is known")
    done = probformer("data", "fetch", "conll2003", "--from", "mine", cwd=tmp_path, check=2)
    assert not (tmp_path / "conll2003").exists()
    check_wording(done.stderr, "mine")


def test_a_version_is_printed(tmp_path):
    assert probformer("--version", cwd=tmp_path).stdout.startswith("probformer 0.")
