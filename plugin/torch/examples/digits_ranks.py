"""The digits network on several processes of this host, one for each device or part of the CPU:
its speed beside that of one process with the same batches, and where the time went.

usage: digits_ranks.py [--ranks 2] [--epochs 12] [--batch 128]; ends with an error below an accuracy
of 0.97, or where ranks end with different networks.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch_ocl  # noqa: F401  not needed where the package is installed: torch loads it by itself
from digits import GOAL, load, network, shifted, show
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def options_of(arguments: list[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--batch", type=int, default=128, help="of all ranks together")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--results", help=argparse.SUPPRESS)
    return p.parse_args(arguments)


def train(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, options: argparse.Namespace
) -> float:
    """Images a second, after an epoch that compiles kernels. All ranks draw the same order, and
    each takes its part of every batch."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda epoch: min(1.0, 2 * (options.epochs - epoch) / options.epochs)
    )
    draw = torch.Generator().manual_seed(options.seed)
    begin = 0.0
    for epoch in range(1, options.epochs + 1):
        order, start = torch.randperm(len(labels), generator=draw), time.perf_counter()
        batches = order.split(options.batch)[: len(order) // options.batch]
        losses = 0.0
        for step, rows in enumerate(batches, 1):
            rows = rows.chunk(ranks)[rank].to(images.device)
            loss = nn.functional.cross_entropy(model(shifted(images[rows])), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses += loss.detach()
            if step % 4 == 0 or step == len(batches):
                mean = losses / step
                dist.all_reduce(mean, dist.ReduceOp.AVG)
                if rank == 0:
                    speed = step * options.batch / (time.perf_counter() - start)
                    text = f"loss {mean.item():.3f}  {speed:6.0f} images/s of {ranks} rank(s)"
                    show(epoch, options.epochs, step / len(batches), text)
        schedule.step()
        if epoch == 1:
            torch.ocl.synchronize()
            torch.ocl.distributed.reset_summary()
            begin = time.perf_counter()
    torch.ocl.synchronize()
    seen = (options.epochs - 1) * len(batches) * options.batch
    return seen / (time.perf_counter() - begin)


def run_rank(options: argparse.Namespace) -> int:
    dist.init_process_group()
    rank = dist.get_rank()
    if os.environ.get("LOCAL_RANK") and torch.ocl.get_device_properties(0).kind != "cpu":
        torch.ocl.set_device(int(os.environ["LOCAL_RANK"]))  # parts of a CPU are given out already
    torch.manual_seed(options.seed)
    images, labels = (t.to("ocl") for t in load())
    half = len(labels) // 2
    model = DistributedDataParallel(network().to("ocl"))
    torch.manual_seed(options.seed + rank)  # dropout and shifts differ between ranks
    speed = train(model, images[:half], labels[:half], options)
    own = torch.ocl.distributed.summary()
    waits = [None] * dist.get_world_size()
    dist.all_gather_object(waits, own.calls["all_reduce"].peers)
    checksum = sum(p.detach().double().sum().item() for p in model.parameters())
    sums = [None] * dist.get_world_size()
    dist.all_gather_object(sums, checksum)
    if rank == 0:
        network_ = model.module.eval()
        with torch.no_grad():
            right = network_(images[half:]).argmax(1) == labels[half:]
        accuracy = right.float().mean().item()
        if len(waits) > 1:
            print(f"\nwhere the time of rank 0 went, without the first epoch:\n{own}")
            for other, seconds in enumerate(waits):
                print(f"rank {other} waited {seconds:.2f} s for its neighbour to come")
        found = {"speed": speed, "accuracy": accuracy, "alike": len(set(sums)) == 1}
        pathlib.Path(options.results).write_text(json.dumps(found))
    dist.destroy_process_group()
    return 0


def launched(ranks: int, arguments: list[str], results: pathlib.Path) -> dict[str, float]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(ranks), __file__, *arguments, "--results", str(results)]
    subprocess.run(command, check=True, env={"OMP_NUM_THREADS": "1", **os.environ})
    return json.loads(results.read_text())


def main() -> int:
    options = options_of(sys.argv[1:])
    if options.results:
        return run_rank(options)
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        print("one process")
        one = launched(1, sys.argv[1:], results)
        print(f"\n{options.ranks} processes")
        several = launched(options.ranks, sys.argv[1:], results)
    print(
        f"\nspeed-up: {several['speed'] / one['speed']:.2f} ({one['speed']:.0f} images/s by one "
        f"process, {several['speed']:.0f} by {options.ranks} on the same host)"
    )
    if not several["alike"]:
        print("the ranks' networks differ")
        return 1
    print(f"test accuracy: {several['accuracy']:.3f}")
    return 0 if several["accuracy"] >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
