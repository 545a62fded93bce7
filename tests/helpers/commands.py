"""The command line in a separate process."""

import subprocess
import sys


def probformer(*arguments, cwd, check=0, text=None):
    command = [sys.executable, "-m", "probformer.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, input=text)
    assert done.returncode == check, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done
