"""The command line as a person uses it, and what it says to wrong input."""

import json
import shutil
import subprocess
import sys
from itertools import permutations

import pytest
from typer.testing import CliRunner

from helpers.commands import probformer
from helpers.messages import check_wording
from probformer.analysis.parse.command import parse_file
from probformer.analysis.parse.scoring import ParserOptions
from probformer.cli import app
from probformer.cli.errors import _report_errors
from probformer.config import RotarySettings
from probformer.config.lookup import apply_change, read_settings
from probformer.errors import InputError
from probformer.runs.run_folder import load_run
from probformer.training.seeds import parse_seeds

TINY = """
[task]
kind = "tagging"
column = "tag"

[data]
kind = "files"
format = "columns"
train = "train.tsv"
dev = "dev.tsv"
test = "dev.tsv"

[encoder]
kind = "pt"
labels = 4
channels = 1
[encoder.potential]
kind = "uv"
rank = 2

[training]
epochs = 2
batch = 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with data, a config and a trained run."""
    path = tmp_path_factory.mktemp("cli")
    (path / "train.tsv").write_text("a\tX\nb\tY\n\nb\tY\na\tX\n\na\tX\n")
    (path / "dev.tsv").write_text("a\tX\nb\tY\n\na\tZ\n")
    (path / "tiny.toml").write_text(TINY)
    done = probformer("train", "tiny.toml", "--out", "run", cwd=path)
    assert "epoch 2/2" in done.stdout
    assert "test: accuracy" in done.stdout
    assert "tags that are not in the training data count as wrong: 'Z' (1)" in done.stderr
    return path


def test_the_command_line_alone_imports_nothing_heavy():
    code = "import sys, probformer.cli; assert not {'torch', 'numpy', 'fastapi'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_evaluate_and_predict(folder):
    done = probformer("evaluate", "run", cwd=folder)
    assert "accuracy 0." in done.stdout
    done = probformer("predict", "run", "a b", cwd=folder)
    words = [pair.split("/")[0] for pair in done.stdout.split()]
    assert words == ["a", "b"]
    done = probformer("predict", "run", "--json", cwd=folder, text="a b\n\nb\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["words"] for answer in answers] == [["a", "b"], [], ["b"]]
    assert {tag for answer in answers if answer["words"] for tag in answer["tags"]} <= {"X", "Y"}


def test_masked_words_are_filled(tmp_path):
    changes = ["--set", "training.epochs=1", "--set", "data.size=40"]
    probformer("train", "mlm-builtin-pt", *changes, "--out", "run", cwd=tmp_path)
    done = probformer("predict", "run", "the <mask> sleeps .", cwd=tmp_path)
    assert "<mask>" not in done.stdout.splitlines()[0]
    assert "(no <mask> to fill)" in probformer("predict", "run", "a b", cwd=tmp_path).stdout


def test_describe(folder):
    done = probformer("data", "describe", "tiny.toml", cwd=folder)
    assert "train: 3 sentences, 5 words (0 unknown), longest 2" in done.stdout
    assert "tag: 2 values, most frequent 'X'" in done.stdout
    assert "vocabulary: 4 entries" in done.stdout


WRONG = [
    "no-config",
    "taken-folder",
    "unknown-setting",
    "bad-value",
    "no-value",
    "no-column",
    "no-file",
    "no-unicode",
    "large-rate",
    "bad-seeds",
    "no-run",
    "no-split",
    "no-text",
    "text-and-file",
]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["train", "nothing"], "nothing"),
        (["train", "tiny.toml", "--out", "run"], "run: "),
        (["train", "tiny.toml", "--set", "training.epoch=1"], "training.epoch"),
        (["train", "tiny.toml", "--set", "training.epochs=0"], "training.epochs"),
        (["train", "tiny.toml", "--set", "epochs"], "--set"),
        (["train", "tiny.toml", "--set", "task.column=pos"], "task.column"),
        (["train", "tiny.toml", "--set", "data.train=no.tsv"], "no.tsv"),
        (["train", "tiny.toml", "--set", "data.train=caf\udce9"], "data.train"),
        (["train", "tiny.toml", "--set", "training.learning_rate=1e300"], "learning_rate"),
        (["train", "tiny.toml", "--seeds", "x"], "'x'"),
        (["evaluate", "nowhere"], "nowhere"),
        (["evaluate", "run", "--split", "gen"], "'gen'"),
        (["predict", "run", "--file", "no.txt"], "no.txt"),
        (["predict", "run", "a", "--file", "no.txt"], "--file"),
    ],
    ids=WRONG,
)
def test_wrong_input_is_one_sentence_and_status_2(folder, arguments, named):
    done = probformer(*arguments, cwd=folder, check=2)
    check_wording(done.stderr.strip().splitlines()[-1], named)
    assert done.stderr.count("\n") == 1


def test_a_bad_line_is_named_or_skipped(folder):
    (folder / "bad.tsv").write_text("a\tX\nb\n\nb\tY\n")
    change = ["--set", "data.train=bad.tsv", "--out", "skipping"]
    done = probformer("train", "tiny.toml", *change, cwd=folder, check=2)
    check_wording(done.stderr, "bad.tsv:2")
    done = probformer(
        "train", "tiny.toml", *change, "--set", "data.skip_bad_lines=true", cwd=folder
    )
    assert "left out 1 sentence with bad lines: line 2" in done.stderr


def test_what_cannot_begin_leaves_nothing_behind(folder):
    missing = ["--set", "data.train=no.tsv"]
    probformer("train", "tiny.toml", *missing, "--out", "never/begun", cwd=folder, check=2)
    assert not (folder / "never/begun").exists()


