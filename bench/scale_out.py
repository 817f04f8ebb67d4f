"""Several ranks beside one: collectives by size and engine, and training steps by DDP and FSDP2.

usage: scale_out.py [collectives] [training] [--ranks 2] [--sides ocl-gloo,ocl-mpi] [--only TEXT]
[--sizes BYTES,...] [--seconds 1] [--json FILE]   (./run bench collectives, ./run bench training)

Sides are a device and what carries its bytes: ocl-gloo, ocl-mpi, ocl-nccl (whose ranks have
OCLTENSOR_SHARED_MEMORY=1), cpu-gloo, cuda-nccl, cuda-gloo; without --sides those that this machine
has. Ranks are processes of one host, each with the device
of its number, or all with the only one. Collectives: the rate is the tensor's bytes over the time
of the slowest rank, median of the calls. Training: samples a second of all ranks, each with the
row's batch; the speed-up is to one process of the same side without a group, run just before;
losses of the first steps must be finite and equal on all sides within 1 %.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

import torch

SIDES = ("ocl-gloo", "ocl-mpi", "ocl-nccl", "cuda-nccl", "cuda-gloo", "cpu-gloo")
# Bytes; 25 MB is a bucket of DDP.
SIZES = (4 << 10, 256 << 10, 4 << 20, 25 << 20, 100 << 20, 256 << 20)
CALLS = ("all_reduce", "all_gather", "broadcast")
# name: model, batch of a rank, size, type of products under autocast, way
TRAINING: dict[str, tuple[str, int, int, str, str]] = {
    "resnet50 float32, DDP": ("resnet50", 64, 224, "", "ddp"),
    "resnet50 float16, DDP": ("resnet50", 64, 224, "float16", "ddp"),
    "resnet50 float16, DDP, bf16 hook": ("resnet50", 64, 224, "float16", "ddp bf16"),
    "bert bfloat16, DDP": ("bert", 32, 128, "bfloat16", "ddp"),
    "gpt2 bfloat16, DDP": ("gpt2", 4, 512, "bfloat16", "ddp"),
    "gpt2 bfloat16, FSDP2": ("gpt2", 4, 512, "bfloat16", "fsdp"),
    "resnet18 float32, small, DDP": ("resnet18", 8, 64, "", "ddp"),
    "bert float32, small, DDP": ("bert", 1, 32, "", "ddp"),
}
FIRST = 3  # steps whose losses are compared; they also fill caches
CHECKED = 0.01  # of a loss: sums in another order, and TF32 where the peer has it


def device_of(side: str, rank: int) -> torch.device:
    kind = side.split("-")[0]
    if kind == "cpu":
        return torch.device("cpu")
    if kind == "ocl":
        import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
    module = getattr(torch, kind)
    device = torch.device(kind, rank % module.device_count())
    module.set_device(device)
    return device


def settings_of(side: str) -> dict[str, str]:
    """What the processes of a side have in their environment."""
    if side == "ocl-nccl":
        return {"OCLTENSOR_SHARED_MEMORY": "1", "OCLTENSOR_DISTRIBUTED_ENGINE": "nccl"}
    return {}


def wait(device: torch.device) -> None:
    if device.type != "cpu":
        getattr(torch, device.type).synchronize()


def start_group(side: str) -> None:
    import torch.distributed as dist

    kind, engine = side.split("-")
    if kind == "ocl":
        import torch_ocl  # noqa: F401  registers the backend
    if engine == "mpi":
        dist.init_process_group("ocl", init_method="mpi://")
    else:
        dist.init_process_group("ocl" if kind == "ocl" else engine)


def slowest(seconds: float, device: torch.device) -> float:
    """The longest of all ranks' times."""
    import torch.distributed as dist

    value = torch.tensor([seconds], dtype=torch.float64, device=device)
    dist.all_reduce(value, dist.ReduceOp.MAX)
    return float(value)


