"""Searching for settings: what is drawn, what is refused, and that no trial is lost."""

import os
import signal
import subprocess
import sys
import time

import optuna
import pytest
from optuna.trial import TrialState

from helpers.messages import check_wording, refused
from helpers.runs import assert_same_runs
from probformer.config.lookup import read_settings, read_values, shipped_configs
from probformer.config.reading import flat
from probformer.data.corpus import load_corpus
from probformer.errors import InputError
from probformer.runs.run_folder import load_run, read_metrics
from probformer.training.loop import Training
from probformer.tuning.command import tune
from probformer.tuning.plot import plot_search
from probformer.tuning.space import read_space
from probformer.tuning.study import open_search

SMALL = ["data.size=64", "training.epochs=2", "encoder.labels=8", "encoder.inference.iterations=1"]
SPACE = """
["training.learning_rate"]
low = 1e-3
high = 1e-1
log = true

[encoder.potential.rank]
choices = [2, 4]

["encoder.channels"]
low = 1
high = 3
"""


@pytest.fixture
def space(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(SPACE)
    return str(path)


def search_in(folder, space, storage=None, changes=SMALL, seed=0, sampler="random"):
    found = read_space(space, read_values("mlm-builtin-pt", changes))
    digests = load_corpus(read_settings("mlm-builtin-pt", changes).data, folder).digests()
    return open_search(folder, storage, "study", found, sampler, seed, False, digests)


def run(folder, space, trials=2, changes=SMALL, data=None, **more):
    given = {"sampler": "random", "prune": False, "storage": None, "seed": 0, "plot": None, **more}
    data = data or folder.parent
    tune("mlm-builtin-pt", space, changes, data, folder, trials, study="study", **given)


def draw(search, trials):
    """The values drawn in several trials; the rank of a trial is its score."""
    drawn = []
    for _ in range(trials):
        with search.next_trial(trials) as trial:
            drawn.append(search.chosen(trial))
            search.study.tell(trial, drawn[-1]["encoder.potential.rank"])
    return drawn


# The space.

SPACES = [
    "nothing",
    "no-table",
    "no-ends",
    "no-high",
    "wrong-order",
    "infinite",
    "text",
    "typo",
    "log-of-0",
    "broken-step",
    "step-beyond-high",
    "step-and-log",
    "no-choices",
    "choices-no-list",
    "choice-list",
    "same-choices",
    "choices-and-low",
    "unknown-setting",
    "bad-choice",
    "broken-low",
    "bad-high",
    "nested",
    "no-rank",
    "odd-rank",
    "no-toml",
]


@pytest.mark.parametrize("name", shipped_configs("spaces"))
def test_spaces_that_come_along_fit_their_config(name):
    read_space(name, read_values(f"{name}-pt", []))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "space.toml"),
        ("training = 3", "training"),
        ("[training.epochs]", "training.epochs.low"),
        ("[training.epochs]\nlow = 1", "high"),
        ("[training.epochs]\nlow = 3\nhigh = 2", "3 and 2"),
        ("[training.epochs]\nlow = 1\nhigh = inf", "1 and inf"),
        ("[training.epochs]\nlow = 'a'\nhigh = 2", "low"),
        ("[training.epochs]\nlow = 1\nhihg = 2", "training.epochs.hihg"),
        ("[training.clip]\nlow = 0.0\nhigh = 1.0\nlog = true", "log"),
        ("[training.clip]\nlow = 0.5\nhigh = 1.5\nstep = 1", "step"),
        ("[training.epochs]\nlow = 1\nhigh = 4\nstep = 2", "low 1, high 4, step 2"),
        ("[training.epochs]\nlow = 1\nhigh = 4\nstep = 1\nlog = true", "step"),
        ("[training.epochs]\nchoices = []", "choices"),
        ("[training.epochs]\nchoices = 3", "choices"),
        ("[training.epochs]\nchoices = [[1]]", "[1]"),
        ("[training.epochs]\nchoices = [1, 1]", "[1, 1]"),
        ("[training.epochs]\nchoices = [1]\nlow = 1", "choices"),
        ("[training.epoch]\nchoices = [1]", "training.epoch = 1"),
        ("[training.epochs]\nchoices = [1, 0]", "training.epochs = 0"),
        ("[training.epochs]\nlow = 0.5\nhigh = 2", "0.5"),
        ("[encoder.dropout]\nlow = 0.1\nhigh = 1.5", "encoder.dropout = 1.5"),
        ("[encoder.labels.size]\nchoices = [1]", "encoder.labels.size"),
        (
            "[encoder.potential.kind]\nchoices = ['uv', 'full']\n"
            "[encoder.potential.rank]\nchoices = [2]",
            "encoder.potential.kind = 'full'",
        ),
        (
            "[encoder.potential.kind]\nchoices = ['uv', 'rotary']\n"
            "[encoder.potential.rank]\nchoices = [2, 3]",
            "encoder.potential.rank = 3",
        ),
        ("= 3", "TOML"),
    ],
    ids=SPACES,
)
def test_what_a_space_may_not_be(tmp_path, text, named):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_space(str(path), read_values("mlm-builtin-pt", []))
    message = str(caught.value)
    assert message.count(str(path)) == 1
    check_wording(message.partition(" (at line")[0], named)


