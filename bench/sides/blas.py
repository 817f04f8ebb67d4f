"""Matrix products of OpenBLAS, which NumPy's packages carry."""

from __future__ import annotations

from typing import Any

import data
import numpy as np
from measure import Timer, sets_for
from rows import Row


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
        return row.op == "mm.out" and row.dtype == "float32"

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
