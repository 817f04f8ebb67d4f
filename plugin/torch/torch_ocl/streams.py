"""Streams (in-order queues of a device) and events (points in a stream)."""

import torch
from typing_extensions import Self

from torch_ocl import _C
from torch_ocl.device import DeviceLike, _index

_DEVICE_TYPE = int(torch._C._autograd.DeviceType.PrivateUse1)


class Stream(torch.Stream):
    """An in-order queue of a device, taken round-robin from a pool of 32 per priority.

    Args:
        device: its device; None for the current one.
        priority: below 0 asks for a queue of high priority.
    """

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **identity: int) -> Self:
        if identity:
            return super().__new__(cls, priority=priority, **identity)
        return super().__new__(cls, torch.device("ocl", _index(device)), priority=priority)

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Records an event, a new one by default, in this stream; returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __repr__(self) -> str:
        return f"torch.ocl.Stream(device=ocl:{self.device_index}, stream_id={self.stream_id})"


class Event(torch.Event):
    """A point in a stream, for waiting and for measuring time.

    Args:
        enable_timing: keep the device's timestamps, for ``elapsed_time``.
    """

    _timing: bool

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Self:
        if interprocess:
            raise NotImplementedError("events of ocl cannot be shared between processes")
        self = super().__new__(
            cls, torch.device("ocl"), enable_timing=enable_timing, blocking=blocking
        )
        self._timing = enable_timing
        return self

    def query(self) -> bool:
        """Whether the device has reached the recorded point; False if none was recorded."""
        return self.event_id != 0 and super().query()

    def elapsed_time(self, end_event: torch.Event) -> float:
        """Milliseconds from this event to ``end_event``, by the device's clock. Waits for both.

        RuntimeError if one was created without ``enable_timing``, or was not recorded.
        """
        if not isinstance(end_event, Event):
            return super().elapsed_time(end_event)
        if not (self._timing and end_event._timing):
            raise RuntimeError("Events were not created with argument 'enable_timing=True'")
        if self.event_id == 0 or end_event.event_id == 0:
            raise RuntimeError("Both events must be recorded before calculating elapsed time")
        return _C.elapsed_ms(self.event_id, end_event.event_id)

    def __repr__(self) -> str:
        return f"torch.ocl.Event(recorded={self.event_id != 0})"


def _stream(index: int, stream_id: int) -> Stream:
    return Stream(stream_id=stream_id, device_index=index, device_type=_DEVICE_TYPE)


def current_stream(device: DeviceLike = None) -> Stream:
    """This thread's current stream of a device."""
    index = _index(device)
    return _stream(index, _C.current_stream_id(index))


def default_stream(device: DeviceLike = None) -> Stream:
    """The stream to which a device's work goes unless another one is chosen."""
    return _stream(_index(device), 0)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream and its device this thread's current ones; None does nothing."""
    if stream is None:
        return
    _C.set_stream(stream.device_index, stream.stream_id)
    _C.set_device(stream.device_index)


class StreamContext:
    """Context manager of ``torch.ocl.stream``: work inside goes to the stream.

    On leaving, the stream that was current on that device, and the current device, are restored.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._previous: tuple[int, Stream] | None = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self._previous = (_C.current_device(), current_stream(self.stream.device_index))
            set_stream(self.stream)

    def __exit__(self, *exception: object) -> None:
        if self._previous is not None:
            device, stream = self._previous
            set_stream(stream)
            _C.set_device(device)


def stream(stream: torch.Stream | None) -> StreamContext:
    """``with torch.ocl.stream(s):`` sends the work inside to ``s``; None changes nothing."""
    return StreamContext(stream)
