"""Matrix products of CLBlast on the plugin's queue and buffers, with the parameters that it carries
or with those that its tuners found."""

from __future__ import annotations

import ctypes as C
import ctypes.util
import json
import pathlib
import re
from typing import Any

import data
from measure import Timer
from rows import Row

from sides.plugin import LibrarySide

ROW_MAJOR, PLAIN, TRANSPOSED, SINGLE = 101, 111, 112, 32
# Tuner's family: kernel of CLBlastOverrideParameters. A product may copy, pad or transpose first.
KERNELS = {
    "copy": "Copy",
    "pad": "Pad",
    "transpose": "Transpose",
    "padtranspose": "Padtranspose",
    "xgemm": "Xgemm",
    "xgemm_direct": "XgemmDirect",
}
# A product of fewer multiply-adds than this number's cube takes the kernel that neither copies nor
# pads.
LIMIT = "XGEMM_MIN_INDIRECT_SIZE"
INDIRECT, DIRECT = 0, 1 << 20


def tuned_parameters(folder: str) -> dict[str, dict[str, int]]:
    """The fastest parameters of each kernel in the float32 results of `folder`, clblast_*_32.json.
    A kernel with several files (limited and random search) has its best of all."""
    best: dict[str, tuple[float, dict[str, int]]] = {}
    for path in sorted(pathlib.Path(folder).glob(f"clblast_*_{SINGLE}.json")):
        book = json.loads(path.read_text())
        kernel = KERNELS.get(re.sub(r"_\d+$", "", book["kernel_family"]))
        for result in book["results"] if kernel else []:
            if kernel not in best or result["time"] < best[kernel][0]:
                best[kernel] = result["time"], result["parameters"]
    missing = [name for name in ("Xgemm", "XgemmDirect") if name not in best]
    if missing:
        raise RuntimeError(f"{folder} has no results of CLBlast's tuner for {missing[0]}")
    return {
        kernel: {name: value for name, value in parameters.items() if name != "PRECISION"}
        for kernel, (_, parameters) in best.items()
    }


class ClblastSide(LibrarySide):
    """float32 products, single and batched; `options`: clblast_tuned, a folder, or empty."""

    def __init__(self, options: Any) -> None:
        try:
            self.library = C.CDLL(ctypes.util.find_library("clblast") or "libclblast.so.1")
        except OSError:
            raise RuntimeError("libclblast is not installed") from None
        super().__init__(options)
        self.tuned = tuned_parameters(options.clblast_tuned) if options.clblast_tuned else {}
        for kernel, parameters in self.tuned.items():
            self._override(kernel, parameters)

    def describe(self) -> dict[str, Any]:
        about = {**super().describe(), "name": f"CLBlast ({'tuned' if self.tuned else 'untuned'})"}
        if self.tuned:
            about["versions"]["tuned"] = "; ".join(
                f"{kernel} " + " ".join(f"{k}={v}" for k, v in parameters.items())
                for kernel, parameters in self.tuned.items()
            )
        return about

    def supports(self, row: Row) -> bool:
        return row.op in ("mm.out", "bmm.out") and row.dtype == "float32"

    def prepare(self, row: Row) -> dict[str, Any]:
        if self.tuned:
            self._choose_kernel(row)
        return super().prepare(row)

    def _choose_kernel(self, row: Row) -> None:
        """Lets the row run with the faster of CLBlast's two kernels: what its tuner of routines
        finds with parameters that were compiled in, for one limit of all sizes."""
        tensors = row.inputs()
        run, _ = self._one(row, tensors, [data.draw(row.name, i, t) for i, t in enumerate(tensors)])
        timer, times = Timer([run], self.plugin.synchronize), {}
        for limit in (INDIRECT, DIRECT):
            self._override("GemmRoutine", {LIMIT: limit})
            timer.warm()
            times[limit] = min(timer.warm() for _ in range(3))
        self.release()
        self._override("GemmRoutine", {LIMIT: min(times, key=times.__getitem__)})

    def _override(self, kernel: str, parameters: dict[str, int]) -> None:
        count = len(parameters)
        status = self.library.CLBlastOverrideParameters(
            self._native_device(),
            kernel.encode(),
            C.c_int(SINGLE),
            C.c_size_t(count),
            (C.c_char_p * count)(*(name.encode() for name in parameters)),
            (C.c_size_t * count)(*parameters.values()),
        )
        if status:
            raise RuntimeError(f"CLBlastOverrideParameters of {kernel}: status {status}")

    def _bind(self, row: Row, known: dict, earlier: list) -> Any:
        outs = self._outputs(row)
        a, b = row.args
        (m, k), n = a.shape[-2:], b.shape[-1]
        leading = [m if a.transposed else k, k if b.transposed else n, n]
        strides = [m * k, k * n, m * n]
        operands = []
        for t, ld, stride in zip(
            (known[id(a)], known[id(b)], outs[0]), leading, strides, strict=True
        ):
            memory, offset = self._native(t)
            operand = [memory, C.c_size_t(offset), C.c_size_t(ld)]
            operands.append(operand + ([C.c_size_t(stride)] if row.op == "bmm.out" else []))
        batched = row.op == "bmm.out"
        call = self.library.CLBlastSgemmStridedBatched if batched else self.library.CLBlastSgemm
        arguments = [
            C.c_int(ROW_MAJOR),
            *(C.c_int(TRANSPOSED if t.transposed else PLAIN) for t in (a, b)),
            *(C.c_size_t(v) for v in (m, n, k)),
            C.c_float(1),
            *operands[0],
            *operands[1],
            C.c_float(0),
            *operands[2],
            *([C.c_size_t(a.shape[0])] if batched else []),
            C.byref(self._queue()),
            None,
        ]

        def run() -> None:
            status = call(*arguments)
            if status:
                raise RuntimeError(f"{call.__name__} failed with status {status}")

        return run, outs
