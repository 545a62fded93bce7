"""Every command and every piece of code in the documents runs as it stands.

Each page has a folder of its own with what `make train` leaves behind, no GPU and no network.
"""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from helpers.blocks import ROOT, pages, to_run

PATIENCE = 600  # seconds for a page; quiet cores need a minute or less
NOWHERE = "http://127.0.0.1:9"  # who asks for another machine is refused

pytestmark = pytest.mark.long


def run(line: list[str], folder: Path, seconds: float) -> None:
    """What the line starts ends with it."""
    scripts = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",  # small models gain nothing from more
        "http_proxy": NOWHERE,
        "https_proxy": NOWHERE,
        "no_proxy": "127.0.0.1,localhost",
    }
    output = folder.with_name(f"{folder.name}.log")
    with output.open("w") as file:
        process = subprocess.Popen(
            line,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = f"none after {seconds} seconds"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert status == 0, f"exit status {status}; the end of what was printed:\n" + "\n".join(
        output.read_text(encoding="utf-8", errors="replace").splitlines()[-60:]
    )


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quickstart")
    run(["probformer", "quickstart"], folder, 1200)
    return folder / "runs" / "quickstart"


@pytest.mark.parametrize("page", [page for page in pages() if to_run(page)], ids=str)
def test_blocks(page, quickstart, tmp_path):
    folder = tmp_path / "page"
    shutil.copytree(quickstart, folder / "runs" / "quickstart")
    run(["python", str(ROOT / "tests" / "helpers" / "blocks.py"), str(page)], folder, PATIENCE)
