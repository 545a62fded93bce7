"""Runs in processes of their own: killed at any moment, and shared by two."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.runs import assert_same_runs
from probformer.runs.run_folder import read_metrics

pytestmark = pytest.mark.long
SMALL = [
    "--set", "data.size=300", "--set", "training.epochs=14", "--set", "training.chunk=8",
    "--set", "training.checkpoint_minutes=0.003",
]  # fmt: skip


def command(out: Path, *more: str) -> list[str]:
    return ["-m", "probformer.cli", "train", "mlm-builtin-pt", *SMALL, "--out", str(out), *more]


def test_killed_at_random_moments_and_resumed_a_run_ends_bit_for_bit_the_same(tmp_path):
    """Moments are parts of the time of a whole run, of which the start takes about a fifth."""
    begun = time.monotonic()
    subprocess.run([sys.executable, *command(tmp_path / "whole")], check=True)
    whole = time.monotonic() - begun
    moments, folder, kills = random.Random(0), tmp_path / "killed", 0
    with (tmp_path / "output").open("w") as output:
        while True:
            line = [sys.executable, *command(folder, "--resume")]
            process = subprocess.Popen(line, stdout=output)
            try:
                assert process.wait(timeout=whole * moments.uniform(0.2, 0.45)) == 0
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
                assert kills < 60, "the run does not get on"
    assert (tmp_path / "output").read_text().count("resuming after") >= 2
    assert_same_runs(tmp_path / "whole", folder)


def test_two_processes_follow_one(tmp_path):
    """The same global batch and chunks, dropout 0: losses within 1e-5."""
    quiet = ["--set", "encoder.dropout=0.0", "--set", "training.epochs=2"]
    subprocess.run([sys.executable, *command(tmp_path / "one", *quiet)], check=True)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    two = [*launcher, "--nproc-per-node", "2", *command(tmp_path / "two", *quiet)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        two, check=True, timeout=300, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout.count("test: perplexity") == 1, "one process speaks"
    first, second = (read_metrics(tmp_path / name) for name in ("one", "two"))
    for a, b in zip(first[:2], second[:2], strict=True):
        assert a["train_loss"] == pytest.approx(b["train_loss"], abs=1e-5)
        assert a["dev"]["loss"] == pytest.approx(b["dev"]["loss"], abs=1e-5)
