"""The order of collectives and messages on ocl: streams, futures, tags, batches, threads, life."""

import functools
import os
import threading
import time
import unittest

import torch
import torch.distributed as dist
from distributed_case import RanksCase

MANY = 1 << 20


def full(value: float, size: int = 1001) -> torch.Tensor:
    return torch.full((size,), float(value), device="ocl")


def same(tensor: torch.Tensor, value: float) -> None:
    assert tensor.cpu().unique().tolist() == [value], (tensor, value)


def streams() -> None:
    """The caller's stream is waited for, and results are ordered on the one that waits."""
    total = sum(range(1, dist.get_world_size() + 1))
    side = torch.ocl.Stream()
    for _ in range(5):
        with torch.ocl.stream(side):
            x = torch.zeros(MANY, device="ocl")
            for _ in range(dist.get_rank() + 1):
                x += 1  # enqueued, perhaps not done yet
            work = dist.all_reduce(x, async_op=True)
        work.wait()  # on the default stream
        same(x * 2, 2 * total)


def freed_while_it_travels() -> None:
    for turn in range(20):
        work = dist.all_reduce(full(turn, MANY), async_op=True)
        torch.full((MANY,), -1.0, device="ocl")  # would get the memory
        work.wait()
        x = full(turn)
        dist.all_reduce(x)
        same(x, turn * dist.get_world_size())


def many_at_once() -> None:
    works = [(k, x := full(k), dist.all_reduce(x, async_op=True)) for k in range(50)]
    for k, x, work in reversed(works):
        work.wait()
        same(x, k * dist.get_world_size())
        assert work.is_completed() and work.is_success() and work.exception() is None


def futures() -> None:
    ranks = dist.get_world_size()
    future = dist.all_reduce(full(1), async_op=True).get_future()
    doubled = future.then(lambda f: f.value()[0] * 2)
    same(doubled.wait(), 2 * ranks)

    def another(f: torch.futures.Future) -> torch.Tensor:
        """Starts a collective and waits for it, as DDP's PowerSGD hook does."""
        x = f.value()[0] + 1
        return dist.all_reduce(x, async_op=True).get_future().wait()[0]

    chain = [dist.all_reduce(full(1), async_op=True).get_future().then(another) for _ in range(1)]
    for result in chain:
        same(result.wait(), (ranks + 1) * ranks)
    # What has been waited for has its future's value: DDP's join() reads it without a wait.
    for _ in range(200):
        work = dist.all_reduce(full(2), async_op=True)
        before = work.get_future()
        work.wait()
        assert before.done()
        same(work.get_future().value()[0], 2 * ranks)


def messages() -> None:
    """Tags received in another order, both directions at once, and none behind collectives."""
    rank, other = dist.get_rank(), 1 - dist.get_rank()
    for turn in range(3):
        values = [full(100 * rank + 10 * turn + tag) for tag in range(4)]
        sends = [dist.isend(x, other, tag=tag) for tag, x in enumerate(values)]
        got = {tag: full(-1) for tag in (3, 1, 0, 2)}
        receives = [dist.irecv(x, other, tag=tag) for tag, x in got.items()]
        for work in sends + receives:
            work.wait()
        for tag, x in got.items():
            same(x, 100 * other + 10 * turn + tag)
    # Messages of one tag keep their order.
    sends = [dist.isend(full(k), other, tag=7) for k in range(10)]
    got = [full(-1) for _ in sends]
    for work in [dist.irecv(x, other, tag=7) for x in got] + sends:
        work.wait()
    for k, x in enumerate(got):
        same(x, k)
    # One rank sends before the collective and the other receives after it.
    x = full(rank)
    if rank == 0:
        work = dist.isend(full(5), 1, tag=1)
        dist.all_reduce(x)
        work.wait()
    else:
        dist.all_reduce(x)
        dist.recv(x, 0, tag=1)
        same(x, 5)
    empty = torch.empty(0, device="ocl")
    for work in (dist.isend(empty, other), dist.irecv(empty.clone(), other)):
        work.wait()


def from_any() -> None:
    rank = dist.get_rank()
    if rank == 0:
        for _ in range(2):
            x = full(-1)
            sender = dist.recv(x, None, tag=3)
            same(x, sender)
            assert sender == 1
    else:
        for _ in range(2):
            dist.send(full(rank), 0, tag=3)


def batches() -> None:
    rank, other = dist.get_rank(), 1 - dist.get_rank()
    x, y = full(rank), full(-1)
    operations = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
    for work in dist.batch_isend_irecv(operations if rank else operations[::-1]):
        work.wait()
    same(y, other)
    tensors = [full(k + rank) for k in range(5)]
    with dist._coalescing_manager(device=torch.device("ocl"), async_ops=True) as block:
        for tensor in tensors:
            dist.all_reduce(tensor)
    block.wait()
    for k, tensor in enumerate(tensors):
        same(tensor, 2 * k + 1)
    inputs = [full(rank + k, 3) for k in range(2)]
    outputs = [torch.empty(6, device="ocl") for _ in inputs]
    with dist._coalescing_manager(device=torch.device("ocl")):
        for output, tensor in zip(outputs, inputs, strict=True):
            dist.all_gather_into_tensor(output, tensor)
    for k, output in enumerate(outputs):
        assert output.tolist() == [k] * 3 + [k + 1] * 3


