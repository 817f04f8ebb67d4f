"""Copies between the host and devices, and between two devices, in GB/s.

usage: transfers.py [--device ocl|cuda] [--mib 256] [--rounds 9]

Each device is measured from and to ordinary and page-locked memory; each pair of devices as a
ratio to the slower of the two transfers that a copy consists of, by the better kind of memory.
Numbers are random, what arrived is compared. The fastest round counts: these rates have a limit,
and everything else slows them down. With one device PoCL can be asked for two:
POCL_DEVICES="pthread pthread".
"""

from __future__ import annotations

import argparse
import itertools
import time

import torch


def rate(target: torch.Tensor, source: torch.Tensor, rounds: int) -> float:
    """GB/s of a copy after which everything has arrived; the first round is not counted."""
    devices = {x.device for x in (target, source) if not x.is_cpu}
    times = []
    for _ in range(rounds + 1):
        target.view(torch.uint8).fill_(0xFF)
        for device in devices:
            torch.get_device_module(device).synchronize(device)
        begin = time.perf_counter()
        target.copy_(source, non_blocking=True)
        for device in devices:
            torch.get_device_module(device).synchronize(device)
        times.append(time.perf_counter() - begin)
    if not torch.equal(target.cpu(), source.cpu()):
        raise SystemExit(f"what arrived on {target.device} from {source.device} is wrong")
    return source.nbytes / min(times[1:]) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="ocl")
    parser.add_argument("--mib", type=float, default=256)
    parser.add_argument("--rounds", type=int, default=9)
    a = parser.parse_args()
    if a.device == "ocl":
        import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
    module = torch.get_device_module(a.device)
    host = torch.randint(-100, 100, (int(a.mib * (1 << 18)),), dtype=torch.int32)
    pinned = host.pin_memory()
    to_device, to_host = {}, {}
    print(f"{a.mib:g} MiB, GB/s: to the device (ordinary, pinned), to the host (ordinary, pinned)")
    for index in range(module.device_count()):
        there = host.to(f"{a.device}:{index}")
        ups = [rate(torch.empty_like(there), source, a.rounds) for source in (host, pinned)]
        downs = [rate(torch.empty_like(x), there, a.rounds) for x in (host,)]
        downs.append(rate(torch.empty_like(pinned).pin_memory(), there, a.rounds))
        to_device[index], to_host[index] = max(ups), max(downs)
        figures = "".join(f"{x:8.2f}" for x in (*ups, *downs))
        print(f"{a.device}:{index}{figures}   {module.get_device_name(index)}")
    for i, j in itertools.permutations(to_host, 2):
        source = host.to(f"{a.device}:{i}")
        reached = rate(torch.empty_like(source, device=f"{a.device}:{j}"), source, a.rounds)
        share = reached / min(to_host[i], to_device[j])
        pair = f"{a.device}:{i} to {a.device}:{j}"
        print(f"{pair} {reached:8.2f}   {share:.2f} of the slower side")


if __name__ == "__main__":
    main()
