"""Ranks for tests: processes that are started once and run functions of a test file together."""

import multiprocessing
import os
import pathlib
import tempfile
import time
import traceback
import unittest
import unittest.mock
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch_ocl.distributed

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
torch.set_num_threads(1)
LIMIT = 300.0  # seconds; what hangs is to fail, what is slow on a busy machine is not


class Ranks:
    """``size`` processes, which have a process group if ``backend`` says which."""

    def __init__(
        self,
        size: int,
        backend: str | None = "ocl",
        env: dict[str, str] | None = None,
        copies: bool = False,
    ) -> None:
        self.folder = tempfile.TemporaryDirectory()
        store = str(pathlib.Path(self.folder.name) / "store")
        context = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for rank in range(size):
            here, there = context.Pipe()
            arguments = (there, rank, size, backend, store, copies)
            process = context.Process(target=_serve, args=arguments, daemon=True)
            with unittest.mock.patch.dict(os.environ, env or {}):  # some are read by the import
                process.start()
            self.pipes.append(here)
            self.processes.append(process)

    def begin(self, function: Callable[..., Any], *args: Any, ranks: Any = None) -> None:
        for rank in ranks if ranks is not None else range(len(self.pipes)):
            self.pipes[rank].send((function, args))

    def answer(self, rank: int, limit: float = LIMIT) -> tuple[bool, Any]:
        """Whether the function returned, and what; else its traceback."""
        if not self.pipes[rank].poll(limit):
            raise AssertionError(f"rank {rank} did not answer within {limit} s")
        return self.pipes[rank].recv()

    def run(self, function: Callable[..., Any], *args: Any, limit: float = LIMIT) -> list[Any]:
        """What the function returned on each rank; AssertionError if it raised on one."""
        self.begin(function, *args)
        answers = [self.answer(rank, limit) for rank in range(len(self.pipes))]
        for rank, (is_right, value) in enumerate(answers):
            if not is_right:
                raise AssertionError(f"rank {rank}: {value}")
        return [value for _, value in answers]

    def end(self, limit: float = 20) -> list[int | None]:
        """Exit codes of the processes, which have to end by themselves."""
        for pipe in self.pipes:
            try:
                pipe.send(None)
            except OSError:  # it was killed
                continue
        until = time.monotonic() + limit
        for process in self.processes:
            process.join(max(0.1, until - time.monotonic()))
        codes = [process.exitcode for process in self.processes]
        for process in self.processes:
            process.kill()
        self.folder.cleanup()
        return codes


def _serve(
    pipe: Any,
    rank: int,
    size: int,
    backend: str | None,
    store: str,
    copies: bool,
) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
    warnings.simplefilter("ignore", FutureWarning)  # names that torch 2.13 renamed
    torch_ocl.distributed._copies = copies
    torch.set_num_threads(1)
    if backend is not None:
        dist.init_process_group(
            backend or None, store=dist.FileStore(store, size), rank=rank, world_size=size
        )
    while (order := pipe.recv()) is not None:
        function, args = order
        try:
            pipe.send((True, function(*args)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
    if dist.is_initialized():
        dist.destroy_process_group()


class RanksCase(unittest.TestCase):
    """A test class whose ranks live as long as the class."""

    size = 2
    backend: str | None = "ocl"
    env: dict[str, str] = {}
    copies = False  # stage by copies, as for GPUs with memory of their own

    @classmethod
    def setUpClass(cls) -> None:
        cls.ranks = Ranks(cls.size, cls.backend, cls.env, cls.copies)
        cls.addClassCleanup(cls.ranks.end)

    def together(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self.ranks.run(function, *args)


def raises(kind: type[BaseException], text: str, function: Callable[[], Any]) -> str:
    """Asserts that the function raises; returns the error's text."""
    with unittest.TestCase().assertRaisesRegex(kind, text) as caught:
        function()
    return str(caught.exception)
