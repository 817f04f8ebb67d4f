"""Sends tensors on ocl to other processes by torch.multiprocessing, without a copy.

As with CUDA's: the receiver sees the sender's memory, and both see what either writes. A descriptor
of the memory goes with the storage, so it outlives the sender. The sender keeps a sent storage
until each receiver has freed it or ended: a pipe goes along, whose other end the receiver's storage
has, and a thread of the sender waits for its end. Both sides wait on the host for the device: the
sender before it sends, a receiver before it frees.
"""

import functools
import multiprocessing.reduction
import os
import selectors
import threading
import uuid
from multiprocessing import resource_sharer
from typing import Any

import torch

from torch_ocl import _C

SHARING = (
    "ocl: a tensor on ocl cannot be sent to another process ({}). Send tensor.cpu(), and move it "
    "to the device there with .to('ocl')"
)


class _Sent:
    """Storages that other processes use, each until its pipes have ended."""

    def __init__(self) -> None:
        self.process = uuid.uuid4().hex
        self.storages: dict[str, list[torch.UntypedStorage]] = {}
        self._lock = threading.Lock()
        self._selector = selectors.EpollSelector()
        self._thread: threading.Thread | None = None

    def keep(self, key: str, storage: torch.UntypedStorage) -> int:
        """Keeps the storage until the returned end of a pipe and its copies are closed."""
        watched, held = os.pipe()
        with self._lock:
            self.storages.setdefault(key, []).append(storage)
            self._selector.register(watched, selectors.EVENT_READ, key)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, daemon=True, name="ocl sent")
                self._thread.start()
        return held

    def find(self, key: str) -> torch.UntypedStorage | None:
        with self._lock:
            kept = self.storages.get(key)
            return kept[0] if kept else None

    def _watch(self) -> None:
        while True:
            for ended, _ in self._selector.select():  # sees what is registered meanwhile
                with self._lock:
                    self._selector.unregister(ended.fd)
                    kept = self.storages[ended.data]
                    storage = kept.pop()
                    if not kept:
                        del self.storages[ended.data]
                os.close(ended.fd)
                del storage, kept  # freed without the lock


_sent: _Sent | None = None
_origins: dict[int, str] = {}  # by address
_making = threading.Lock()


def _of_this_process() -> _Sent:
    global _sent
    with _making:
        if _sent is None:
            _sent = _Sent()
        return _sent


def install() -> None:
    """Replaces the function by which torch.multiprocessing sends storages to other processes."""
    pickler = multiprocessing.reduction.ForkingPickler
    known = pickler._extra_reducers  # type: ignore[attr-defined]
    reduce = known.get(torch.UntypedStorage)
    if reduce is None:  # a platform without shared memory
        return

    @functools.wraps(reduce)
    def reduce_storage(storage: torch.UntypedStorage) -> Any:
        return _reduce(storage) if storage.device.type == "ocl" else reduce(storage)

    pickler.register(torch.UntypedStorage, reduce_storage)


def _reduce(storage: torch.UntypedStorage) -> tuple[Any, ...]:
    index = storage.device.index
    if storage.nbytes() == 0:
        return _rebuild_empty, (index,)
    try:
        place = _C.shared_place(storage.data_ptr())
    except NotImplementedError as error:
        raise NotImplementedError(SHARING.format(error)) from None
    torch.ocl.synchronize(index)
    sent = _of_this_process()
    offset = storage.data_ptr() - place["segment"]
    own = f"{sent.process}:{place['segment']}:{offset}:{storage.nbytes()}"
    key = _origin_of(storage) or own
    memory = _C.export_memory(storage.data_ptr())
    # Whoever receives it from here keeps it at its owner, which may outlive this process.
    lifetime = sent.keep(key, storage) if key == own else _C.lifetime_of(storage)
    # Not multiprocessing.reduction's: a process that is being started would inherit the pipe's end
    # from this one, which could never close it.
    try:
        parts = resource_sharer.DupFd(memory), resource_sharer.DupFd(lifetime)
    finally:
        os.close(memory)
        os.close(lifetime)
    return _rebuild, (key, index, *parts, place["bytes"], offset, storage.nbytes())


def _remember_origin(key: str, storage: torch.UntypedStorage) -> None:
    """So that whoever receives it by way of this process knows it again, as its owner does."""
    cache = torch.multiprocessing.reductions.shared_cache
    cache[key] = torch.multiprocessing.reductions.StorageWeakRef(storage)
    for address, known in list(_origins.items()):
        reference = cache.get(known)
        if reference is None or reference.expired():
            del _origins[address]
    _origins[storage.data_ptr()] = key


def _origin_of(storage: torch.UntypedStorage) -> str | None:
    """The key by which this storage was received; None if it was not."""
    key = _origins.get(storage.data_ptr())
    if key is None:
        return None
    received = torch.multiprocessing.reductions.storage_from_cache(torch.UntypedStorage, key)
    is_it = received is not None and received._cdata == storage._cdata
    return key if is_it else None  # else memory that was freed is somebody else's now


def _rebuild_empty(index: int) -> torch.UntypedStorage:
    return torch.UntypedStorage(0, device=torch.device("ocl", index))


def _rebuild(
    key: str, index: int, memory: Any, lifetime: Any, whole: int, offset: int, size: int
) -> torch.UntypedStorage:
    """The storage in the process that receives it, which may be the one that sent it."""
    reductions = torch.multiprocessing.reductions
    descriptor, pipe = memory.detach(), lifetime.detach()
    try:
        process, segment, _ = key.split(":", 2)
        own = _sent.find(key) if _sent is not None and process == _sent.process else None
        if own is not None:
            return own
        storage = reductions.storage_from_cache(torch.UntypedStorage, key)
        if storage is None:
            name = f"{process}:{segment}"
            storage = _C.import_storage(index, name, descriptor, whole, offset, size, pipe)
            _remember_origin(key, storage)
        return storage
    finally:
        os.close(descriptor)
        os.close(pipe)
