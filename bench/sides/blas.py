"""Matrix products of other libraries: OpenBLAS, which NumPy's packages carry, and CLBlast on the
plugin's own buffers."""

from __future__ import annotations

import ctypes as C
import ctypes.util
from typing import Any

import data
import numpy as np
from measure import Timer, sets_for
from rows import Row

from sides.plugin import PluginSide


def is_product(row: Row) -> bool:
    return row.op == "mm.out" and row.dtype == "float32"


class OpenBlasSide:
    """float32 products by numpy.matmul."""

    def __init__(self, options: Any) -> None:
        self.cache = options.cache
        self.blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        if "openblas" not in self.blas["name"]:
            raise RuntimeError(f"this NumPy uses {self.blas['name']}, not OpenBLAS")

    def describe(self) -> dict[str, Any]:
        return {"name": f"OpenBLAS {self.blas['version']}", "versions": {"numpy": np.__version__}}

    def supports(self, row: Row) -> bool:
        return is_product(row)

    def prepare(self, row: Row) -> dict[str, Any]:
        tensors = row.inputs()
        arrays = [data.draw(row.name, i, t) for i, t in enumerate(tensors)]
        memory = sum(t.bytes for t in [*tensors, *row.outs])
        bodies, out = [], None
        for _ in range(sets_for(memory, self.cache)):
            a, b = (
                x.swapaxes(0, 1).copy().swapaxes(0, 1) if t.transposed else x.copy()
                for t, x in zip(tensors, arrays, strict=True)
            )
            out = np.full(row.outs[0].shape, np.nan, np.float32)
            bodies.append(lambda a=a, b=b, out=out: np.matmul(a, b, out=out))
        self.timer = Timer(bodies, lambda: None)
        once = self.timer.warm()
        values = out.reshape(-1)
        digests = [data.digest(values[data.positions(values.size)], int(np.isnan(values).sum()))]
        return {"once": once, "digests": digests, "memory": memory, "sets": len(bodies)}

    def sample(self, seconds: float) -> float:
        return self.timer.sample(seconds)

    def release(self) -> None:
        self.timer = None


class ClblastSide(PluginSide):
    """float32 products by CLBlastSgemm, untuned, on the queue and buffers of the plugin."""

    def __init__(self, options: Any) -> None:
        path = ctypes.util.find_library("clblast")
        if not path:
            raise RuntimeError("libclblast is not installed")
        self.library = C.CDLL(path)
        super().__init__(options)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "name": "CLBlast (untuned)"}

    def supports(self, row: Row) -> bool:
        return is_product(row)

    def _bind(self, row: Row, known: dict, earlier: list) -> Any:
        out = self._keep(self.plugin.empty(row.outs[0].shape))
        self.plugin.poison(out)
        a, b = row.args
        (m, k), n = a.shape, b.shape[1]
        buffers = [self._native(t) for t in (known[id(a)], known[id(b)], out)]
        queue = C.c_void_p()
        self.plugin.call("native_queue", self.plugin.stream, C.byref(queue))
        sizes = [C.c_size_t(v) for v in (m, n, k)]
        leading = [
            C.c_size_t(m if a.transposed else k),
            C.c_size_t(k if b.transposed else n),
            C.c_size_t(n),
        ]
        layout = [
            C.c_int(101),
            C.c_int(112 if a.transposed else 111),
            C.c_int(112 if b.transposed else 111),
        ]

        def run() -> None:
            (ma, oa), (mb, ob), (mc, oc) = buffers
            status = self.library.CLBlastSgemm(
                *layout,
                *sizes,
                C.c_float(1),
                ma,
                oa,
                leading[0],
                mb,
                ob,
                leading[1],
                C.c_float(0),
                mc,
                oc,
                leading[2],
                C.byref(queue),
                None,
            )
            if status:
                raise RuntimeError(f"CLBlastSgemm failed with status {status}")

        return run, [out]

    def _native(self, t: Any) -> tuple[C.c_void_p, C.c_size_t]:
        memory, offset = C.c_void_p(), C.c_uint64()
        self.plugin.call("native_buffer", C.c_uint64(t.address), C.byref(memory), C.byref(offset))
        return memory, C.c_size_t(offset.value // 4)
