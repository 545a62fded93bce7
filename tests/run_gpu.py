"""All tests of kernels and GPUs, found by their markers, in parallel pieces: `make test-gpu`.

Needs pytest alone: files without these markers are not imported, so what they need may be missing.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

TESTS = Path(__file__).parent
MARKERS = ("gpu", "kernels")
PYTEST = [
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "-m",
    " or ".join(MARKERS),
]


ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}
"""The oracle computes on CPUs: threads of several processes would wait for each other."""


def files_with_markers() -> list[str]:
    pattern = re.compile(rf"\bmark\.(?:{'|'.join(MARKERS)})\b")
    found = [p for p in TESTS.rglob("test_*.py") if pattern.search(p.read_text(encoding="utf-8"))]
    return sorted(map(str, found))


def collected() -> list[str]:
    """The names of all tests that have one of the markers."""
    command = [*PYTEST, "--collect-only", *files_with_markers()]
    listing = subprocess.run(
        command, cwd=TESTS.parent, env=ONE_THREAD, capture_output=True, text=True
    )
    if listing.returncode:
        sys.exit(listing.stdout + listing.stderr)
    return [line for line in listing.stdout.splitlines() if "::" in line]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=min(14, os.cpu_count() or 1))
    processes = parser.parse_args().processes
    names = collected()
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for piece in range(min(processes, len(names))):
            report, log = Path(folder, f"{piece}.xml"), Path(folder, f"{piece}.log")
            # Names in a file: a command line has room for a few hundred only.
            listed = Path(folder, f"{piece}.txt")
            listed.write_text("\n".join(names[piece::processes]), encoding="utf-8")
            command = [*PYTEST, f"--junitxml={report}", f"@{listed}"]
            with log.open("w", encoding="utf-8") as file:
                where = {"cwd": TESTS.parent, "env": ONE_THREAD, "stdout": file, "stderr": file}
                process = subprocess.Popen(command, **where)
            running.append((process, report, log))
        for piece, (process, report, log) in enumerate(running):
            failed = process.wait()
            print(f"piece {piece} of {len(running)}: {log.read_text('utf-8').splitlines()[-1]}")
            if failed:
                print(log.read_text(encoding="utf-8"), flush=True)
            if not report.is_file():  # it crashed: what it had run is not known
                counts["errors"] += 1
                continue
            for suite in ElementTree.parse(report).getroot().iter("testsuite"):
                for key in counts:
                    counts[key] += int(suite.get(key, 0))
    bad = counts["failures"] + counts["errors"]
    passed = counts["tests"] - bad - counts["skipped"]
    print(f"{passed} passed, {bad} failed, {counts['skipped']} skipped of {len(names)} tests")
    return 1 if bad or passed + counts["skipped"] != len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
