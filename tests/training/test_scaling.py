"""A run on several processes and nodes, some of which die: it ends as if nothing had happened.

Without dropout, and with the same number of processes, that is bit for bit.
"""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from helpers.launched import ONE_NODE, TORCHRUN, launched, steps_saved, train
from helpers.messages import refused
from helpers.runs import assert_same_runs
from probformer.cli.errors import _report_errors
from probformer.errors import InputError
from probformer.runs.run_folder import read_metrics
from probformer.training import processes
from probformer.training.locks import run_lock

UPDATES = 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run on two processes that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    with launched([*ONE_NODE, *train(folder / "run")], folder / "output") as run:
        assert run.ended() == 0, run.text
    assert "holds no run to resume: starting anew" in run.text
    assert run.text.count("test: perplexity") == 1, "one process speaks"
    return folder / "run"


def assert_ended_like(whole: Path, folder: Path, text: str) -> None:
    assert_same_runs(whole, folder)
    assert steps_saved(folder) == UPDATES
    assert read_metrics(folder)[-2]["step"] == UPDATES
    assert text.count("test: perplexity") == 1
    assert "terminate called" not in text


def test_a_killed_process_is_replaced_and_the_run_ends_the_same(whole, tmp_path):
    line = [*ONE_NODE, "--max-restarts", "3", *train(tmp_path / "run")]
    with launched(line, tmp_path / "output") as run:
        run.wait_for_step(tmp_path / "run", 12)
        run.worker(rank=1).kill()
        assert run.ended() == 0, run.text
    assert run.text.count("resuming after") == 1
    assert "Traceback" not in run.text
    assert_ended_like(whole, tmp_path / "run", run.text)


DIES = """
import os, signal, sys
from probformer import cli
from probformer.training import checkpoints, updates

RESTART, RANK = (int(os.environ[name]) for name in ("TORCHELASTIC_RESTART_COUNT", "RANK"))
apply, seal = updates.Updates.apply, checkpoints.seal


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def apply_or_die(self, rate):
    self.made = getattr(self, "made", 0) + 1
    if (RESTART, RANK, self.made) in [(0, 0, 15), (1, 1, 8), (2, 0, 3)]:
        die()
    apply(self, rate)


def seal_or_die(part, target):
    if RESTART == 3 and target.name.endswith("epoch-000003"):
        weights = part / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:1000])
        die()
    seal(part, target)


updates.Updates.apply, checkpoints.seal = apply_or_die, seal_or_die
if RANK == 1:  # to whom the folder is shown so late that it sees nothing of it
    sys.argv[sys.argv.index("--out") + 1] += "-unseen"
cli.main()
"""


@pytest.mark.long
def test_killed_again_and_again_the_first_process_too_even_while_it_saves(whole, tmp_path):
    script = tmp_path / "dies.py"
    script.write_text(DIES)
    line = [*ONE_NODE, "--max-restarts", "4", str(script), *train(tmp_path / "run")[2:]]
    with launched(line, tmp_path / "output") as run:
        assert run.ended() == 0, run.text
    assert run.text.count("resuming after") == 4
    assert not (tmp_path / "run-unseen").exists()
    assert_ended_like(whole, tmp_path / "run", run.text)


@pytest.mark.long
def test_without_restarts_left_it_fails_and_says_so_and_can_go_on(whole, tmp_path):
    patient = ["--monitor-interval", "5"]  # so that the other one notices it first
    line = [*ONE_NODE, *patient, *train(tmp_path / "run")]
    with launched(line, tmp_path / "output") as run:
        run.wait_for_step(tmp_path / "run", 12)
        run.worker(rank=0).kill()
        assert run.ended() == 1
    said = [text for text in run.text.splitlines() if text.startswith("error: ")]
    assert len(said) == 1
    assert said[0].startswith("error: another process of the run has ended or does not answer: ")
    assert "Signal 9 (SIGKILL) received" in run.text
    with launched(line, tmp_path / "again") as run:
        assert run.ended() == 0, run.text
    assert_ended_like(whole, tmp_path / "run", run.text)


@pytest.mark.long
def test_what_a_process_said_at_its_end_is_what_torchrun_ends_with(whole, tmp_path):
    line = [part for part in [*ONE_NODE, *train(whole)] if part != "--resume"]
    with launched(line, tmp_path / "output") as run:
        assert run.ended() == 1
    cause = run.text.partition("Root Cause")[2]
    assert "holds a run already; --resume continues it" in cause


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("localhost", 0))
        return place.getsockname()[1]


@pytest.mark.long
def test_a_node_that_is_lost_may_come_back(whole, tmp_path):
    """Two launchers on one machine; of the second, launcher and process are killed."""
    place = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{free_port()}"]
    place += ["--rdzv-id", "a-run", "--nnodes", "2", "--nproc-per-node", "1"]
    own_store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}

    def line(host: bool) -> list[str]:
        """Both are the machine of the endpoint: only one may keep the list of all."""
        keeps = ["--rdzv-conf", f"is_host={int(host)}"]
        return [*TORCHRUN, *place, *keeps, "--max-restarts", "3", *train(tmp_path / "run")]

    with launched(line(True), tmp_path / "first", **own_store) as first:
        with launched(line(False), tmp_path / "second", **own_store) as second:
            first.wait_for_step(tmp_path / "run", 12)
            second.kill()
        with launched(line(False), tmp_path / "third", **own_store) as third:
            assert third.ended() == 0, third.text
            assert first.ended() == 0, first.text
    assert_ended_like(whole, tmp_path / "run", first.text + second.text + third.text)