def objects() -> None:
    rank = dist.get_rank()
    every: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(every, {"rank": rank, "x": torch.ones(2)})
    assert [item["rank"] for item in every] == [0, 1]  # type: ignore[index]
    objects = ["a", 3] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, 0)
    assert objects == ["a", 3]
    dist.monitored_barrier() if dist.get_backend() == "gloo" else dist.barrier()


def several_threads() -> None:
    """Two groups, each used by a thread."""
    groups = [dist.new_group(), dist.new_group()]
    failures = []

    def use(group: dist.ProcessGroup, value: int) -> None:
        try:
            for k in range(30):
                x = full(value + k, 10)
                dist.all_reduce(x, group=group)
                same(x, 2 * (value + k))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(g, 100 * i)) for i, g in enumerate(groups)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    for group in groups:
        dist.destroy_process_group(group)


def functional() -> None:
    from torch.distributed import _functional_collectives as functional

    group, ranks = dist.group.WORLD, dist.get_world_size()
    same(functional.all_reduce(full(1), "sum", group) + 0, ranks)
    assert functional.all_gather_tensor(full(1, 4), 0, group).shape == (4 * ranks,)
    whole = functional.reduce_scatter_tensor(full(1, 4 * ranks), "avg", 0, group)
    assert whole.tolist() == [1.0] * 4


def made_and_destroyed(turns: int) -> tuple[int, int]:
    """How many threads and descriptors came with the groups."""

    def count() -> tuple[int, int]:
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    def turn() -> None:
        group = dist.new_group()
        x = full(1, 10)
        dist.all_reduce(x, group=group)
        same(x, 2)
        dist.destroy_process_group(group)

    for _ in range(10):
        turn()
    before = count()
    for _ in range(turns):
        turn()
    return tuple(b - a for a, b in zip(before, count(), strict=True))


class Order(RanksCase):
    def test_streams(self) -> None:
        self.together(streams)

    def test_tensors_freed_while_they_travel(self) -> None:
        self.together(freed_while_it_travels)

    def test_many_at_once(self) -> None:
        self.together(many_at_once)

    def test_futures(self) -> None:
        self.together(futures)

    def test_messages(self) -> None:
        self.together(messages)

    def test_messages_from_any_rank(self) -> None:
        self.together(from_any)

    def test_batches(self) -> None:
        self.together(batches)

    def test_objects(self) -> None:
        self.together(objects)

    def test_callbacks(self) -> None:
        self.together(from_callbacks)
        self.together(waits_for_the_next)

    def test_several_threads(self) -> None:
        self.together(several_threads)

    def test_functional_collectives(self) -> None:
        self.together(functional)


def from_callbacks() -> None:
    """What a future's callback starts comes before what was started meanwhile, on each rank."""
    rank = dist.get_rank()
    sums = []
    for step in range(20):
        inner = torch.full((3,), rank + 1.0, device="ocl")

        def follow(future: torch.futures.Future, inner: torch.Tensor = inner) -> torch.Tensor:
            if rank == 0:
                time.sleep(0.01)  # here later than on the other rank
            first = dist.all_reduce(inner, async_op=True)
            then = dist.all_reduce(inner.new_full((4,), 1.0), async_op=True)
            first.wait()
            then.get_future().wait()
            return inner

        x = torch.full((1000,), step + 1.0, device="ocl")
        future = dist.all_reduce(x, async_op=True).get_future().then(follow)
        y = torch.full((7,), rank + step + 0.0, device="ocl")
        other = dist.all_reduce(y, async_op=True)
        other.wait()
        sums.append((future.wait().tolist(), y[0].item(), x[0].item()))
    assert sums == [([3.0] * 3, 2.0 * k + 1, 2.0 * k + 2) for k in range(20)], sums


def waits_for_the_next() -> None:
    """A callback may wait for what was started behind its own call."""
    x, y = torch.ones(3, device="ocl"), torch.ones(5, device="ocl")
    if dist.get_rank() == 1:
        time.sleep(0.5)  # so that the other rank's callback is there before the results
        dist.all_reduce(x)
        dist.all_reduce(y)
        return
    future = dist.all_reduce(x, async_op=True).get_future()
    later = []
    ready = threading.Event()

    def follow(_: torch.futures.Future) -> float:
        ready.wait()
        later[0].wait()
        return y.sum().item()

    chained = future.then(follow)
    later.append(dist.all_reduce(y, async_op=True))
    ready.set()
    assert chained.wait() == 10.0


class Copied(RanksCase):
    copies = True

    def test_all(self) -> None:
        for function in (streams, freed_while_it_travels, many_at_once, messages, batches):
            with self.subTest(function.__name__):
                self.together(function)


class GlooByName(RanksCase):
    """A script's ``init_process_group("gloo")``, with tensors of both kinds."""

    backend = "gloo"

    def test_both_kinds(self) -> None:
        self.together(objects)
        self.together(functools.partial(streams))
        self.together(messages)


class Life(RanksCase):
    def test_groups_leave_nothing(self) -> None:
        for threads, descriptors in self.together(made_and_destroyed, 200):
            self.assertLess(threads, 8)
            self.assertEqual(descriptors, 0)


if __name__ == "__main__":
    unittest.main()
