"""Keep freed memory with the process, where the C library supports that."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of <malloc.h>


def keep_freed_memory() -> None:
    """For training on a CPU, where every step allocates the same memory again.

    glibc returns large freed blocks to the system and gets them back page by page, each of them
    zeroed, which takes 5 % of a step. With other C libraries this does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc; Windows has no library None
        return
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    mallopt(_MMAP_THRESHOLD, 2**25)  # the largest value allowed
