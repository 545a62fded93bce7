"""Runs that are stopped, killed, disturbed or given other data: nothing is lost, nothing mixed."""

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from helpers.messages import check_wording, refused
from helpers.runs import PT, assert_same_runs, ready, settings
from probformer.config import RunSettings, from_dict
from probformer.data.builtin import builtin_corpus
from probformer.errors import InputError
from probformer.runs import files, run_folder
from probformer.runs.run_folder import load_run, read_metrics
from probformer.training.commands import train_one
from probformer.training.loop import Training


class Crash(BaseException):
    """As sudden as a power failure, as far as Python can tell."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    train_one(settings(), folder)
    return folder


def run_until_it_ends(folder: Path) -> None:
    """As a user who repeats the same command."""
    ready(settings(), folder, resume=True).train()


def test_a_crash_at_any_write_loses_nothing(whole, tmp_path, monkeypatch):
    """Before the n-th file or folder is put in its place, for every n."""
    put, crashes = files._put, 0
    for moment in range(1000):
        folder, calls = tmp_path / str(moment), []

        def crash(temporary, path, calls=calls, moment=moment):
            if len(calls) == moment:
                raise Crash
            calls.append(None)
            put(temporary, path)

        monkeypatch.setattr(files, "_put", crash)
        try:
            ready(settings(), folder).train()
        except Crash:
            crashes += 1
            monkeypatch.setattr(files, "_put", put)
            run_until_it_ends(folder)
        assert_same_runs(whole, folder)
        if len(calls) < moment:
            break
        shutil.rmtree(folder)
    assert crashes > 20


@pytest.mark.parametrize("text", ["", '{"epoch": 1, "ste', "\udcff"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_crash_while_metrics_are_written_loses_nothing(
    whole, tmp_path, monkeypatch, text, number
):
    append, calls = run_folder.append_metrics, []

    def crash(folder, line):
        if len(calls) == number:
            with (folder / "metrics.jsonl").open("a", errors="surrogateescape") as file:
                file.write(text)
            raise Crash
        calls.append(None)
        append(folder, line)

    monkeypatch.setattr("probformer.training.loop.append_metrics", crash)
    with pytest.raises(Crash):
        ready(settings(), tmp_path / "run").train()
    monkeypatch.undo()
    run_until_it_ends(tmp_path / "run")
    assert_same_runs(whole, tmp_path / "run")


@pytest.mark.parametrize("damaged", [False, True])
def test_without_a_whole_checkpoint_a_model_is_not_overwritten(whole, tmp_path, damaged):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    for state in (folder / "state").glob("step-*"):
        (state / "model.safetensors").write_bytes(b"damaged") if damaged else shutil.rmtree(state)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with refused("checkpoint", "--out"):
        ready(settings(), folder, resume=True)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_without_a_whole_checkpoint_a_run_starts_anew_and_keeps_new_ones(whole, tmp_path, capsys):
    """If it has come to no model yet."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    (folder / "model.safetensors").unlink()
    states = sorted((folder / "state").glob("step-*"))
    assert len(states) == 2
    for state in states:
        (state / "model.safetensors").write_bytes(b"damaged")
    training = ready(settings(), folder, resume=True)
    assert training.progress.step == 0
    training._epoch()
    training._end_epoch()
    kept = sorted((folder / "state").glob("step-*"))
    assert [files.is_sealed(state) for state in kept] == [True]
    run_until_it_ends(folder)
    assert_same_runs(whole, folder)
    assert capsys.readouterr().err.count("the checkpoint is damaged") == 2