def test_a_new_kind_goes_before_the_settings_of_its_table(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text("[encoder.potential]\nrank.choices = [2]\nkind.choices = ['rotary', 'uvw']\n")
    space = read_space(str(path), read_values("mlm-builtin-pt", []))
    settings = space.settings({"encoder.potential.rank": 2, "encoder.potential.kind": "uvw"})
    assert (settings.encoder.potential.kind, settings.encoder.potential.rank) == ("uvw", 2)
    assert space.settings({}) == read_settings("mlm-builtin-pt", [])


# The study.


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_the_same_seed_draws_the_same_values(tmp_path, space, sampler):
    def drawn(name, seed, trials=12):
        journal = str(tmp_path / f"{name}.journal")
        return draw(search_in(tmp_path / name, space, journal, seed=seed, sampler=sampler), trials)

    first, second, other = drawn("first", 0), drawn("second", 0), drawn("other", 1, trials=2)
    assert first == second
    assert len({str(values) for values in first}) == 12
    assert not {str(values) for values in first} & {str(values) for values in other}
    for values in first:
        assert 1e-3 <= values["training.learning_rate"] <= 1e-1
        assert values["encoder.potential.rank"] in (2, 4)
        assert values["encoder.channels"] in (1, 2, 3)


def test_workers_share_the_trials_and_go_on_with_those_that_are_left(tmp_path, space):
    """Two in one process: locks belong to open files, not to processes."""
    one, two = (search_in(tmp_path / "out", space) for _ in range(2))
    with one.next_trial(2) as first:
        drawn = one.chosen(first)
        with two.next_trial(2) as second:
            assert (first.number, second.number) == (0, 1)
            assert two.chosen(second) != drawn
            with one.next_trial(2) as third:
                assert third is None
            two.study.tell(second, 1.0)
    with two.next_trial(2) as again:
        assert again.number == 0
        assert two.chosen(again) == drawn
        two.study.tell(again, 2.0)
    with one.next_trial(2) as none:
        assert none is None
    assert [trial.value for trial in one.trials()] == [2.0, 1.0]


def test_a_study_ends_with_the_best_config(tmp_path, space, capsys):
    folder = tmp_path / "out"
    run(folder, space, trials=3, plot=tmp_path / "search.svg")
    search = search_in(folder, space)
    trials = search.trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 3
    perplexities = []
    for trial in trials:
        epochs = [line["dev"] for line in read_metrics(search.trial_folder(trial.number))[:-1]]
        best = min(epochs, key=lambda dev: dev["perplexity"])
        assert trial.value == best["score"]
        perplexities.append(best["perplexity"])
        used = flat(read_values(str(search.trial_folder(trial.number) / "run.toml"), []))
        assert trial.params.items() <= used.items()
    winner = perplexities.index(min(perplexities))
    assert search.study.best_trial.number == winner
    best = read_settings(str(folder / "best.toml"), [])
    assert best == load_run(search.trial_folder(winner)).settings
    said = capsys.readouterr().out
    assert f"best: trial {winner}, dev perplexity {min(perplexities):.4f}" in said
    picture = (tmp_path / "search.svg").read_bytes()
    plot_search(search, "perplexity", tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == picture
    run(folder, space, trials=3)
    assert "the study has 3 trials already" in capsys.readouterr().out


def test_a_stopped_study_goes_on_where_it_was(tmp_path, space, monkeypatch, capsys):
    run(tmp_path / "whole", space, trials=2)
    monkeypatch.setattr(Training, "_must_stop", lambda self: self.progress.step == 3)
    with pytest.raises(SystemExit) as caught:
        run(tmp_path / "out", space, trials=2)
    assert caught.value.code == 128 + signal.SIGTERM
    assert "stopped; the same command continues" in capsys.readouterr().out
    monkeypatch.undo()
    run(tmp_path / "out", space, trials=2)
    assert "trial 0: resuming after 1 epoch and 1 batch" in capsys.readouterr().out
    for name in ("trial-0000", "trial-0001"):
        assert_same_runs(tmp_path / "whole" / name, tmp_path / "out" / name)
    assert len(search_in(tmp_path / "out", space).trials()) == 2


def test_a_trial_that_fails_does_not_end_the_study(tmp_path, space, monkeypatch, capsys):
    judge = Training._end_epoch

    def diverges(self):
        if "trial-0000" in str(self.folder):
            raise InputError("the loss is nan in epoch 1")
        if "trial-0001" in str(self.folder):
            raise RuntimeError("CUDA out of memory")
        return judge(self)

    monkeypatch.setattr(Training, "_end_epoch", diverges)
    with refused("out of memory"):
        run(tmp_path / "out", space, trials=2)
    run(tmp_path / "out", space, trials=3)
    trials = search_in(tmp_path / "out", space).trials()
    assert [trial.state.name for trial in trials] == ["FAIL", "FAIL", "COMPLETE"]
    assert trials[0].user_attrs["reason"] == "the loss is nan in epoch 1"
    said = capsys.readouterr()
    assert "3 trials: 1 complete, 2 fail" in said.out
    assert "trial 0: warning: failed: the loss is nan in epoch 1" in said.err


def test_a_trial_may_be_pruned(tmp_path, space, monkeypatch):
    prunes = lambda self, study, trial: trial.number == 1  # noqa: E731
    monkeypatch.setattr(optuna.pruners.MedianPruner, "prune", prunes)
    run(tmp_path / "out", space, trials=2, prune=True, plot=tmp_path / "search.svg")
    search = search_in(tmp_path / "out", space)
    assert [trial.state.name for trial in search.trials()] == ["COMPLETE", "PRUNED"]
    assert len(read_metrics(search.trial_folder(1))) == 1
    assert load_run(search.trial_folder(1))
    assert search.study.best_trial.number == 0


def test_another_storage(tmp_path, space):
    journal = str(tmp_path / "study.journal")
    draw(search_in(tmp_path / "out", space, storage=journal), 2)
    study = optuna.load_study(
        study_name="study",
        storage=optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(journal)),
    )
    assert len(study.trials) == 2
    assert not (tmp_path / "out/study.db").exists()


def test_a_study_does_not_change_under_way(tmp_path, space):
    search_in(tmp_path / "out", space)
    with refused("training.epochs", "2", "3", "--study"):
        search_in(tmp_path / "out", space, changes=[*SMALL, "training.epochs=3"])
    other = tmp_path / "other.toml"
    other.write_text(SPACE.replace("1e-1", "1.0"))
    with refused("range of training.learning_rate"):
        search_in(tmp_path / "out", str(other))
    storage = f"sqlite:///{tmp_path / 'out/study.db'}"
    with refused("'study'"):
        search_in(tmp_path / "elsewhere", space, storage=storage)
    draw(search_in(tmp_path / "out", space), 1)
    (tmp_path / "out/trial-0000").mkdir(exist_ok=True)
    (tmp_path / "out/study.db").unlink()
    with refused("--out"):
        search_in(tmp_path / "out", space)


def test_a_study_keeps_to_its_sentences(tmp_path, space):
    for split in ("train", "dev", "test"):
        (tmp_path / split).write_text("a b c\nb c a\n" * 20)
    names = [f"data.{split}={split}" for split in ("train", "dev", "test")]
    changes = [*(x for x in SMALL if not x.startswith("data.")), "data.kind=files", *names]
    run(tmp_path / "out", space, trials=1, changes=changes)
    run(tmp_path / "out", space, trials=2, changes=changes)
    (tmp_path / "dev").write_text("a b c\nb c c\n" * 20)
    with refused("'study'", "dev"):
        run(tmp_path / "out", space, trials=3, changes=changes)
    assert len(list(tmp_path.glob("out/trial-*"))) == 2


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"trials": 0}, "trials"),
        ({"seed": -1}, "seed"),
        ({"sampler": "grid"}, "'grid'"),
        ({"storage": "nosuch://x"}, "--storage nosuch://x"),
        ({"space": "nosuch"}, "nosuch"),
        ({"changes": ["encoder.channels=2"]}, "--set encoder.channels"),
        ({"changes": ["encoder.lables=2"]}, "encoder.lables"),
        (
            {"changes": ["data.kind=files", *(f"data.{s}={s}" for s in ("train", "dev", "test"))]},
            "train",
        ),
    ],
)
def test_what_cannot_be_searched(tmp_path, space, more, named):
    given = {"space": space, **more}
    with pytest.raises(InputError) as caught:
        run(tmp_path / "out", **given)
    # Without the path of the bundled config, and without what the database says.
    message = str(caught.value).rpartition("bundled/")[2].partition(": Can")[0]
    check_wording(message, named)
    assert not list(tmp_path.glob("out/trial-*"))


