"""PyTorch on one device: ATen's operators for operator rows, whole models for rows that only
PyTorch has."""

from __future__ import annotations

import platform
import resource
from typing import Any

import data
import numpy as np
import torch
from measure import Timer, sets_for
from rows import Row, Tensor, bound


class TorchSide:
    """`options`: device (cpu, cuda, ocl), threads, cache, sdp (attention's backend on CUDA: flash,
    cudnn, efficient, math), defaults (TF32 where torch has it by default, else nowhere), compiled
    (models by torch.compile; no other rows)."""

    def __init__(self, options: Any) -> None:
        self.kind, self.cache = options.torch_device, options.cache
        self.sdp, self.options = options.sdp, options
        if self.kind == "ocl":
            import torch_ocl  # noqa: F401  registers the device

            for setting in options.setting:
                torch.backends.ocl.set_setting(*setting.split("=", 1))
        torch.set_num_threads(options.threads)
        if not options.defaults:
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        self.device = torch.device(self.kind)
        if self.sdp:
            from torch.nn.attention import SDPBackend, sdpa_kernel

            backend = {
                "flash": SDPBackend.FLASH_ATTENTION,
                "cudnn": SDPBackend.CUDNN_ATTENTION,
                "efficient": SDPBackend.EFFICIENT_ATTENTION,
                "math": SDPBackend.MATH,
            }[self.sdp]
            self.context = sdpa_kernel(backend)  # for the life of the process
            self.context.__enter__()
        self.timer: Timer | None = None
        self.keep: list[Any] = []

    def describe(self) -> dict[str, Any]:
        versions = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        }
        name = f"torch {torch.__version__} {self.kind}"
        if self.kind == "cuda":
            name += f", {torch.cuda.get_device_name()}" + (
                f", {self.sdp} attention" if self.sdp else ""
            )
            name += ", its defaults" * self.options.defaults
            versions["cudnn"] = str(torch.backends.cudnn.version())
        elif self.kind == "cpu":
            name += f", {self.options.threads} threads"
            versions["cpu capability"] = torch.backends.cpu.get_cpu_capability()
        name += ", compiled" * self.options.compiled
        return {"name": name, "versions": versions}

    def finish(self) -> None:
        if self.kind != "cpu":
            getattr(torch, self.kind).synchronize()

    def supports(self, row: Row) -> bool:
        if self.sdp and (row.family != "attention" or row.dtype == "float32"):
            return False
        if self.options.compiled and row.op != "model":
            return False
        return row.only in ("", "torch")

    def prepare(self, row: Row) -> dict[str, Any]:
        if row.only:
            return self._prepare_model(row)
        tensors = row.inputs()
        arrays = [data.draw(row.name, i, t) for i, t in enumerate(tensors)]
        memory = sum(t.bytes for t in [*tensors, *row.outs])
        bodies = [self._one(row, tensors, arrays) for _ in range(sets_for(memory, self.cache))]
        results = _flat(bodies[0]())
        digests = [self._digest(results[i]) for i in row.check]
        self.timer = Timer(bodies, self.finish)
        return {
            "once": self.timer.warm(),
            "digests": digests,
            "memory": memory,
            "sets": len(bodies),
        }

    def _prepare_model(self, row: Row) -> dict[str, Any]:
        import models

        more = {"compiled": True} if self.options.compiled else {}
        body = models.BUILDERS[row.op](self.device, *row.args, **more)
        body()  # a second training step tells whether gradients and optimizer were right
        digests = [self._digest(t) for t in _flat(body())]
        self.timer = Timer([body], self.finish)
        self.keep.append(body)
        return {"once": self.timer.warm(), "digests": digests, "memory": 0, "sets": 1}

    def sample(self, seconds: float) -> float:
        return self.timer.sample(seconds)

    def metrics(self, row: Row) -> dict[str, Any]:
        """Of a prepared row: launches of one call, most memory in use at once in bytes."""
        body, result = self.keep[-1], {}
        if self.kind == "cpu":
            result["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            result["peak_what"] = "resident memory of the process"
            return result
        module = getattr(torch, self.kind)
        module.reset_peak_memory_stats()
        result["launches"] = self._launches(body)
        result["peak_bytes"] = module.max_memory_allocated()
        return result

    def _launches(self, body: Any) -> int:
        if self.kind == "ocl":
            before = torch.ocl.counters()["launches"]
            body()
            self.finish()
            return torch.ocl.counters()["launches"] - before
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            body()
            self.finish()
        kernels = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
        return sum(
            not e.name.startswith(("Memcpy", "Memset", "Optimizer.", "## ")) for e in kernels
        )

    def release(self) -> None:
        self.finish()
        self.timer = None
        self.keep.clear()
        if self.kind != "cpu":
            getattr(torch, self.kind).empty_cache()

    def _tensor(self, t: Tensor, array: np.ndarray) -> torch.Tensor:
        if t.transposed:
            return self._tensor(
                Tensor(t.shape, t.dtype), np.ascontiguousarray(array.swapaxes(-1, -2))
            ).transpose(-1, -2)
        there = torch.from_numpy(array.view(np.int16) if t.dtype == "bfloat16" else array)
        there = there.view(torch.bfloat16) if t.dtype == "bfloat16" else there
        # A copy of its own: sets of data must not share memory.
        there = there.to(self.device, copy=True)
        return there.to(memory_format=torch.channels_last) if t.channels_last else there

    def _one(self, row: Row, tensors: list[Tensor], arrays: list[np.ndarray]) -> Any:
        known = {id(t): self._tensor(t, array) for t, array in zip(tensors, arrays, strict=True)}
        if row.peer:
            return row.peer(torch, list(known.values()))
        earlier = _flat(self._bind(row.before, known, [])()) if row.before else []
        return self._bind(row, known, earlier)

    def _bind(self, row: Row, known: dict[int, torch.Tensor], earlier: list[torch.Tensor]) -> Any:
        op, inputs, outs = _operator(row.op)

        args = bound(row.args, known, earlier, lambda name: getattr(torch, name))
        named: dict[str, Any] = {}
        positional: list[Any] = []
        for argument, a in zip(inputs, args, strict=True):
            if argument.kwarg_only:
                named[argument.name] = a
            else:
                positional.append(a)
        results = (
            [
                torch.empty(t.shape, dtype=getattr(torch, t.dtype), device=self.device)
                for t in row.outs
            ]
            if outs
            else []
        )
        named.update(zip([a.name for a in outs], results, strict=True))
        return lambda: op(*positional, **named)

    def _digest(self, t: torch.Tensor) -> dict[str, Any]:
        flat = t.detach().contiguous().reshape(-1)
        nans = int(torch.isnan(flat).sum()) if flat.is_floating_point() else 0
        where = torch.from_numpy(data.positions(flat.numel())).to(self.device)
        return data.digest(flat[where].cpu().double().numpy(), nans)


def _flat(results: Any) -> list[torch.Tensor]:
    return [results] if isinstance(results, torch.Tensor) else list(results)


def _operator(name: str) -> tuple[Any, list[Any], list[Any]]:
    """(operator, inputs, out arguments): the out-variant, or the function itself where PyTorch
    generates the out-variant from it, as that copies once more."""
    packet = getattr(torch.ops.aten, name.split(".")[0])
    op = getattr(packet, name.split(".")[1])

    def written(a: Any) -> bool:
        return a.alias_info is not None and a.alias_info.is_write

    outs = [a for a in op._schema.arguments if written(a)]
    inputs = [a for a in op._schema.arguments if not written(a)]
    if torch.Tag.generated in op.tags:
        for other in (getattr(packet, o) for o in packet.overloads()):
            same = [a.name for a in other._schema.arguments] == [a.name for a in inputs]
            if same and not any(written(a) for a in other._schema.arguments):
                return other, inputs, []
    return op, inputs, outs
