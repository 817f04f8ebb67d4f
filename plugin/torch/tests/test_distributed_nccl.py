"""torch.distributed on ocl over NCCL: every collective on device memory, and the refusals.

Skipped, with the reason, but for the refusals, where there is no NVIDIA device. What needs two
devices is skipped where there is one.
"""

from __future__ import annotations

import subprocess
import sys
import unittest

import distributed_case
import torch
import torch.distributed as dist
from torch_ocl.distributed import _engines

SETTINGS = {"OCLTENSOR_SHARED_MEMORY": "1", "OCLTENSOR_DISTRIBUTED_ENGINE": "nccl"}
AVAILABLE = torch.ocl.is_available() and torch.ocl.get_device_properties(0).vendor.startswith(
    "NVIDIA"
)
NUMBERS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64)
NUMBERS += (torch.int8, torch.uint8)


def data(dtype: torch.dtype, rank: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3 + rank)
    return torch.randint(1, 5, shape, generator=generator).to(dtype)


def reductions() -> list[str]:
    """What is wrong of sums, averages and the like, of all types, on this rank."""
    rank, size = dist.get_rank(), dist.get_world_size()
    wrong = []
    for dtype in NUMBERS:
        parts = [data(dtype, k, 7, 40) for k in range(size)]
        wide = torch.stack(parts).to(torch.float64)
        for name, expected in {
            "SUM": wide.sum(0),
            "AVG": wide.mean(0) if dtype.is_floating_point else wide.sum(0).div(size).trunc(),
            "PRODUCT": wide.prod(0),
            "MIN": wide.amin(0),
            "MAX": wide.amax(0),
        }.items():
            x = parts[rank].to("ocl")
            dist.all_reduce(x, getattr(dist.ReduceOp, name))
            if not torch.equal(x.cpu().double(), expected):
                wrong.append(f"all_reduce {dtype} {name}")
            x = parts[rank].to("ocl")
            dist.reduce(x, size - 1, getattr(dist.ReduceOp, name))
            own = expected if rank == size - 1 else parts[rank].double()
            if not torch.equal(x.cpu().double(), own):
                wrong.append(f"reduce {dtype} {name}")
    x = data(torch.int32, rank, 9).to("ocl")  # NCCL has none: by the other engine
    dist.all_reduce(x, dist.ReduceOp.BOR)
    expected = data(torch.int32, 0, 9)
    for k in range(1, size):
        expected |= data(torch.int32, k, 9)
    if not torch.equal(x.cpu(), expected):
        wrong.append("BOR")
    return wrong


def moves() -> list[str]:
    rank, size = dist.get_rank(), dist.get_world_size()
    wrong = []

    def check(name: str, got: torch.Tensor, expected: torch.Tensor) -> None:
        if not torch.equal(got.cpu(), expected):
            wrong.append(name)

    for dtype in (*NUMBERS, torch.bool, torch.complex64):
        parts = [data(dtype, k, 5, 3) for k in range(size)]
        mine = parts[rank].to("ocl")
        x = mine.clone()
        dist.broadcast(x, size - 1)
        check(f"broadcast {dtype}", x, parts[-1])
        lists = [torch.empty_like(mine) for _ in parts]
        dist.all_gather(lists, mine)
        check(f"all_gather {dtype}", torch.stack(lists), torch.stack(parts))
        whole = torch.empty(size * 5, 3, dtype=dtype, device="ocl")
        dist.all_gather_into_tensor(whole, mine)
        check(f"all_gather_into_tensor {dtype}", whole, torch.cat(parts))
        lists = [torch.empty_like(mine) for _ in parts] if rank == 0 else None
        dist.gather(mine, lists, 0)
        if lists is not None:
            check(f"gather {dtype}", torch.stack(lists), torch.stack(parts))
        x = torch.empty_like(mine)
        dist.scatter(x, [p.to("ocl") for p in parts] if rank == 0 else None, 0)
        check(f"scatter {dtype}", x, parts[rank])
        sent = torch.cat([data(dtype, 10 * rank + k, 2, 3) for k in range(size)]).to("ocl")
        x = torch.empty_like(sent)
        dist.all_to_all_single(x, sent)
        expected = torch.cat([data(dtype, 10 * k + rank, 2, 3) for k in range(size)])
        check(f"all_to_all_single {dtype}", x, expected)
    for dtype in NUMBERS:
        every = [
            torch.cat([data(dtype, 10 * k + j, 2, 3) for j in range(size)]) for k in range(size)
        ]
        total = torch.stack(every).double().sum(0)[2 * rank : 2 * rank + 2]
        x = torch.empty(2, 3, dtype=dtype, device="ocl")
        dist.reduce_scatter_tensor(x, every[rank].to("ocl"))
        check(f"reduce_scatter_tensor {dtype}", x, total.to(dtype))
        x = torch.empty(2, 3, dtype=dtype, device="ocl")
        dist.reduce_scatter(x, [p.clone() for p in every[rank].to("ocl").chunk(size)])
        check(f"reduce_scatter {dtype}", x, total.to(dtype))
    host = data(torch.float32, rank, 4)  # the CPU's go by the other engine
    dist.all_reduce(host)
    check("all_reduce of the CPU", host, sum(data(torch.float32, k, 4) for k in range(size)))
    return wrong


