"""A plugin of include/tensor_backend/plugin.h driven from Python through ctypes: just enough for
the bench.

Device tensors are (address, shape, strides) objects; operators are called with out arguments that
the caller allocates.
"""

from __future__ import annotations

import ctypes as C
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from abi import (
    ACTIVE_PEAK,
    BOOL,
    BOOL_LIST,
    DTYPE,
    DTYPES,
    FLOAT,
    FUNCTIONS,
    INT,
    INT_LIST,
    NONE,
    STRING,
    TENSOR,
    TENSOR_LIST,
    TEXTS,
    Api,
    Call,
    CTensor,
    DType,
    Error,
    Value,
)


@dataclass(frozen=True)
class Dtype:
    """An argument of type ScalarType."""

    name: str


@dataclass
class DeviceTensor:
    """Strided device memory; `strides` in elements. Freed by Plugin.free()."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    owned: int = 0  # address to free, 0 for a view
    _c: object = field(default=None, repr=False)

    def transpose(self) -> DeviceTensor:
        """A view with the last two dimensions exchanged."""
        return self.permute([*range(len(self.shape) - 2), len(self.shape) - 1, len(self.shape) - 2])

    def permute(self, order: list[int]) -> DeviceTensor:
        """A view whose dimension i is dimension order[i] of this."""
        return DeviceTensor(
            self.address,
            tuple(self.shape[i] for i in order),
            tuple(self.strides[i] for i in order),
            self.dtype,
        )

    def c(self) -> CTensor:
        if self._c is None:
            n = max(len(self.shape), 1)
            sizes, strides = (C.c_int64 * n)(*self.shape), (C.c_int64 * n)(*self.strides)
            code, bits = DTYPES[self.dtype]
            self._c = CTensor(
                C.sizeof(CTensor),
                0,
                self.address,
                0,
                0,
                DType(code, bits, 1),
                len(self.shape),
                sizes,
                strides,
                None,
            )
        return self._c


class Plugin:
    """One device of one plugin. Raises RuntimeError with the plugin's text."""

    def __init__(self, path: str, device: int = 0) -> None:
        self._library = C.CDLL(path)
        self._text = C.create_string_buffer(8192)
        self._error = Error(
            C.sizeof(Error), 0, 0, 0, len(self._text), C.cast(self._text, C.c_char_p)
        )
        self._api = C.POINTER(Api)()
        self._check(
            self._library.tb_plugin_get_api(
                C.c_uint32(1), None, C.byref(self._error), C.byref(self._api)
            )
        )
        self._f = {}
        for name, (table, index) in FUNCTIONS.items():
            pointer = C.cast(getattr(self._api.contents, table), C.POINTER(C.c_void_p))[1 + index]
            self._f[name] = C.CFUNCTYPE(C.c_int32)(pointer)
        self.device = C.c_int32(device)
        self.stream = C.c_void_p()
        self.call("default_stream", self.device, C.byref(self.stream))
        self._ops: dict[str, int] = {}

    def _check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(f"status {status}: {self._text.value.decode(errors='replace')}")

    def call(self, name: str, *args: Any) -> None:
        self._check(self._f[name](*args, C.byref(self._error)))

    def properties(self) -> dict:
        """kind (1: CPU), features, compute_units, and the texts of tb_device_properties."""
        raw = C.create_string_buffer(704)
        C.cast(raw, C.POINTER(C.c_uint32))[0] = 704
        self.call("device_properties", self.device, raw)
        numbers = np.frombuffer(raw.raw, np.uint32)
        texts = {key: raw.raw[at : at + 128].split(b"\0")[0].decode() for key, at in TEXTS.items()}
        return {
            "kind": int(numbers[2]),
            "features": int(numbers[3]),
            "compute_units": int(numbers[172]),
            **texts,
        }

    def set(self, name: str, value: str) -> None:
        self.call("set", name.encode(), value.encode())

    def get(self, name: str) -> str:
        text = C.create_string_buffer(256)
        self.call("get", name.encode(), text, C.c_uint64(len(text)))
        return text.value.decode()

    def reset_peak(self) -> None:
        self.call("reset_peak_stats", self.device)

    def peak_bytes(self) -> int:
        """Most memory in use at once since reset_peak()."""
        raw = C.create_string_buffer(280)
        C.cast(raw, C.POINTER(C.c_uint32))[0] = 280
        self.call("stats", self.device, raw)
        return int(np.frombuffer(raw.raw, np.int64)[ACTIVE_PEAK // 8])

    def empty_cache(self) -> None:
        self.call("empty_cache", self.device)

    def kernel(
        self, source: str, options: str, name: str, args: list, threads: int, group: int
    ) -> Any:
        """A function that enqueues a kernel of OpenCL C over `threads` work-items."""
        library, kernel, keep = C.c_void_p(), C.c_void_p(), [args]
        self.call("compile", self.device, source.encode(), options.encode(), C.byref(library))
        info = C.create_string_buffer(48)
        C.cast(info, C.POINTER(C.c_uint32))[0] = 48
        self.call("find_kernel", library, name.encode(), C.byref(kernel), info)
        values = (Value * len(args))(*[self._value(a, keep) for a in args])
        sizes, groups = (C.c_uint64 * 1)(threads), (C.c_uint64 * 1)(group)
        count, rank = C.c_uint32(len(args)), C.c_uint32(1)
        return lambda: (
            self.call("launch", self.stream, kernel, values, count, rank, sizes, groups),
            keep,
        )[0]

    def synchronize(self) -> None:
        self.call("synchronize", self.stream)

    def start_trace(self, path: str) -> None:
        self.call(
            "profiler_start", C.c_char_p(b"interval"), C.c_int32(0), C.c_char_p(path.encode())
        )

    def stop_trace(self) -> None:
        self.call("profiler_stop")

    def push_range(self, name: str) -> None:
        self.call("push_range", C.c_char_p(name.encode()))

    def pop_range(self) -> None:
        self.call("pop_range")

    def empty(self, shape: tuple[int, ...], dtype: str = "float32") -> DeviceTensor:
        size = int(np.prod(shape)) * DTYPES[dtype][1] // 8
        address = C.c_uint64()
        self.call("allocate", self.device, C.c_uint64(max(size, 1)), self.stream, C.byref(address))
        strides, step = [], 1
        for s in reversed(shape):
            strides.append(step)
            step *= max(s, 1)
        return DeviceTensor(
            address.value, tuple(shape), tuple(reversed(strides)), dtype, address.value
        )

    def upload(self, array: np.ndarray, dtype: str = "") -> DeviceTensor:
        """bfloat16 comes as uint16, with its name."""
        array = np.ascontiguousarray(array)
        t = self.empty(array.shape, dtype or array.dtype.name)
        self.call(
            "to_device",
            self.stream,
            C.c_uint64(t.address),
            array.ctypes.data_as(C.c_void_p),
            C.c_uint64(array.nbytes),
            C.c_uint32(0),
        )
        return t

    def download(self, t: DeviceTensor) -> np.ndarray:
        """bfloat16 goes as uint16."""
        array = np.empty(t.shape, "uint16" if t.dtype == "bfloat16" else t.dtype)
        self.call(
            "to_host",
            self.stream,
            array.ctypes.data_as(C.c_void_p),
            C.c_uint64(t.address),
            C.c_uint64(array.nbytes),
            C.c_uint32(0),
        )
        return array

    def poison(self, t: DeviceTensor) -> None:
        """Fills it with what no result is: NaN, -1, or a large number."""
        size = int(np.prod(t.shape)) * DTYPES[t.dtype][1] // 8
        if size:
            self.call(
                "fill", self.stream, C.c_uint64(t.address), b"\xff", C.c_uint32(1), C.c_uint64(size)
            )

    def copy(self, target: DeviceTensor, source: DeviceTensor) -> None:
        """The driver's own copy of all bytes."""
        size = int(np.prod(source.shape)) * DTYPES[source.dtype][1] // 8
        self.call(
            "on_device",
            self.stream,
            C.c_uint64(target.address),
            self.stream,
            C.c_uint64(source.address),
            C.c_uint64(size),
        )

    def free(self, *tensors: DeviceTensor) -> None:
        for t in tensors:
            if t.owned:
                self.call("free", C.c_uint64(t.owned), self.stream)

    def _value(self, a: Any, keep: list) -> Value:
        v = Value()
        if a is None:
            v.tag = NONE
        elif isinstance(a, bool):
            v.tag, v.payload.i = BOOL, int(a)
        elif isinstance(a, int):
            v.tag, v.payload.i = INT, a
        elif isinstance(a, float):
            v.tag, v.payload.f = FLOAT, a
        elif isinstance(a, str):
            text = C.create_string_buffer(a.encode())
            v.tag, v.count, v.payload.p = STRING, len(a), C.cast(text, C.c_void_p)
            keep.append(text)
        elif isinstance(a, DeviceTensor):
            v.tag, v.payload.p = TENSOR, C.cast(C.pointer(a.c()), C.c_void_p)
            keep.append(a)
        elif isinstance(a, Dtype):
            code, bits = DTYPES[a.name]
            v.tag, v.payload.dtype = DTYPE, DType(code, bits, 1)
        elif isinstance(a, (list, tuple)) and a and isinstance(a[0], DeviceTensor):
            pointers = (C.POINTER(CTensor) * len(a))(*[C.pointer(t.c()) for t in a])
            v.tag, v.count, v.payload.p = TENSOR_LIST, len(a), C.cast(pointers, C.c_void_p)
            keep += [a, pointers]
        elif isinstance(a, (list, tuple)):
            bools = bool(a) and isinstance(a[0], bool)
            array = ((C.c_uint8 if bools else C.c_int64) * max(len(a), 1))(*a)
            v.tag, v.count, v.payload.p = (
                BOOL_LIST if bools else INT_LIST,
                len(a),
                C.cast(array, C.c_void_p),
            )
            keep.append(array)
        else:
            raise TypeError(f"{a!r} is no operator argument")
        return v

    def prepare(self, name: str, args: list, outs: list[DeviceTensor]) -> Any:
        """A function that enqueues the operator each time it is called; arguments are bound
        once."""
        if name not in self._ops:
            handle = C.c_void_p()
            self.call("find", name.encode(), C.byref(handle))
            self._ops[name] = handle.value
        keep: list = [args, outs]
        values = (Value * max(len(args), 1))(*[self._value(a, keep) for a in args])
        out_pointers = (C.POINTER(CTensor) * max(len(outs), 1))(*[C.pointer(o.c()) for o in outs])
        call = Call(
            C.sizeof(Call),
            0,
            self._ops[name],
            self.stream,
            values,
            out_pointers,
            len(args),
            len(outs),
            None,
            None,
        )
        keep += [values, out_pointers, call]
        invoke, pointer, error = self._f["invoke"], C.byref(call), C.byref(self._error)

        def run() -> None:
            if invoke(pointer, error) != 0:
                raise RuntimeError(self._text.value.decode(errors="replace"))

        run.keep = keep
        return run