@pytest.mark.parametrize("seed", [1, 2])
def test_other_data_is_refused_and_nothing_changes(whole, tmp_path, monkeypatch, seed):
    """Other words, and the same number of other words."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def other(size, _):
        if seed == 1:
            return builtin_corpus(size, 1)
        return {
            name: [replace(s, words=tuple(w[::-1] for w in s.words)) for s in sentences]
            for name, sentences in builtin_corpus(size, 0).items()
        }

    monkeypatch.setattr("probformer.data.corpus.builtin_corpus", other)
    with refused("data"):
        ready(settings(), folder, resume=True)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("changed", ["train", "dev", "test"])
def test_other_sentences_of_the_same_words_are_refused(whole, tmp_path, monkeypatch, changed):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)

    def other(size, _):
        splits = builtin_corpus(size, 0)
        return {**splits, changed: [*splits[changed]][::-1]}

    monkeypatch.setattr("probformer.data.corpus.builtin_corpus", other)
    with refused(changed):
        ready(settings(), folder, resume=True)


def test_a_run_that_does_not_know_its_data_goes_on(whole, tmp_path):
    """As those do that were begun before it was noted."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    environment = json.loads((folder / "environment.json").read_text())
    del environment["data"]
    (folder / "environment.json").write_text(json.dumps(environment))
    run_until_it_ends(folder)
    assert_same_runs(whole, folder)


def test_without_a_checkpoint_a_run_starts_from_the_same_encoder_again(whole, tmp_path):
    train_one(settings("tagging"), tmp_path / "tuned", init=whole)
    ready(settings("tagging"), tmp_path / "stopped", init=whole)  # described, not yet saved
    ready(settings("tagging"), tmp_path / "stopped", resume=True).train()
    assert_same_runs(tmp_path / "tuned", tmp_path / "stopped")