def collective(name: str, device: torch.device, size: int, limit: float) -> float:
    """Median seconds of a call on `size` bytes, after its result was checked."""
    import torch.distributed as dist

    ranks, rank = dist.get_world_size(), dist.get_rank()
    x = torch.full((size // 4,), float(rank + 1), device=device)
    everything = torch.empty(ranks, size // 4, device=device) if name == "all_gather" else x
    if name == "all_reduce":
        dist.all_reduce(x)
        assert torch.all(x == ranks * (ranks + 1) / 2)
        x.fill_(1 / ranks)
    elif name == "all_gather":
        dist.all_gather_into_tensor(everything.view(-1), x)
        assert everything[:, -1].tolist() == [r + 1.0 for r in range(ranks)]
    else:
        dist.broadcast(x, 0)
        assert torch.all(x == 1)
    call = {
        "all_reduce": lambda: dist.all_reduce(x),
        "all_gather": lambda: dist.all_gather_into_tensor(everything.view(-1), x),
        "broadcast": lambda: dist.broadcast(x, 0),
    }[name]
    times: list[float] = []
    while sum(times) < limit and len(times) < 200:
        dist.barrier()
        begin = time.perf_counter()
        call()
        wait(device)
        # The first rank's sum of times decides for all when to end.
        times.append(slowest(time.perf_counter() - begin, device))
    return statistics.median(times)


def training(row: str, side: str, device: torch.device, grouped: bool, limit: float) -> Any:
    """Seconds of a step, and the losses of the first ones."""
    import models

    name, batch, size, autocast, way = TRAINING[row]
    job = models.Job(name, "train", batch, size, autocast=autocast)
    if grouped:
        job.model = _wrap(job.model.to(device), way)
    step = job.start(device)
    losses = [float(step()) for _ in range(FIRST)]
    wait(device)
    times: list[float] = []
    while sum(times) < limit or len(times) < 4:
        begin = time.perf_counter()
        step()
        wait(device)
        taken = time.perf_counter() - begin
        times.append(slowest(taken, device) if grouped else taken)
    return statistics.median(times), losses


def _wrap(model: torch.nn.Module, way: str) -> torch.nn.Module:
    if way == "fsdp":
        from torch.distributed.fsdp import fully_shard

        for layer in model.modules():
            if isinstance(layer, torch.nn.ModuleList):
                for block in layer:
                    fully_shard(block)
        return fully_shard(model)
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    if way.endswith("bf16"):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        wrapped.register_comm_hook(None, default_hooks.bf16_compress_hook)
    return wrapped


def child(order: dict[str, Any]) -> None:
    """One rank: does what is ordered and, if it is the first, prints the answer."""
    side, grouped = order["side"], order["grouped"]
    torch.set_num_threads(order["threads"])
    if grouped:
        start_group(side)
        import torch.distributed as dist

        rank = dist.get_rank()
    else:
        rank = 0
    device = device_of(side, int(os.environ.get("LOCAL_RANK", rank)))
    if order["what"] == "training":
        answer: Any = training(order["row"], side, device, grouped, order["seconds"])
    else:
        answer = [
            collective(order["row"], device, size, order["seconds"]) for size in order["sizes"]
        ]
    if rank == 0:
        print("answer", json.dumps(answer), flush=True)
    if grouped:
        dist.destroy_process_group()


def run(order: dict[str, Any], ranks: int, program: str = __file__) -> tuple[Any, str]:
    """The first rank's answer; else None with the reason. Ranks run ``program --child ORDER``."""
    command = [sys.executable, program, "--child", json.dumps(order)]
    if not order["grouped"]:
        commands, envs = [command], [dict(os.environ)]
    elif order["side"].endswith("mpi"):
        commands = [[_mpirun(), "-n", str(ranks), *command]]
        quiet = {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        }
        envs = [{**os.environ, **quiet}]
    else:
        with socket.socket() as taken:
            taken.bind(("localhost", 0))
            port = str(taken.getsockname()[1])
        commands = [command] * ranks
        envs = [
            {
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "MASTER_ADDR": "localhost",
                "MASTER_PORT": port,
            }
            for rank in range(ranks)
        ]
    for env in envs:
        env.update(settings_of(order["side"]))
    processes = [
        subprocess.Popen(c, env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for c, e in zip(commands, envs, strict=True)
    ]
    said = []
    for process in processes:
        try:
            said.append(process.communicate(timeout=order["patience"]))
        except subprocess.TimeoutExpired:
            for other in processes:
                other.kill()
            said.append(process.communicate())
    for out, _ in said:
        for line in out.splitlines():
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer ")), ""
    errors = [line for _, err in said for line in err.splitlines() if "Error" in line]
    return None, errors[-1] if errors else "no answer"


def _mpirun() -> str:
    beside = pathlib.Path(sys.executable).parent / "mpirun"
    return str(beside) if beside.exists() else shutil.which("mpirun") or ""


def present() -> list[str]:
    """The sides that this machine has."""
    found = ["ocl-gloo"]
    if importlib.util.find_spec("mpi4py") and _mpirun():
        found.append("ocl-mpi")
    return found + (["ocl-nccl", "cuda-nccl"] if torch.cuda.is_available() else ["cpu-gloo"])


def measure_collectives(options: argparse.Namespace, sides: list[str]) -> list[dict[str, Any]]:
    rows = []
    sizes = options.sizes
    print(f"\n{options.ranks} ranks, GB/s (microseconds): bytes " + "  ".join(map(str, sizes)))
    for call in CALLS:
        if not any(text in call for text in options.only):
            continue
        for side in sides:
            order = {"what": "collectives", "row": call, "side": side, "grouped": True}
            answer, why = run(_order(options, order, sizes=sizes), options.ranks)
            cells = (
                [f"{n / t / 1e9:.2f} ({t * 1e6:.0f})" for n, t in zip(sizes, answer, strict=True)]
                if answer
                else [why]
            )
            print(f"{call:<12} {side:<10} " + "  ".join(cells), flush=True)
            rows.append({"call": call, "side": side, "sizes": sizes, "seconds": answer, "why": why})
    return rows


def measure_training(options: argparse.Namespace, sides: list[str]) -> list[dict[str, Any]]:
    rows = []
    print(f"\ntraining: samples/s of 1 process, of {options.ranks} ranks, speed-up, losses")
    small = "ocl-gloo" in sides and not _has_gpu()
    for name, (_, batch, *_) in TRAINING.items():
        if ("small" in name) != small or not any(text in name for text in options.only):
            continue
        expected: list[float] = []
        alone: dict[str, Any] = {}
        for side in sides:
            order = {"what": "training", "row": name, "side": side}
            kind = str((side.split("-")[0], settings_of(side)))
            if kind not in alone:
                alone[kind] = run(_order(options, order, grouped=False), 1)
            (one, why), (all_, reason) = (
                alone[kind],
                run(_order(options, order, grouped=True), options.ranks),
            )
            row = {"row": name, "side": side, "one": one, "all": all_, "why": why or reason}
            rows.append(row)
            if not one or not all_:
                print(f"{name:<34} {side:<10} {row['why']}", flush=True)
                continue
            expected = expected or one[1]
            row["right"] = all(
                abs(x - y) <= CHECKED * abs(y) for r in (one, all_) for x, y in zip(r[1], expected)
            )
            rates = batch / one[0], options.ranks * batch / all_[0]
            shown = " ".join(f"{x:.4f}" for x in all_[1])
            print(
                f"{name:<34} {side:<10} {rates[0]:8.1f} {rates[1]:8.1f} "
                f"{rates[1] / rates[0]:5.2f}  {shown}{'' if row['right'] else '  WRONG'}",
                flush=True,
            )
            if options.json:
                options.json.write_text(json.dumps(rows))
    return rows


def _has_gpu() -> bool:
    with contextlib.suppress(ImportError):
        import torch_ocl  # noqa: F401

        return not torch.ocl.get_device_properties(0).has_unified_memory
    return False


def threads_of(ranks: int) -> int:
    return max(1, len(os.sched_getaffinity(0)) // ranks)


def _order(options: argparse.Namespace, order: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "seconds": options.seconds,
        "threads": threads_of(options.ranks),
        "patience": options.patience,
        **order,
        **more,
    }


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", nargs="*", default=["collectives", "training"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sides", type=lambda text: text.split(","))
    parser.add_argument(
        "--sizes", type=lambda text: [int(n) for n in text.split(",")], default=SIZES
    )
    parser.add_argument("--only", action="append", default=None)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    parser.add_argument("--patience", type=float, default=600, help="seconds for a process's work")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--child", type=json.loads)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child)
        return 0
    options.only = options.only or [""]
    sides = options.sides or present()
    if unknown := set(sides) - set(SIDES):
        parser.error(f"unknown sides {sorted(unknown)}: there are {', '.join(SIDES)}")
    rows = []
    if "collectives" in options.what:
        rows += measure_collectives(options, sides)
    if "training" in options.what:
        rows += measure_training(options, sides)
    if options.json:
        options.json.write_text(json.dumps(rows))
    return int(any(row.get("why") or row.get("right") is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
