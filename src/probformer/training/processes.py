"""The processes that share a run.

The first of them alone reads and writes the run folder, and tells the others what it found there:
on a cluster they may see a shared folder as it was a minute ago.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object, parse_flag_from_env
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from probformer.errors import InputError, is_out_of_memory, require

TIMEOUT = timedelta(minutes=10)
"""Who has waited so long for another process gives up."""

Found = TypeVar("Found")


def join_processes() -> Accelerator:
    """The device, and the other processes if torchrun or accelerate started several."""
    if not {"RANK", "MASTER_ADDR"} <= os.environ.keys():
        return Accelerator()
    on_cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.cuda.is_available()
    if not distributed.is_initialized():
        with _one_sentence():
            _meet("gloo" if on_cpu else "nccl")
    return Accelerator(cpu=on_cpu)


def _meet(backend: str) -> None:
    """As Accelerate would, but blind to what the processes before a restart left behind.

    torchrun keeps one store of addresses over restarts; new processes that read those of the dead
    wait for them in vain. Restarts are counted by each node for itself.
    """
    kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    restarts = os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0") != "0"
    nodes = os.environ.get("GROUP_WORLD_SIZE", "1") != "1"
    remedy = "--rdzv-backend c10d and the variable TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
    hangs = kept and restarts and nodes
    require(not hangs, f"torchrun with --max-restarts on several nodes needs {remedy}")
    store, rank, count = next(rendezvous("env://", timeout=TIMEOUT))
    if kept:
        store = PrefixStore("after restart " + os.environ["TORCHELASTIC_RESTART_COUNT"], store)
    distributed.init_process_group(
        backend, store=store, rank=rank, world_size=count, timeout=TIMEOUT
    )


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Who waits for a process that died is no cause of anything, and ends with one sentence."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        reason = re.sub(r"^\[.*?\] ", "", str(error)).split(". ")[0].partition("\n")[0]
        lost = f"another process of the run has ended or does not answer: {reason}"
        raise InputError(lost) from None


def sum_over_processes(accelerator: Accelerator, values: Tensor) -> Tensor:
    if accelerator.num_processes == 1:
        return values
    with _one_sentence():
        summed = accelerator.reduce(values.to(accelerator.device), "sum")
        return cast(Tensor, summed).to(values.device)


def from_all_processes(value: Any) -> list[Any]:
    """The values of all processes, in their order."""
    with _one_sentence():
        return gather_object([value])


def ask_first(accelerator: Accelerator, look: Callable[[], Found]) -> Found:
    """What the first process finds, known to all."""
    found = [look() if accelerator.is_main_process else None]
    if accelerator.num_processes > 1:
        with _one_sentence():
            broadcast_object_list(found)
    return cast(Found, found[0])