@pytest.mark.parametrize("resume", [False, True])
def test_a_model_without_its_run_is_never_overwritten(whole, tmp_path, resume):
    """As `save_pretrained` writes them."""
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copy(whole / name, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with refused("run.toml", "--out"):
        ready(settings(), tmp_path, resume=resume)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_going_back_forgets_the_best_weights_of_later_epochs(whole, tmp_path):
    """The last checkpoint is damaged, and the best weights are those of another model."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    older, newest = sorted((folder / "state").glob("step-*"))
    (newest / "progress.json").write_text("{}")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(b"of a later epoch")
    ready(settings(), folder, resume=True)
    best = (older / "best.safetensors").read_bytes()
    assert (folder / "model.safetensors").read_bytes() == best
    (older / "best.safetensors").unlink()
    sums = json.loads((older / "sha256.json").read_text())
    del sums["best.safetensors"]
    (older / "sha256.json").write_text(json.dumps(sums))
    ready(settings(), folder, resume=True)
    assert not (folder / "model.safetensors").exists()
    (older / "sha256.json").write_text("{}")
    assert not files.is_sealed(older)


def test_a_run_that_came_to_nothing_is_no_obstacle(tmp_path):
    training = ready(settings(), tmp_path)
    training._save()
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    results = ready(settings(), tmp_path).train()
    assert [line.get("epoch") for line in read_metrics(tmp_path)] == [1, 2, None]
    assert results["dev"]["loss"] > 0


def test_two_names_of_one_file_leave_no_third(tmp_path):
    (tmp_path / "one").write_text("x")
    for _ in range(2):
        files.share(tmp_path / "one", tmp_path / "two")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_other_settings_are_refused_by_name(whole):
    with refused("training.clip", "5.0", "1.0"):
        ready(settings(clip=1.0), whole, resume=True)


def test_a_damaged_description_is_one_sentence(whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    config = json.loads((folder / "config.json").read_text())
    del config["encoder"]
    (folder / "config.json").write_text(json.dumps(config))
    with refused("config.json", "encoder"):
        load_run(folder)


def test_weights_of_another_run_are_kept_over_a_stop(tmp_path):
    """Stopped before the first checkpoint of its own, and resumed without --init."""
    train_one(settings(), tmp_path / "first")
    tagger = settings("tagging")
    train_one(tagger, tmp_path / "whole", init=tmp_path / "first")
    training = ready(tagger, tmp_path / "stopped", init=tmp_path / "first")
    training._update = lambda indices: (_ for _ in ()).throw(Crash)
    with pytest.raises(Crash):
        training.train()
    ready(tagger, tmp_path / "stopped", resume=True).train()
    assert_same_runs(tmp_path / "whole", tmp_path / "stopped")
    environment = json.loads((tmp_path / "whole/environment.json").read_text())
    assert environment["init"] == str(tmp_path / "first")


def test_a_gradient_that_is_not_finite_stops_before_it_does_harm(tmp_path):
    training = ready(settings(), tmp_path)
    training._epoch()
    training._end_epoch()
    weights = {name: p.detach().clone() for name, p in training.model.named_parameters()}
    first = next(training.model.parameters())
    first.register_hook(lambda gradient: gradient * math.nan)
    with refused("gradient's norm", "epoch 2, batch 1"):
        training._epoch()
    for name, parameter in training.model.named_parameters():
        assert torch.equal(parameter, weights[name]), name


def test_a_dev_loss_that_is_not_finite_is_never_the_best(tmp_path, monkeypatch):
    training = ready(settings(), tmp_path)
    nan = {"loss": math.nan, "score": math.nan, "perplexity": math.nan}
    monkeypatch.setattr("probformer.training.loop.evaluate", lambda *_: nan)
    training._epoch()
    with refused("dev loss", "epoch 1"):
        training._end_epoch()
    assert not (tmp_path / "model.safetensors").exists()


def command(out: Path, *more: str) -> list[str]:
    small = ["--set", "data.size=64", "--set", "training.epochs=200"]
    line = [sys.executable, "-m", "probformer.cli", "train", "mlm-builtin-pt", *small]
    return [*line, "--out", str(out), *more]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_a_signal_stops_between_batches_with_a_checkpoint(tmp_path, number):
    process = subprocess.Popen(
        command(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while "epoch 1/" not in process.stdout.readline():
        assert process.poll() is None
    locked = subprocess.run(command(tmp_path, "--resume"), capture_output=True, text=True)
    assert locked.returncode == 2
    check_wording(locked.stderr, str(tmp_path))
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    check_wording(out.splitlines()[-1], "--resume", str(tmp_path))
    assert not err
    newest = sorted((tmp_path / "state").glob("step-*"))[-1]
    progress = json.loads((newest / "progress.json").read_text())
    assert progress["step"] > 0
    lines = read_metrics(tmp_path)
    assert len(lines) == progress["epoch"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_a_signal_after_the_last_batch_stops_what_comes_next(tmp_path, monkeypatch, number):
    """The run itself comes to its end; other seeds do not begin."""
    finish = Training._finish

    def interrupted(self):
        signal.raise_signal(number)
        return finish(self)

    monkeypatch.setattr(Training, "_finish", interrupted)
    before = signal.signal(number, lambda *_: sys.exit(128 + number))
    try:
        with pytest.raises(SystemExit):
            train_one(settings(epochs=1), tmp_path)
    finally:
        signal.signal(number, before)
    assert "final" in read_metrics(tmp_path)[-1]


def test_what_cannot_begin_in_a_linked_folder_says_why(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    data = {
        "kind": "files",
        "format": "text",
        **dict.fromkeys(("train", "dev", "test"), "train.txt"),
    }
    missing = from_dict(RunSettings, {"task": {"kind": "mlm"}, "data": data, "encoder": PT})
    with refused("train.txt"):
        train_one(missing, tmp_path / "link")


@contextmanager
def full_disk(largest: int) -> Iterator[None]:
    """Files of more than `largest` bytes cannot be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_on_a_full_disk_what_was_there_stays_and_the_run_goes_on_later(whole, tmp_path):
    training = ready(settings(), tmp_path)
    training._epoch()
    training._end_epoch()
    (checkpoint,) = (tmp_path / "state").glob("step-*")
    weights = (tmp_path / "model.safetensors").read_bytes()
    with full_disk(len(weights) // 2), pytest.raises(InputError, match=str(tmp_path)):
        training.train()
    assert files.is_sealed(checkpoint)
    assert (tmp_path / "model.safetensors").read_bytes() == weights
    run_until_it_ends(tmp_path)
    assert_same_runs(whole, tmp_path)


def test_a_full_disk_is_one_sentence(tmp_path):
    """Files of more than 100 kB cannot be written."""
    done = subprocess.run(
        command(tmp_path),
        capture_output=True,
        text=True,
        preexec_fn=lambda: (
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
        ),
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    # Without what safetensors says.
    check_wording(done.stderr.partition(": Error")[0], str(tmp_path))


def test_a_series_of_seeds_goes_on_and_names_the_one_that_fails(tmp_path):
    short = ["--set", "data.size=40", "--set", "training.epochs=1", "--seeds", "0..2"]
    line = command(tmp_path / "series", *short)
    (tmp_path / "series/seed-1").mkdir(parents=True)
    (tmp_path / "series/seed-1/model.safetensors").write_text("a run that was there before")
    for options in ([], ["--parallel", "2"]):
        done = subprocess.run([*line, *options], capture_output=True, text=True)
        assert done.returncode == 2
        assert "seed 1 failed: " in done.stderr
        assert "run.toml is missing" in done.stderr
        assert "seed 2: test perplexity" in done.stdout
        assert "(2 seeds)" in done.stdout
        assert " ± " in done.stdout
        assert (tmp_path / "series/seed-2/model.safetensors").is_file()
        assert "Traceback" not in done.stderr
        shutil.rmtree(tmp_path / "series/seed-0")
        shutil.rmtree(tmp_path / "series/seed-2")
    shutil.rmtree(tmp_path / "series/seed-1")
    done = subprocess.run([*line, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "(3 seeds)" in done.stdout


def test_gold_heads_need_heads(tmp_path, monkeypatch):
    given = settings("tagging", gold_heads={"channel": 0})

    def without(size, seed):
        corpus = builtin_corpus(size, seed)
        return {name: [replace(s, heads=None) for s in split] for name, split in corpus.items()}

    monkeypatch.setattr("probformer.data.corpus.builtin_corpus", without)
    with refused("training.gold_heads"):
        ready(given, tmp_path)


def test_an_encoder_that_does_not_fit_is_refused_by_name(tmp_path, capsys):
    train_one(settings(epochs=1), tmp_path / "small")
    wider = {**PT, "potential": {"kind": "uv", "rank": 8, "gamma": 1}}
    with refused("potentials.words.U", "(4, 2, 8, 16)", "(4, 2, 4, 16)"):
        ready(settings(encoder=wider), tmp_path / "large", init=tmp_path / "small")
    globals_ = {**PT, "globals": {"count": 4}}
    train_one(settings(encoder=globals_, epochs=1), tmp_path / "more", init=tmp_path / "small")
    assert "not in it: potentials.globals" in capsys.readouterr().out
    with refused("potentials.globals"):
        ready(settings(), tmp_path / "fewer", init=tmp_path / "more")
    train_one(settings("classification", epochs=1), tmp_path / "class", init=tmp_path / "small")
    assert "not in it: potentials.root.T" in capsys.readouterr().out


def test_tensorboard_is_asked_for_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr("probformer.errors.find_spec", lambda _: None)
    with refused("training.tensorboard", "probformer[track]"):
        ready(settings(tensorboard=True), tmp_path)
    assert not os.listdir(tmp_path)


def test_only_files_are_replaced(tmp_path: Path):
    """What is no file, such as a terminal, is written to; a folder is refused."""
    device = tmp_path / "pipe"
    os.mkfifo(device)
    reader = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
    files.write_text(device, "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert device.is_fifo()
    with refused(str(tmp_path)):
        files.write_text(tmp_path, "text")
    assert [*tmp_path.iterdir()] == [device]


def test_what_cannot_be_written_is_known_before(tmp_path: Path, monkeypatch):
    """And nothing is made by asking."""
    (tmp_path / "file").write_text("text")
    for allowed in ("new", "new/folder/file", "file", "/dev/null"):
        files.require_writable(tmp_path / allowed)
    files.require_writable(tmp_path / "new/folder", folder=True)
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]
    for path, folder in ((".", False), ("file", True), ("file/in/file", False)):
        with refused(str(tmp_path / path)):
            files.require_writable(tmp_path / path, folder)
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
    for path in ("file", "new"):
        with refused(str(tmp_path / path)):
            files.require_writable(tmp_path / path)