@pytest.mark.parametrize(("missing", "extra"), [("optuna", "tune"), ("matplotlib", "plot")])
def test_a_missing_package_is_one_sentence(tmp_path, missing, extra):
    code = f"""
import sys
sys.modules[{missing!r}] = None
sys.argv = ["probformer", "tune", "mlm-builtin-pt", "--space", "mlm-builtin"]
sys.argv += ["--out", {str(tmp_path / "out")!r}, "--plot", {str(tmp_path / "x.svg")!r}]
from probformer.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    check_wording(done.stderr, f"probformer[{extra}]")


@pytest.mark.long
def test_a_killed_worker_loses_no_trial(tmp_path):
    """Eight trials by two workers, of which one is killed in the middle of its second trial."""
    line = [sys.executable, "-m", "probformer.cli", "tune", "mlm-builtin-pt"]
    line += ["--space", "mlm-builtin", "--trials", "8", "--out", str(tmp_path / "out"), "--prune"]
    line += ["--set", "data.size=300", "--set", "training.epochs=6"]
    line += ["--set", "training.checkpoint_minutes=0.003"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    outputs = [tmp_path / name for name in ("survivor", "killed")]
    workers = []
    try:
        for output in outputs:
            with output.open("w") as file:
                workers.append(subprocess.Popen(line, stdout=file, stderr=file, env=environment))
        survivor, killed = workers
        until = time.monotonic() + 300
        while outputs[1].read_text().count("complete,") < 1 or not going_on(outputs[1]):
            assert time.monotonic() < until
            assert killed.poll() is None
            time.sleep(0.05)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        lost = int(outputs[1].read_text().splitlines()[-1].split(":")[0].removeprefix("trial "))
        assert survivor.wait(timeout=500) == 0, outputs[0].read_text()
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    said = outputs[0].read_text()
    assert f"trial {lost}: resuming after" in said
    study = optuna.load_study(
        study_name="mlm-builtin-pt", storage=f"sqlite:///{tmp_path / 'out/study.db'}"
    )
    states = [trial.state.name for trial in study.trials]
    assert len(states) == 8
    assert set(states) <= {"COMPLETE", "PRUNED"}
    assert len({str(trial.params) for trial in study.trials}) == 8
    best = read_settings(str(tmp_path / "out/best.toml"), [])
    assert best == load_run(tmp_path / f"out/trial-{study.best_trial.number:04d}").settings


def going_on(output):
    """In the middle of a trial: an epoch of it is done."""
    lines = output.read_text().splitlines()
    return bool(lines) and "epoch 2/" in lines[-1]