def test_a_run_of_another_format_is_refused(folder, tmp_path):
    config = json.loads((folder / "run/config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "format_version": 99}))
    done = probformer("evaluate", tmp_path, cwd=folder, check=2)
    check_wording(done.stderr, "99")


def test_changes_are_typed():
    settings = read_settings("mlm-builtin-pt", ["training.epochs=3", "encoder.dropout=0.5"])
    assert (settings.training.epochs, settings.encoder.dropout) == (3, 0.5)
    settings = read_settings("mlm-builtin-pt", ["encoder.potential.kind=rotary"])
    assert settings.encoder.potential == RotarySettings()
    values = {}
    apply_change(values, "data.folder=some/where")
    assert values == {"data": {"folder": "some/where"}}
    assert parse_seeds("0..2") == [0, 1, 2]
    assert parse_seeds("4,1") == [4, 1]
    with pytest.raises(InputError):
        parse_seeds("3..1")


@pytest.mark.parametrize(
    "changes",
    [
        ["encoder.potential.rank=8", "encoder.potential.kind=rotary"],
        ["vocabulary.size=300", "vocabulary.kind=subwords"],
        ["encoder.width=8", "encoder.positions=none", "encoder.kind=transformer"],
        ["encoder.potential.kind=uvw", "encoder.labels=8", "encoder.kind=pt"],
    ],
)
def test_changes_have_no_order(changes):
    config = "mlm-builtin-transformer" if "encoder.kind=pt" in changes else "mlm-builtin-pt"
    given = read_settings(config, changes)
    assert all(read_settings(config, [*order]) == given for order in permutations(changes))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("CUDA out of memory. Tried"), "or shorter sentences"),
        (OSError(28, "No space left on device", "runs/x"), "runs/x: No space left on device"),
        (InputError("what is wrong"), "error: what is wrong"),
    ],
)
def test_what_a_user_can_mend_is_no_traceback(error, message, capsys):
    def command():
        raise error

    with pytest.raises(SystemExit) as stop:
        _report_errors(command)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_what_nobody_foresaw_is_not_hidden():
    def command():
        raise RuntimeError("an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal"):
        _report_errors(command)


@pytest.mark.parametrize("command", ["parse", "draw", "describe"])
def test_help_shows_a_minus_that_can_be_typed(command):
    shown = CliRunner().invoke(app, [command, "--help"]).output
    assert "-1" in shown
    assert "−" not in shown


def test_the_configs_for_data_of_ones_own(tmp_path):
    """As the README has it: text, then a tagger that starts from it."""
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.txt").write_text("the dog sleeps\nthe cat eats\nthe dog eats\n" * 3)
        word = "{0}\t{1}\t_\t{2}\t_\t_\t{3}\t_\t_\t_\n".format
        rows = word(1, "the", "DET", 2) + word(2, "dog", "NOUN", 3) + word(3, "eats", "VERB", 0)
        (tmp_path / f"{split}.conllu").write_text((rows + "\n") * 4)
    short = ["--set", "training.epochs=1"]
    probformer("train", "mlm-text-pt", "--data", ".", "--out", "mine", *short, cwd=tmp_path)
    done = probformer("predict", "mine", "the <mask> eats", cwd=tmp_path)
    assert done.stdout.split()[0] == "the"
    tagger = ["train", "tagging-conllu-pt", "--data", ".", "--init", "mine", "--out", "tagger"]
    assert "words matched" in probformer(*tagger, *short, cwd=tmp_path).stdout


def test_a_sentence_longer_than_the_position_table_is_named(tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.txt").write_text("a b\n" + "a " * 30 + "\n")
    transformer = ["encoder={kind='transformer', width=8, layers=1, max_length=20}"]
    options = [part for change in transformer for part in ("--set", change)]
    done = probformer("train", "mlm-text-pt", *options, cwd=tmp_path, check=2)
    check_wording(done.stderr, "train", "sentence 2", "30", "20", "encoder.max_length")


def test_a_split_without_a_word_to_mask_is_named_before_training(tmp_path):
    texts = {"train": "the dog sleeps\n" * 9, "dev": "the dog\n" * 9, "test": "no\n"}
    for split, text in texts.items():
        (tmp_path / f"{split}.txt").write_text(text)
    done = probformer("train", "mlm-text-pt", "--out", "run", cwd=tmp_path, check=2)
    check_wording(done.stderr, "error: test: ")
    assert not (tmp_path / "run").exists()


def test_a_model_without_its_run_has_no_data_to_be_judged_by(folder, tmp_path):
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copy(folder / "run" / name, tmp_path)
    done = probformer("evaluate", ".", cwd=tmp_path, check=2)
    check_wording(done.stderr, "run.toml")


def test_one_seed_has_no_deviation(folder):
    done = probformer("train", "tiny.toml", "--seeds", "3", "--out", "alone", cwd=folder)
    assert "(1 seed)" in done.stdout
    assert "±" not in done.stdout


def test_trees_are_written_before_anything_is_printed(folder, tmp_path, monkeypatch):
    """Who reads what is printed may have had enough of it."""
    sentence = "1\tthe\t_\tDET\tDT\t_\t2\t_\t_\t_\n2\tdog\t_\tNOUN\tNN\t_\t0\t_\t_\t_\n\n"
    (tmp_path / "some.conllu").write_text(sentence)

    def closed(*_):
        raise BrokenPipeError

    monkeypatch.setattr("probformer.analysis.parse.command.print_tables", closed)
    out = tmp_path / "out.conllu"
    run, some = load_run(folder / "run"), tmp_path / "some.conllu"
    with pytest.raises(BrokenPipeError):
        parse_file(run, some, tmp_path, ParserOptions(), out=out)
    assert out.read_text().count("dog") == 1
