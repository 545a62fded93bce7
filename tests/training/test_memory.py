"""What a training step frees stays with the process, for the next one."""

import subprocess
import sys
from pathlib import Path

import pytest

STATUS = Path("/proc/self/statm")
STEP = """
import resource
import torch
from probformer.training.memory import keep_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6

{call}
before = resident()
tensors = [torch.ones(6_000_000) for _ in range(10)]  # 240 MB
del tensors
print(resident() - before)
"""


@pytest.mark.skipif(not STATUS.exists(), reason="needs Linux")
def test_freed_memory_is_kept():
    kept, given_back = (
        float(subprocess.check_output([sys.executable, "-c", STEP.format(call=call)]))
        for call in ("keep_freed_memory()", "")
    )
    assert kept > 200
    assert given_back < 40
