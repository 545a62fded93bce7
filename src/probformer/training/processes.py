"""The processes that share a run.

Only the main process reads and writes the run folder, and sends the others what it has read: on a
cluster, other nodes may see an outdated state of a shared folder.
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
"""How long a process waits for another one before it gives up."""

Found = TypeVar("Found")


def join_processes() -> Accelerator:
    """The device, and the other processes if torchrun or accelerate has started several."""
    if not {"RANK", "MASTER_ADDR"} <= os.environ.keys():
        return Accelerator()
    on_cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.cuda.is_available()
    if not distributed.is_initialized():
        with _lost_peer_as_one_error():
            _start_process_group("gloo" if on_cpu else "nccl")
    return Accelerator(cpu=on_cpu)


def _start_process_group(backend: str) -> None:
    """As Accelerate does, but without the addresses of processes before a restart.

    torchrun keeps one store of addresses over restarts. New processes that read the addresses of
    ended ones would wait until the timeout, so addresses get a prefix with the number of restarts.
    Each node counts its own restarts, so with several nodes they cannot share the store.
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
def _lost_peer_as_one_error() -> Iterator[None]:
    """A lost peer is reported as one sentence, not as a traceback: it is not the root cause."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        reason = re.sub(r"^\[.*?\] ", "", str(error)).split(". ")[0].partition("\n")[0]
        lost = f"another process of the run has ended or does not answer: {reason}"
        raise InputError(lost) from None


def sum_over_processes(accelerator: Accelerator, values: Tensor) -> Tensor:
    """The sum of a tensor over all processes, on the device that it came from."""
    if accelerator.num_processes == 1:
        return values
    with _lost_peer_as_one_error():
        summed = accelerator.reduce(values.to(accelerator.device), "sum")
        return cast(Tensor, summed).to(values.device)


def from_all_processes(value: Any) -> list[Any]:
    """The values of all processes, in the order of their ranks."""
    with _lost_peer_as_one_error():
        return gather_object([value])


def on_main_process(accelerator: Accelerator, find: Callable[[], Found]) -> Found:
    """Call a function on the main process only; all processes get its result."""
    found = [find() if accelerator.is_main_process else None]
    if accelerator.num_processes > 1:
        with _lost_peer_as_one_error():
            broadcast_object_list(found)
    return cast(Found, found[0])