@pytest.mark.long
def test_a_run_goes_on_with_more_or_fewer_processes(whole, tmp_path):
    """Stopped by SIGTERM on one process and then on two; but for rounding the end is the same."""
    alone = [sys.executable, *train(tmp_path / "run")]
    together = [*ONE_NODE, "--max-restarts", "3", *train(tmp_path / "run")]
    for step, line, status in ((8, alone, 128 + signal.SIGTERM), (20, together, 1)):
        with launched(line, tmp_path / "output") as run:
            run.wait_for_step(tmp_path / "run", step)
            run.process.terminate()
            assert run.ended() == status, run.text
        assert "stopped; the same command with --resume continues the run" in run.text
        assert steps_saved(tmp_path / "run") < UPDATES
    with launched(alone, tmp_path / "output") as run:
        assert run.ended() == 0, run.text
    assert steps_saved(tmp_path / "run") == UPDATES
    for a, b in zip(read_metrics(whole)[:-1], read_metrics(tmp_path / "run")[:-1], strict=True):
        assert a["step"] == b["step"]
        assert a["train_loss"] == pytest.approx(b["train_loss"], abs=1e-4)
        assert a["dev"]["loss"] == pytest.approx(b["dev"]["loss"], abs=1e-4)


IMPATIENT = """
import datetime
from probformer import cli
from probformer.training import processes

processes.TIMEOUT = datetime.timedelta(seconds=20)
cli.main()
"""


@pytest.mark.long
def test_a_process_that_hangs_is_given_up(whole, tmp_path):
    """SIGSTOP; torchrun then waits half a minute for it to obey SIGTERM."""
    script = tmp_path / "impatient.py"
    script.write_text(IMPATIENT)
    line = [*ONE_NODE, "--max-restarts", "3", str(script), *train(tmp_path / "run")[2:]]
    with launched(line, tmp_path / "output") as run:
        run.wait_for_step(tmp_path / "run", 12)
        run.worker(rank=1).suspend()
        assert run.ended() == 0, run.text
    assert "has ended or does not answer: " in run.text
    assert_ended_like(whole, tmp_path / "run", run.text)


@pytest.mark.long
def test_accelerate_launches_the_same_run(whole, tmp_path):
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
    launcher += ["--num_processes", "2", "--max_restarts", "3", "--main_process_port", "0"]
    with launched([*launcher, *train(tmp_path / "run")], tmp_path / "output") as run:
        run.wait_for_step(tmp_path / "run", 12)
        run.worker(rank=1).kill()
        assert run.ended() == 0, run.text
    assert run.text.count("resuming after") == 1
    assert_ended_like(whole, tmp_path / "run", run.text)


@pytest.mark.long
def test_two_processes_evaluate_as_one(whole, tmp_path):
    line = ["-m", "probformer", "evaluate", str(whole)]
    alone = subprocess.run([sys.executable, *line], capture_output=True, text=True, check=True)
    with launched([*ONE_NODE, *line], tmp_path / "output") as run:
        assert run.ended() == 0, run.text
    assert run.text == alone.stdout


def test_restarts_on_nodes_that_would_read_old_addresses_are_refused(monkeypatch):
    for name, value in (
        ("RANK", "0"),
        ("MASTER_ADDR", "localhost"),
        ("TORCHELASTIC_USE_AGENT_STORE", "True"),
        ("TORCHELASTIC_MAX_RESTARTS", "3"),
        ("GROUP_WORLD_SIZE", "2"),
    ):
        monkeypatch.setenv(name, value)
    with refused("--max-restarts", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"):
        processes.join_processes()


def test_what_gloo_says_becomes_one_sentence():
    long = (
        "[/a/pair.cc:537] Read error [::1]:21: Connection reset by peer. This is\ntypically GLHF!"
    )
    with (
        refused("Read error [::1]:21: Connection reset by peer"),
        processes._lost_peer_as_one_error(),
    ):
        raise RuntimeError(long)
    with pytest.raises(torch.OutOfMemoryError), processes._lost_peer_as_one_error():
        raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize("stopped", [False, True])
def test_torchrun_finds_a_whole_error_file_or_none(monkeypatch, tmp_path, stopped):
    """It sends SIGTERM to who is just writing one because another process has died."""
    error, write = tmp_path / "error.json", Path.write_text

    def write_and_be_stopped(path, text):
        write(path, text[:5])
        raise SystemExit(128 + signal.SIGTERM)

    def command():
        raise InputError("another has ended")

    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(error))
    if stopped:
        monkeypatch.setattr(Path, "write_text", write_and_be_stopped)
    with pytest.raises(SystemExit):
        _report_errors(command)
    if stopped:
        assert not error.exists()
    else:
        assert json.loads(error.read_text())["message"] == "another has ended"


def test_the_end_of_another_process_is_waited_for(tmp_path):
    line = (
        "import fcntl, sys, time; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX)"
    )
    line += "; print('locked', flush=True); time.sleep(1)"
    (tmp_path / "state").mkdir()
    lock = tmp_path / "state/lock"
    with subprocess.Popen(
        [sys.executable, "-c", line, str(lock)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with refused(str(tmp_path)), run_lock(tmp_path):
            pass
        with run_lock(tmp_path, patience=60):
            assert other.wait(10) == 0  # its lock is gone a moment before it is
