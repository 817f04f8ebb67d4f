"""Products and convolutions of dlprimitives on the plugin's queue and buffers, through
dlprimitives_calls.cpp."""

from __future__ import annotations

import ctypes as C
import pathlib
from typing import Any

from rows import Row, Tensor

from sides.plugin import LibrarySide

FORWARD, DATA, WEIGHT = range(3)


class Place(C.Structure):
    _fields_ = [("memory", C.c_void_p), ("offset", C.c_uint64)]


class DlprimitivesSide(LibrarySide):
    """`options`: plugin; the library lies beside it, as the build puts it."""

    def __init__(self, options: Any) -> None:
        path = pathlib.Path(options.plugin).resolve().parent / "libbench_dlprimitives.so"
        if not path.exists():
            raise RuntimeError(f"{path} was not built: CMake found no dlprimitives")
        super().__init__(options)
        self.library = C.CDLL(str(path))
        self.library.bench_dlprimitives_error.restype = C.c_char_p
        for name in ("product", "convolution"):
            getattr(self.library, f"bench_dlprimitives_{name}").restype = C.c_void_p
        self.operations: list[C.c_void_p] = []

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "name": "dlprimitives"}

    def supports(self, row: Row) -> bool:
        if row.dtype != "float32" or any(t.channels_last for t in row.inputs()):
            return False
        if row.op == "convolution_backward.out":
            return not row.args[7]
        # Its batched product compiles a flag that it never sets (b176c15).
        return row.op == "mm.out" or (row.op == "convolution.out" and not row.args[6])

    def release(self) -> None:
        super().release()
        for operation in self.operations:
            self.library.bench_dlprimitives_close(operation)
        self.operations.clear()

    def _bind(self, row: Row, known: dict, earlier: list) -> Any:
        outs = self._outputs(row)
        there = {**known, **{id(t): out for t, out in zip(row.outs, outs, strict=True)}}
        name, numbers, operands = _product(row) if row.op == "mm.out" else _convolution(row)
        places = (Place * 3)(*(Place(*self._native(there[id(t)])) for t in operands))
        operation = C.c_void_p(
            getattr(self.library, f"bench_dlprimitives_{name}")(
                self._queue(), (C.c_int * len(numbers))(*numbers), places
            )
        )
        self._check(bool(operation))
        self.operations.append(operation)
        return lambda: self._check(self.library.bench_dlprimitives_enqueue(operation)), outs

    def _check(self, done: int) -> None:
        if not done:
            text = self.library.bench_dlprimitives_error().decode(errors="replace")
            raise RuntimeError(f"dlprimitives: {text}")


def _product(row: Row) -> tuple[str, list[int], list[Tensor]]:
    a, b = row.args
    numbers = [*a.shape, b.shape[1], int(a.transposed), int(b.transposed)]
    return "product", numbers, [a, b, row.outs[0]]


def _convolution(row: Row) -> tuple[str, list[int], list[Tensor]]:
    """Operands are input, weight, output, or their gradients."""
    if row.op == "convolution.out":
        x, w, _, stride, padding, dilation, _, _, groups = row.args
        direction, y = FORWARD, row.outs[0]
    else:
        y, x, w, _, stride, padding, dilation, _, _, groups, mask = row.args
        direction = DATA if mask[0] else WEIGHT
        # The gradient is a result; the row's own x or w only tells its shape.
        x, w = (row.outs[0], w) if direction == DATA else (x, row.outs[1])
    numbers = [direction, *x.shape, *w.shape, *stride, *padding, *dilation, groups]
    return "convolution", numbers, [x, w, y]
