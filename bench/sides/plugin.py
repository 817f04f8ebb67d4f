"""The plugin through its C ABI, and what other libraries and the driver do on its queue and
buffers."""

from __future__ import annotations

import ctypes as C
import os
import platform
from typing import Any

import data
import limits
import numpy as np
from measure import Timer, sets_for
from rows import Row, Tensor, bound
from tensor_backend import DeviceTensor, Plugin
from tensor_backend import Dtype as DtypeArgument


class PluginSide:
    """Runs operator rows; `options`: plugin, device, setting (NAME=VALUE...)."""

    def __init__(self, options: Any) -> None:
        self.plugin = Plugin(options.plugin, options.device)
        for setting in options.setting:
            self.plugin.set(*setting.split("=", 1))
        self.cache = limits.cache_bytes(self.plugin)
        self.owned: list[DeviceTensor] = []
        self.timer: Timer | None = None
        self.before_row: dict[str, str] = {}  # settings that a row has changed

    def describe(self) -> dict[str, Any]:
        p = self.plugin.properties()
        return {
            "name": "ocltensor",
            "device": p["name"],
            "gpu": p["kind"] != 1,
            "vendor": p["vendor"],
            "versions": {
                "driver": f"{p['platform']}, {p['driver_version']}",
                "language": p["language_version"],
                "python": platform.python_version(),
                "numpy": np.__version__,
            },
            "settings": {  # but for folders, which say nothing elsewhere
                k: v
                for k, v in os.environ.items()
                if k.startswith(("OCLTENSOR_", "POCL_")) and not k.endswith(("_DIR", "_PATH"))
            },
            "cache_bytes": self.cache,
        }

    def limits(self) -> dict[str, float]:
        return limits.measure(self.plugin, self.cache)

    def supports(self, row: Row) -> bool:
        return row.only == ""

    def prepare(self, row: Row) -> dict[str, Any]:
        for name, value in row.settings.items():
            self.before_row[name] = self.plugin.get(name)
            self.plugin.set(name, value)
        tensors = row.inputs()
        arrays = [data.draw(row.name, i, t) for i, t in enumerate(tensors)]
        memory = sum(t.bytes for t in [*tensors, *row.outs])
        sets = [self._one(row, tensors, arrays) for _ in range(sets_for(memory, self.cache))]
        self.plugin.reset_peak()
        before = self.plugin.peak_bytes()
        sets[0][0]()
        self.plugin.synchronize()
        extra = self.plugin.peak_bytes() - before
        digests = [self._digest(sets[0][1][i], row.outs[i]) for i in row.check]
        self.timer = Timer([run for run, _ in sets], self.plugin.synchronize)
        once = self.timer.warm()
        return {
            "once": once,
            "digests": digests,
            "memory": memory,
            "scratch": extra,
            "sets": len(sets),
        }

    def sample(self, seconds: float) -> float:
        return self.timer.sample(seconds)

    def release(self) -> None:
        self.plugin.synchronize()
        self.plugin.free(*self.owned)
        self.owned.clear()
        self.timer = None
        self.plugin.empty_cache()
        for name, value in self.before_row.items():
            self.plugin.set(name, value)
        self.before_row.clear()

    def trace(self, path: str, rows: list[Row]) -> None:
        """Three more runs of every row, as a trace for https://ui.perfetto.dev."""
        self.plugin.start_trace(path)
        for row in rows:
            tensors = row.inputs()
            run, _ = self._one(
                row, tensors, [data.draw(row.name, i, t) for i, t in enumerate(tensors)]
            )
            self.plugin.push_range(row.name)
            for _ in range(3):
                run()
            self.plugin.synchronize()
            self.plugin.pop_range()
            self.release()
        self.plugin.stop_trace()

    def _one(self, row: Row, tensors: list[Tensor], arrays: list[np.ndarray]) -> Any:
        """(function that enqueues the row, results) on memory of its own."""
        known = {id(t): self._upload(t, array) for t, array in zip(tensors, arrays, strict=True)}
        earlier: list[DeviceTensor] = []
        if row.before:
            run, earlier = self._bind(row.before, known, [])
            run()
        return self._bind(row, known, earlier)

    def _bind(self, row: Row, known: dict[int, DeviceTensor], earlier: list[DeviceTensor]) -> Any:
        outs = self._outputs(row)
        args = bound(row.args, known, earlier, DtypeArgument)
        return self.plugin.prepare(row.op, args, outs), outs

    def _outputs(self, row: Row) -> list[DeviceTensor]:
        outs = [self._empty(t) for t in row.outs]
        for out in outs:
            self.plugin.poison(out)
        return outs

    def _empty(self, t: Tensor) -> DeviceTensor:
        shape = (t.shape[0], *t.shape[2:], t.shape[1]) if t.channels_last else t.shape
        there = self._keep(self.plugin.empty(shape, t.dtype))
        return self._channels_second(there) if t.channels_last else there

    @staticmethod
    def _channels_second(t: DeviceTensor) -> DeviceTensor:
        return t.permute([0, len(t.shape) - 1, *range(1, len(t.shape) - 1)])

    def _upload(self, t: Tensor, array: np.ndarray) -> DeviceTensor:
        if t.channels_last:
            return self._channels_second(
                self._keep(self.plugin.upload(np.moveaxis(array, 1, -1), t.dtype))
            )
        if t.transposed:
            array = array.swapaxes(-1, -2) if array.ndim > 1 else array
        there = self._keep(self.plugin.upload(array, t.dtype))
        return there.transpose() if t.transposed else there

    def _keep(self, t: DeviceTensor) -> DeviceTensor:
        self.owned.append(t)
        return t

    def _digest(self, there: DeviceTensor, t: Tensor) -> dict[str, Any]:
        values = self.plugin.download(there)
        if t.channels_last:
            values = np.moveaxis(values.reshape(t.shape[0], *t.shape[2:], t.shape[1]), -1, 1)
        values = values.reshape(-1)
        values = data.from_bfloat16(values) if t.dtype == "bfloat16" else values
        nans = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
        return data.digest(values[data.positions(values.size)], nans)


class DriverSide(PluginSide):
    """The driver's copy of as many bytes as a copy row writes."""

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "name": "driver's copy"}

    def supports(self, row: Row) -> bool:
        return row.op == "copy.out" and not any(t.transposed for t in row.inputs())

    def _bind(self, row: Row, known: dict[int, DeviceTensor], earlier: list[DeviceTensor]) -> Any:
        out = self._keep(self.plugin.empty(row.outs[0].shape, row.outs[0].dtype))
        source = known[id(row.inputs()[1])]
        return lambda: self.plugin.copy(out, source), [out]


class LibrarySide(PluginSide):
    """Another library on the plugin's queue and buffers: a derived class binds its calls."""

    def _queue(self) -> C.c_void_p:
        queue = C.c_void_p()
        self.plugin.call("native_queue", self.plugin.stream, C.byref(queue))
        return queue

    def _native_device(self) -> C.c_void_p:
        device = C.c_void_p()
        self.plugin.call("native_device", self.plugin.device, C.byref(device))
        return device

    def _native(self, t: DeviceTensor) -> tuple[C.c_void_p, int]:
        """(buffer, offset in it) of float32; the offset in elements."""
        memory, offset = C.c_void_p(), C.c_uint64()
        self.plugin.call("native_buffer", C.c_uint64(t.address), C.byref(memory), C.byref(offset))
        return memory, offset.value // 4
