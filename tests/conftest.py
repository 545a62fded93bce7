"""Every test starts from the same random state, and from memory that holds NaN, not luck."""

import os

import pytest
import torch

from helpers import messages

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported


@pytest.fixture(autouse=True)
def _same_start():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)  # fills freshly allocated memory with NaN
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def hf_run(tmp_path_factory):
    """From task and encoder to a run folder that the command wrote, each trained once."""
    from helpers.hf_runs import train

    made = {}

    def run(task, kind="pt"):
        if (task, kind) not in made:
            made[task, kind] = train(tmp_path_factory.mktemp("run"), task, kind)
        return made[task, kind]

    return run


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_terminal_summary(terminalreporter):
    """With PROBFORMER_NO_SKIPS set, a skipped test that is not for GPUs fails the run."""
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if "gpu" not in r.keywords]
    if os.environ.get("PROBFORMER_NO_SKIPS") and skipped:
        for report in skipped:
            terminalreporter.write_line(f"skipped, which counts as failed here: {report.nodeid}")
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):  # once, not in each process of pytest-xdist
        messages.keep_what_was_written()