def work_before_and_after() -> float:
    """Kernels that are still running before a collective, and right behind it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.zeros(1 << 20, device="ocl")
    total = 0.0
    for step in range(50):
        x.add_(step + rank)
        dist.all_reduce(x)
        x.mul_(0.5)
        total = (total * size + size * step + sum(range(size))) * 0.5
    return float((x.cpu().double() - total).abs().max()) / total


def messages() -> list[bool]:
    """Around the ring, with two tags that are received in the other order."""
    rank, size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    works = [
        dist.isend(data(torch.float32, 10 * rank + tag, 50).to("ocl"), right, tag=tag)
        for tag in (1, 2)
    ]
    fine = []
    for tag in (2, 1):
        x = torch.empty(50, device="ocl")
        dist.recv(x, left, tag=tag)
        fine.append(torch.equal(x.cpu(), data(torch.float32, 10 * left + tag, 50)))
    for work in works:
        work.wait()
    return fine


def calls_that_differ() -> str:
    x = torch.ones(1000, device="ocl")
    try:
        if dist.get_rank() == 0:
            dist.all_reduce(x)
        else:
            dist.broadcast(x, 0)
    except RuntimeError as error:
        return str(error)
    return "no error"


def choose() -> str:
    return _engines.choose().name


def take_device() -> None:
    torch.ocl.set_device(dist.get_rank())


@unittest.skipIf(AVAILABLE, "NVIDIA's device has what NCCL needs")
class Refused(distributed_case.RanksCase):
    size, backend, env = 1, None, SETTINGS

    def test_says_what_is_missing(self) -> None:
        with self.assertRaisesRegex(AssertionError, r"nccl needs libnccl\.so\.2.*SHARED_MEMORY=1"):
            self.together(choose)


class Choice(unittest.TestCase):
    def test_no_device_is_opened(self) -> None:
        """DeviceMesh takes LOCAL_RANK's device where none has been opened; and so may a fork."""
        script = (
            "import torch, torch_ocl\n"
            "from torch_ocl.distributed import _engines\n"
            "print(_engines.choose().name, torch.ocl.is_initialized())"
        )
        said = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        self.assertEqual(said.stdout.split(), ["gloo", "False"], said.stderr)


class NcclCase(distributed_case.RanksCase):
    """Each rank with a device of its own."""

    size, env = 2, SETTINGS

    @classmethod
    def setUpClass(cls) -> None:
        names = [torch.ocl.get_device_name(k) for k in range(torch.ocl.device_count())]
        if sum("NVIDIA" in name for name in names[: cls.size]) < cls.size:
            raise unittest.SkipTest(f"the first {cls.size} devices are not all NVIDIA's: {names}")
        super().setUpClass()
        cls.ranks.run(take_device)


class OneRank(NcclCase):
    size = 1

    def test_is_chosen(self) -> None:
        self.assertEqual(self.together(choose), ["nccl"] * self.size)

    def test_reductions(self) -> None:
        self.assertEqual(self.together(reductions), [[]] * self.size)

    def test_moves(self) -> None:
        self.assertEqual(self.together(moves), [[]] * self.size)

    def test_order(self) -> None:
        for difference in self.together(work_before_and_after):
            self.assertLess(difference, 1e-5)  # 50 roundings of float32


class TwoRanks(OneRank):
    size = 2

    def test_messages(self) -> None:
        self.assertEqual(self.together(messages), [[True, True]] * self.size)


class CallsThatDiffer(NcclCase):
    def test_both_ranks_are_told(self) -> None:
        for said in self.together(calls_that_differ):
            self.assertRegex(said, "different collectives.*ALLREDUCE|different collectives.*BROAD")


if __name__ == "__main__":
    unittest.main()
