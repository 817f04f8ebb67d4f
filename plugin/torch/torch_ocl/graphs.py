"""Graphs: work that is recorded once and replayed, with little work of the host per operator.

>>> g = torch.ocl.OCLGraph()
>>> x = torch.zeros(8, 64, device="ocl")
>>> model(x)  # once before: builds programs, and lets libraries choose
>>> with torch.ocl.graph(g):
...     y = model(x)
>>> x.copy_(batch)
>>> g.replay()  # y has the new results

While a graph is recorded nothing is executed: tensors made meanwhile have no values until the first
replay. What would need values fails with an error and ends the recording: ``item()``, copies to the
CPU, operators whose results have shapes that depend on values, synchronisation, events. Copies from
the CPU fail, too, but for pinned memory with ``non_blocking=True``, which each replay reads again.

A replay uses the addresses of the recording. Tensors made in the recording are of the graph's
memory pool, which nothing else uses, and each replay writes them again: who keeps a result clones
it. Tensors from before the recording must still exist, and new values go into them in place. Random
numbers are new ones in each replay. Only work of one stream is recorded, and a device has at most
one recording at a time.
"""

import functools
import gc
from types import TracebackType

import torch

from torch_ocl import _C
from torch_ocl.memory import empty_cache
from torch_ocl.streams import Stream, StreamContext

Pool = tuple[int, int]


def is_current_stream_capturing() -> bool:
    """Whether this thread's current stream is recording a graph."""
    return _C.is_current_stream_capturing()


def graph_pool_handle() -> Pool:
    """A name for a memory pool, for graphs that shall share one: ``torch.ocl.graph(g, pool=...)``.

    Graphs may share memory if they are replayed in the order in which they were recorded, and never
    at the same time. The memory exists while one of them does.
    """
    return _C.new_pool_id()


def _check_optimizer(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """A count of steps on the host would stand still in replays."""
    if not _C.is_current_stream_capturing():
        return
    for group in optimizer.param_groups:
        if group.get("capturable") is False and not group.get("fused"):
            raise RuntimeError(
                f"{type(optimizer).__name__} counts its steps on the host, where replays of a "
                "graph do not count: make it with capturable=True"
            )


@functools.cache
def _watch_optimizers() -> None:
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    register_optimizer_step_pre_hook(_check_optimizer)


class OCLGraph:
    """Recorded work of one stream.

    ``torch.ocl.graph`` is the usual way to record; ``capture_begin`` and ``capture_end`` do it on
    the current stream, whose device is the graph's.
    """

    def __init__(self) -> None:
        self._graph = _C.Graph()

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Lets the recording draw from ``generator``, beside the device's default generator.

        To be called before the recording begins.
        """
        self._graph.register_generator_state(generator)

    def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "global") -> None:
        """Begins to record what is enqueued on the current stream, by any thread.

        Args:
            pool: the memory to use, by ``graph_pool_handle()`` or another graph's ``pool()``; by
                default a pool of its own.
            capture_error_mode: "global", "thread_local" or "relaxed", for which ocl has one
                behaviour: calls that cannot be recorded fail in every thread.
        """
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise ValueError(
                "capture_error_mode is 'global', 'thread_local' or 'relaxed', "
                f"not {capture_error_mode!r}"
            )
        _watch_optimizers()
        self._graph.capture_begin(pool or (0, 0))

    def capture_end(self) -> None:
        """Ends the recording. RuntimeError with the reason if a call has failed it."""
        self._graph.capture_end()

    def replay(self) -> None:
        """Enqueues the recorded work on the current stream of the graph's device."""
        self._graph.replay()

    def reset(self) -> None:
        """Forgets the recorded work, and leaves its pool; the object may record again."""
        self._graph.reset()

    def pool(self) -> Pool:
        """The name of the graph's memory pool, for another graph that shall share it."""
        return self._graph.pool()

    def info(self) -> dict[str, int]:
        """What a replay enqueues: "launches" of kernels, "transfers" (fills, copies, uploads), and
        "random_blocks", the counter blocks by which it advances the generators."""
        return self._graph.info()


class graph:  # noqa: N801  named as in torch.cuda
    """``with torch.ocl.graph(g):`` records the work inside into ``g``.

    Args:
        ocl_graph: the graph, without recorded work.
        pool: as for ``OCLGraph.capture_begin``.
        stream: records on it; by default on a stream of the current device for this purpose.

    Waits for the device first, and gives unoccupied memory back. If the body raises, the recording
    ends without a graph.
    """

    _streams: dict[int, Stream] = {}

    def __init__(
        self,
        ocl_graph: OCLGraph,
        pool: Pool | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self._graph = ocl_graph
        self._pool = pool
        self._mode = capture_error_mode
        device = _C.current_device()
        if stream is None:
            stream = self._streams.setdefault(device, Stream(device))
        self._stream = stream
        self._context = StreamContext(stream)

    def __enter__(self) -> None:
        _C.synchronize(self._stream.device_index)
        gc.collect()
        empty_cache()
        self._context.__enter__()
        try:
            self._graph.capture_begin(self._pool, self._mode)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._graph.capture_end()
            else:
                self._graph._graph.discard()
        finally:
            self._context.__exit__()
