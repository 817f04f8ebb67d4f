"""How tests run what they measure or watch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch


def in_threads(work: Callable[[Any], None], arguments: Iterable[Any]) -> None:
    """Calls work(argument) for all of them at once, and waits."""
    threads = [threading.Thread(target=work, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def peak_of(run: Callable[[], object]) -> int:
    """The bytes on ocl that a call needs for a while, after a first one that may keep some."""
    run()
    torch.ocl.synchronize()
    torch.ocl.reset_peak_memory_stats()
    before = torch.ocl.memory_allocated()
    run()
    return torch.ocl.max_memory_allocated() - before
