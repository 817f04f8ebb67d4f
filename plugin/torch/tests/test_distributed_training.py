"""Training by two ranks on ocl equals training by one process with the joint batch."""

import os
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from distributed_case import RanksCase
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

STEPS = 5
# Sums of a step's gradients in two parts instead of one: a few units in the last place a step.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def network(*more: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), *more, nn.GELU(), nn.Linear(32, 4))


def batch(step: int) -> torch.Tensor:
    return torch.randn(8, 8, generator=torch.Generator().manual_seed(step))


def train(
    model: nn.Module, device: str, rank: int | None, halves: Callable | None = None
) -> list[torch.Tensor]:
    """The losses of each step and the parameters; `rank` has its part of the batch, None all."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for step in range(STEPS):
        x = batch(step) if rank is None else batch(step).chunk(dist.get_world_size())[rank]
        x = x.to(device)
        optimizer.zero_grad()
        if halves is None:
            loss = (model(x) - x[:, :4]).square().mean()
            loss.backward()
        else:
            loss = halves(model, x)
        optimizer.step()
        losses.append(loss.detach())
    mean = torch.stack(losses)
    if rank is not None:
        dist.all_reduce(mean, dist.ReduceOp.AVG)
    return [mean.cpu(), *(whole(p) for p in model.parameters())]


def whole(parameter: torch.Tensor) -> torch.Tensor:
    full = parameter.full_tensor() if isinstance(parameter, DTensor) else parameter
    return full.detach().float().cpu()


def equal(got: list[torch.Tensor], want: list[torch.Tensor], **close: float) -> None:
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, **(close or CLOSE))


def ddp(model: nn.Module, **options: object) -> nn.Module:
    return DistributedDataParallel(model.to("ocl"), **options)


def plain() -> None:
    want = train(network(), "cpu", None)
    for options in ({}, {"static_graph": True}, {"gradient_as_bucket_view": True}):
        equal(train(ddp(network(), **options), "ocl", dist.get_rank()), want)


def two_halves(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A step in two parts, whose gradients are summed over ranks once."""
    losses = []
    for k, part in enumerate(x.chunk(2)):
        with model.no_sync() if k == 0 and hasattr(model, "no_sync") else torch.enable_grad():
            loss = (model(part) - part[:, :4]).square().mean() / 2
            loss.backward()
        losses.append(loss.detach())
    return sum(losses)


def no_sync() -> None:
    want = train(network(), "cpu", None, two_halves)
    equal(train(ddp(network()), "ocl", dist.get_rank(), two_halves), want)


def hooks() -> None:
    want = train(network(), "cpu", None)
    for hook, close in (
        (default_hooks.allreduce_hook, CLOSE),
        # Gradients with 8 and 11 bits.
        (default_hooks.bf16_compress_hook, {"rtol": 2e-2, "atol": 1e-2}),
        (default_hooks.fp16_compress_hook, {"rtol": 2e-3, "atol": 1e-3}),
    ):
        model = ddp(network())
        model.register_comm_hook(None, hook)
        equal(train(model, "ocl", dist.get_rank()), want, **close)
    # PowerSGD starts collectives in callbacks, with several buckets while others are started; its
    # gradients are approximations.
    for megabytes in (25, 1e-4):
        model = ddp(network(), bucket_cap_mb=megabytes)
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=4, start_powerSGD_iter=2
        )
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        got = train(model, "ocl", dist.get_rank())
        torch.testing.assert_close(got[0], want[0], rtol=0.1, atol=0.1)


def sync_batch_norm() -> None:
    want = train(network(nn.BatchNorm1d(32)), "cpu", None)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(network(nn.BatchNorm1d(32)))
    equal(train(ddp(model), "ocl", dist.get_rank()), want)


def fsdp() -> None:
    want = train(network(), "cpu", None)
    mesh = init_device_mesh("ocl", (dist.get_world_size(),))
    model = network().to("ocl")
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    equal(train(model, "ocl", dist.get_rank()), want)
    model = network().to("ocl")
    fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
    # Computed in bfloat16, which has 8 bits.
    equal(train(model, "ocl", dist.get_rank()), want, rtol=5e-2, atol=5e-2)


def dtensor() -> None:
    mesh = init_device_mesh("ocl", (dist.get_world_size(),))
    a, b = torch.randn(8, 8, generator=torch.Generator().manual_seed(1)), torch.eye(8)
    left = distribute_tensor(a.to("ocl"), mesh, [Shard(1)])
    right = distribute_tensor(b.to("ocl"), mesh, [Shard(0)])
    torch.testing.assert_close((left @ right).full_tensor().cpu(), a)


def save(folder: str) -> list[torch.Tensor]:
    mesh = init_device_mesh("ocl", (dist.get_world_size(),))
    model = fully_shard(network().to("ocl"), mesh=mesh)
    train(model, "ocl", dist.get_rank())
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
    return [whole(p) for p in model.parameters()]


class Training(RanksCase):
    backend = ""  # init_process_group() without a name

    def test_ddp(self) -> None:
        self.together(plain)

    def test_ddp_no_sync(self) -> None:
        self.together(no_sync)

    def test_ddp_hooks(self) -> None:
        self.together(hooks)

    def test_sync_batch_norm(self) -> None:
        self.together(sync_batch_norm)

    def test_fsdp2(self) -> None:
        self.together(fsdp)

    def test_dtensor(self) -> None:
        self.together(dtensor)

    def test_checkpoint_of_two_loaded_by_one(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            parameters = self.together(save, folder)[0]
            model = network().to("ocl")
            state = {"model": model.state_dict()}
            dcp.load(state, checkpoint_id=folder, no_dist=True)
            model.load_state_dict(state["model"])
            for got, want in zip(model.parameters(), parameters, strict=True):
                self.assertTrue(torch.equal(got.detach().cpu(), want))


SCRIPT = """
import os, torch, torch.distributed as dist, torch_ocl
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group()
mesh = init_device_mesh("ocl", (2,))  # chooses device LOCAL_RANK
x = torch.full((3,), float(os.environ["RANK"]), device="ocl")
own = int(os.environ["LOCAL_RANK"]) if torch.ocl.get_device_properties(0).kind == "cpu" else 0
has_parts = torch.ocl.device_count() > 1  # a CPU of one core stays whole
assert x.device.index == (own if has_parts else 0), x.device
dist.all_reduce(x)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1).to("ocl"))
model(x).sum().backward()
line = f"sum {x.tolist()} {dist.get_backend()}\\n"
os.write(1, line.encode())  # at once: the ranks share the pipe
dist.destroy_process_group()
"""


class Launcher(unittest.TestCase):
    def test_torchrun(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(SCRIPT)
            file.flush()
            done = subprocess.run(
                [sys.executable, "-m", "torch.distributed.run", "--standalone"]
                + ["--nproc-per-node", "2", file.name],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                timeout=600,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("sum [1.0, 1.0, 1.0] ocl"), 2, done.stdout)


if __name__ == "__main__":
    unittest.main()
