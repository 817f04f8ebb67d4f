"""Structures and numbers of include/tensor_backend/plugin.h for ctypes."""

from __future__ import annotations

import ctypes as C


class Error(C.Structure):
    _fields_ = [
        ("struct_size", C.c_uint32),
        ("code", C.c_int32),
        ("reason", C.c_uint32),
        ("native", C.c_int32),
        ("capacity", C.c_uint64),
        ("message", C.c_char_p),
    ]


class DType(C.Structure):
    _fields_ = [("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16)]


class CTensor(C.Structure):
    _fields_ = [
        ("struct_size", C.c_uint32),
        ("flags", C.c_uint32),
        ("address", C.c_uint64),
        ("base", C.c_uint64),
        ("base_bytes", C.c_uint64),
        ("dtype", DType),
        ("ndim", C.c_uint32),
        ("sizes", C.POINTER(C.c_int64)),
        ("strides", C.POINTER(C.c_int64)),
        ("next", C.c_void_p),
    ]


class Payload(C.Union):
    _fields_ = [("i", C.c_int64), ("f", C.c_double), ("p", C.c_void_p), ("dtype", DType)]


class Value(C.Structure):
    _fields_ = [("tag", C.c_uint32), ("count", C.c_uint32), ("payload", Payload)]


class Call(C.Structure):
    _fields_ = [
        ("struct_size", C.c_uint32),
        ("flags", C.c_uint32),
        ("op", C.c_void_p),
        ("stream", C.c_void_p),
        ("args", C.POINTER(Value)),
        ("outs", C.POINTER(C.POINTER(CTensor))),
        ("arg_count", C.c_uint32),
        ("out_count", C.c_uint32),
        ("resize_out", C.c_void_p),
        ("resize_context", C.c_void_p),
    ]


TABLES = [
    "device",
    "stream",
    "event",
    "memory",
    "transfer",
    "operators",
    "generator",
    "kernel",
    "profiler",
    "capture",
    "switches",
    "interop",
]


class Api(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("major", C.c_uint16), ("minor", C.c_uint16)] + [
        (name, C.POINTER(C.c_void_p)) for name in TABLES
    ]


# (table, position among its functions), in the header's order.
FUNCTIONS = {
    "device_count": ("device", 0),
    "device_properties": ("device", 2),
    "default_stream": ("stream", 0),
    "synchronize": ("stream", 4),
    "allocate": ("memory", 0),
    "free": ("memory", 1),
    "to_device": ("transfer", 0),
    "to_host": ("transfer", 1),
    "on_device": ("transfer", 2),
    "fill": ("transfer", 3),
    "find": ("operators", 2),
    "invoke": ("operators", 4),
    "profiler_start": ("profiler", 0),
    "profiler_stop": ("profiler", 1),
    "push_range": ("profiler", 3),
    "pop_range": ("profiler", 4),
    "counters": ("profiler", 5),
    "stats": ("memory", 4),
    "reset_peak_stats": ("memory", 5),
    "empty_cache": ("memory", 7),
    "compile": ("kernel", 0),
    "find_kernel": ("kernel", 4),
    "launch": ("kernel", 5),
    "set": ("switches", 0),
    "get": ("switches", 1),
    "native_device": ("interop", 3),
    "native_context": ("interop", 2),
    "native_queue": ("interop", 1),
    "native_buffer": ("interop", 0),
}
NONE, BOOL, INT, FLOAT, STRING, DTYPE, TENSOR, TENSOR_LIST, INT_LIST, BOOL_LIST = (
    0,
    1,
    2,
    3,
    5,
    6,
    7,
    8,
    9,
    11,
)
DTYPES = {
    "bool": (6, 8),
    "uint8": (1, 8),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "complex64": (5, 64),
}
TEXTS = {
    "name": 16,
    "vendor": 144,
    "platform": 272,
    "driver_version": 400,
    "language_version": 528,
}  # offsets
ACTIVE_PEAK = 8 + 2 * 32 + 8  # of tb_memory_stats: active_bytes.peak
