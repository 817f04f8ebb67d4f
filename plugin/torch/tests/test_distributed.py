"""Collectives of torch.distributed on ocl, against values that each rank computes by itself."""

import functools
import operator
import unittest
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
import torch_ocl.distributed
from distributed_case import RanksCase, raises

SUMMED = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32)
SUMMED += (torch.int8, torch.uint8)
MOVED = (*SUMMED, torch.bool, torch.int16, torch.complex64, torch.float8_e4m3fn, torch.uint16)
MANY = 1 << 20
SIZES = (0, 1, 1001)


def tensors(
    types: tuple[torch.dtype, ...] = MOVED, parts: int = 1
) -> Iterator[list[list[torch.Tensor]]]:
    """For each type and size: of every rank, `parts` tensors on the CPU."""
    for dtype in types:
        for size in (*SIZES, MANY) if dtype in (torch.float32, torch.bfloat16) else SIZES:
            yield [
                [value(dtype, size, 10 * rank + part) for part in range(parts)]
                for rank in range(dist.get_world_size())
            ]


def value(dtype: torch.dtype, size: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype in (torch.float16, torch.bfloat16):
        return torch.randn(size, generator=generator).to(dtype)
    # Whole numbers have exact sums.
    numbers = torch.randint(0, 8, (size,), generator=generator)
    return numbers.to(dtype)


def summed(all_ranks: list[torch.Tensor]) -> torch.Tensor:
    """The sum in the order of the ranks, rounded once."""
    wide = [x.float() if x.dtype in (torch.float16, torch.bfloat16) else x for x in all_ranks]
    return functools.reduce(operator.add, wide).to(all_ranks[0].dtype)


def check(got: torch.Tensor, want: torch.Tensor, what: str) -> None:
    got = got.cpu()
    same = got.shape == want.shape and got.dtype == want.dtype
    if same and got.dtype.is_floating_point and got.element_size() == 1:
        got, want = got.view(torch.uint8), want.view(torch.uint8)
    if not same or not torch.equal(got, want):
        raise AssertionError(f"{what} of {want.dtype}, {want.numel()}: {got} instead of {want}")


def moved() -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    last = ranks - 1
    for (own, *_), *others in [(all_[rank], *all_) for all_ in tensors(parts=ranks)]:
        every = [parts[0] for parts in others]
        mine = [parts[rank] for parts in others]  # what each rank has for this one
        device = own.to("ocl")
        empty = functools.partial(torch.empty_like, device)

        dist.broadcast(x := device.clone(), last)
        check(x, every[last], "broadcast")
        dist.all_gather(got := [empty() for _ in every], device)
        for x, want in zip(got, every, strict=True):
            check(x, want, "all_gather")
        whole = torch.empty(ranks * len(own), dtype=own.dtype, device="ocl")
        dist.all_gather_into_tensor(whole, device)
        check(whole, torch.cat(every), "all_gather_into_tensor")
        stacked = torch.empty(ranks, len(own), dtype=own.dtype, device="ocl")
        dist.all_gather_into_tensor(stacked, device)
        check(stacked, torch.stack(every), "all_gather_into_tensor, stacked")
        got = [empty() for _ in every] if rank == last else None
        dist.gather(device, got, last)
        for x, want in zip(got or [], every, strict=rank == last):
            check(x, want, "gather")
        parts = [part.to("ocl") for part in others[rank]]
        dist.scatter(x := empty(), parts if rank == last else None, last)
        check(x, others[last][rank], "scatter")
        dist.all_to_all(got := [empty() for _ in every], parts)
        for x, want in zip(got, mine, strict=True):
            check(x, want, "all_to_all")
        dist.all_to_all_single(x := torch.empty_like(whole), torch.cat(parts))
        check(x, torch.cat(mine), "all_to_all_single")


def uneven() -> None:
    """Rank k sends k + i + 1 rows of 3 to rank i."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rows = [torch.arange(3 * (rank + i + 1)).reshape(-1, 3) + 100 * rank + i for i in range(ranks)]
    want = [torch.arange(3 * (i + rank + 1)).reshape(-1, 3) + 100 * i + rank for i in range(ranks)]
    got = torch.empty(sum(map(len, want)), 3, dtype=torch.int64, device="ocl")
    dist.all_to_all_single(
        got, torch.cat(rows).to("ocl"), [len(x) for x in want], [len(x) for x in rows]
    )
    check(got, torch.cat(want), "uneven all_to_all_single")
    lists = [torch.empty_like(x, device="ocl") for x in want]
    dist.all_to_all(lists, [x.to("ocl") for x in rows])
    check(torch.cat(lists), torch.cat(want), "uneven all_to_all")


def sums() -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for all_ranks in tensors(SUMMED, parts=ranks):
        every = [parts[0] for parts in all_ranks]
        device, want = every[rank].to("ocl"), summed(every)
        dist.all_reduce(x := device.clone())
        check(x, want, "all_reduce")
        dist.reduce(x := device.clone(), ranks - 1)
        check(x, want if rank == ranks - 1 else every[rank], "reduce")
        want = summed([parts[rank] for parts in all_ranks])
        parts = [part.to("ocl") for part in all_ranks[rank]]
        dist.reduce_scatter(x := torch.empty_like(device), parts)
        check(x, want, "reduce_scatter")
        dist.reduce_scatter_tensor(x := torch.empty_like(device), torch.cat(parts))
        check(x, want, "reduce_scatter_tensor")
        dist.all_reduce_coalesced(pair := [device.clone(), parts[0].clone()])
        check(pair[0], summed(every), "all_reduce_coalesced")


def operations() -> None:
    op, rank, ranks = dist.ReduceOp, dist.get_rank(), dist.get_world_size()
    rows = {
        op.PRODUCT: lambda a, b: a * b,
        op.MIN: torch.minimum,
        op.MAX: torch.maximum,
    }
    bits = {op.BAND: torch.bitwise_and, op.BOR: torch.bitwise_or, op.BXOR: torch.bitwise_xor}

    def compare(kind: dist.ReduceOp, every: list[torch.Tensor], want: torch.Tensor) -> None:
        dist.all_reduce(x := every[rank].to("ocl"), kind)
        check(x, want.to(every[0].dtype), str(kind))
        whole = torch.cat([every[rank]] * ranks).to("ocl")
        dist.reduce_scatter_tensor(x := torch.empty_like(every[0], device="ocl"), whole, kind)
        check(x, want.to(every[0].dtype), f"reduce_scatter_tensor, {kind}")

    for dtype in SUMMED:
        every = [value(dtype, 37, seed) for seed in range(ranks)]
        wide = [x.float() if dtype.is_floating_point and dtype.itemsize == 2 else x for x in every]
        for kind, function in (rows if dtype.is_floating_point else rows | bits).items():
            compare(kind, every, functools.reduce(function, wide))
        total = functools.reduce(operator.add, wide)
        rounding = None if dtype.is_floating_point else "trunc"
        compare(op.AVG, every, torch.div(total, ranks, rounding_mode=rounding))
    every = [value(torch.bfloat16, 37, seed) for seed in range(ranks)]
    scaled = functools.reduce(operator.add, [x.float() * 0.5 for x in every])
    compare(dist._make_nccl_premul_sum(0.5), every, scaled)
    compare(dist._make_nccl_premul_sum(torch.tensor(0.5, device="ocl")), every, scaled)
    bools = [value(torch.bool, 37, seed) for seed in range(ranks)]
    compare(op.SUM, bools, functools.reduce(operator.or_, bools))
    compare(op.PRODUCT, bools, functools.reduce(operator.and_, bools))
    compare(op.BXOR, bools, functools.reduce(operator.xor, bools))
    complexes = [torch.complex(*value(torch.float32, 74, s).chunk(2)) for s in range(ranks)]
    dist.all_reduce(x := complexes[rank].to("ocl"))
    check(x, functools.reduce(operator.add, complexes), "all_reduce")


def refused() -> None:
    rank = dist.get_rank()
    ones = functools.partial(torch.ones, device="ocl")
    calls: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (TypeError, "no reductions of Short", lambda: dist.all_reduce(ones(3, dtype=torch.int16))),
        (
            TypeError,
            "no reductions of UInt16",
            lambda: dist.all_reduce(ones(3, dtype=torch.uint16)),
        ),
        (ValueError, "averages.*bool", lambda: dist.all_reduce(ones(2) > 0, dist.ReduceOp.AVG)),
        (ValueError, "bitwise", lambda: dist.all_reduce(ones(2), dist.ReduceOp.BAND)),
        (NotImplementedError, "dense", lambda: dist.all_reduce(torch.eye(3).to_sparse().to("ocl"))),
        (ValueError, "contiguous", lambda: dist.all_reduce(ones(4, 4)[:, ::2])),
        (ValueError, "[Ii]nvalid|rank", lambda: dist.broadcast(ones(2), 9)),
        (ValueError, "elements", lambda: dist.all_gather_into_tensor(ones(3), ones(2))),
        (ValueError, "size", lambda: dist.all_gather([ones(2), ones(3)], ones(2))),
        (ValueError, "tensors in a list", lambda: dist.all_gather([ones(2)], ones(2))),
        (
            RuntimeError,
            "[Ss]plit",
            lambda: dist.all_to_all_single(ones(4), ones(4), [1, 2], [2, 2]),
        ),
    ]
    for kind, text, call in calls:
        raises(kind, text, call)
    dist.all_reduce(x := ones(3))  # nothing was sent
    check(x, torch.full((3,), float(dist.get_world_size())), f"rank {rank}")


def rounded_once() -> list[list[int]]:
    """256 + 1 + 1 + 1 in bfloat16 is 260 by float32, and 256 where every sum is rounded."""
    x = torch.full((1003,), 256.0 if dist.get_rank() == 0 else 1.0, dtype=torch.bfloat16)
    once = x.to("ocl")
    dist.all_reduce(once)
    generator = torch.Generator().manual_seed(dist.get_rank())
    y = torch.randn(1003, generator=generator).to(torch.bfloat16).to("ocl")
    again = y.clone()
    dist.all_reduce(y)
    dist.all_reduce(again)
    assert torch.equal(y.cpu(), again.cpu())
    return [once.cpu().view(torch.int16).unique().tolist(), y.cpu().view(torch.int16).tolist()]


def group_of(ranks: list[int]) -> None:
    group = dist.new_group(ranks)
    if dist.get_rank() in ranks:
        x = torch.ones(2, device="ocl")
        dist.all_reduce(x, group=group)
        check(x, torch.full((2,), float(len(ranks))), "all_reduce of a group")
        dist.destroy_process_group(group)
    dist.barrier()


class Two(RanksCase):
    def test_what_is_moved(self) -> None:
        self.together(moved)

    def test_uneven_parts(self) -> None:
        self.together(uneven)

    def test_sums(self) -> None:
        self.together(sums)

    def test_operations(self) -> None:
        self.together(operations)

    def test_refused_before_anything_is_sent(self) -> None:
        self.together(refused)


class Copied(Two):
    """The same where device memory cannot be mapped."""

    copies = True


def long_ones(copying: list[int]) -> None:
    """Calls that go in chunks, with a last one that is shorter; some ranks copy, others map."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch_ocl.distributed._copies = rank in copying
    group = dist.new_group()
    torch_ocl.distributed._copies = False
    count = 5_000_011  # 20 MB: three chunks of 8 MiB
    host = [torch.randint(-99, 99, (ranks * count,), dtype=torch.int32) for _ in range(2)]
    for k, x in enumerate(host):
        x.copy_(torch.arange(ranks * count, dtype=torch.int32) % 977 * (k + 1))

    def of(k: int) -> torch.Tensor:
        return host[k].to("ocl")

    def same(x: torch.Tensor, want: torch.Tensor) -> None:
        assert torch.equal(x.cpu(), want)

    for root in range(ranks):
        x = of(rank)[3:]  # an offset that no page has
        dist.broadcast(x, root, group=group)
        same(x, host[root][3:])
    x = of(rank)
    dist.all_reduce(x, group=group)
    x.add_(1)  # behind the results
    same(x, sum(host) + 1)
    for dtype in (torch.float16, torch.float32):
        x = of(rank).to(dtype)
        dist.all_reduce(x, dist.ReduceOp.AVG, group=group)
        want = sum(x.to(dtype).float() for x in host) / ranks
        same(x, want.to(dtype))
    own = [h[:count] for h in host]
    x, everything = own[rank].to("ocl"), torch.full((ranks * count,), -1, dtype=torch.int32)
    everything = everything.to("ocl")
    dist.all_gather_into_tensor(everything, x, group=group)
    same(everything, torch.cat(own))
    parts = [torch.full_like(x, -1) for _ in range(ranks)]
    dist.all_gather(parts, x, group=group)
    for part, want in zip(parts, own, strict=True):
        same(part, want)
    everything = torch.full_like(everything, -1)
    place = everything.chunk(ranks)[rank].copy_(x)
    dist.all_gather_into_tensor(everything, place, group=group)
    same(everything, torch.cat(own))
    want = sum(host).chunk(ranks)[rank]
    x, result = of(rank), torch.full((count,), -1, dtype=torch.int32, device="ocl")
    dist.reduce_scatter_tensor(result, x, group=group)
    same(result, want)
    place = x.chunk(ranks)[rank]
    dist.reduce_scatter_tensor(place, x, group=group)
    same(place, want)
    dist.destroy_process_group(group)


class Chunks(RanksCase):
    def test_where_ranks_copy_and_where_they_do_not(self) -> None:
        for copying in ([0, 1], [1], []):
            with self.subTest(copying=copying):
                self.together(long_ones, copying)


class Four(RanksCase):
    size = 4

    def test_sums(self) -> None:
        self.together(operations)
        self.together(uneven)

    def test_bfloat16_is_rounded_once(self) -> None:
        answers = self.together(rounded_once)
        bits = int(torch.tensor(260.0, dtype=torch.bfloat16).view(torch.int16))
        self.assertEqual(answers[0][0], [bits])
        self.assertEqual(answers, [answers[0]] * 4)

    def test_groups(self) -> None:
        self.together(group_of, [1, 3])
        self.together(group_of, [2, 0, 1])


if __name__ == "__main__":
    unittest.main()
