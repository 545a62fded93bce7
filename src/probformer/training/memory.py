"""Freed memory stays with the process, where the C library lets one say so."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of <malloc.h>


def keep_freed_memory() -> None:
    """For a process that trains on a CPU, where every step asks for the same memory again.

    glibc gives large blocks back to the system as they are freed, and gets them again page by
    page, each of them zeroed: a twentieth of a step. Elsewhere nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc; Windows has no library None
        return
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    mallopt(_MMAP_THRESHOLD, 2**25)  # the most that it takes: larger blocks are given back
