"""Ranks that die, stay away or disagree: errors that say which call, group and rank; no hang."""

import datetime
import os
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from distributed_case import Ranks, RanksCase, raises

NOTICED = 10.0  # seconds until survivors have to know, on an idle machine
LOADED = 6.0  # how much slower the machine may be


def ones() -> torch.Tensor:
    return torch.ones(1001, device="ocl")


def summed() -> None:
    dist.all_reduce(ones())


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def error_of_all_reduce(group: Any = None) -> tuple[float, str]:
    begin = time.monotonic()
    text = raises(dist.DistBackendError, "ALLREDUCE", lambda: dist.all_reduce(ones(), group=group))
    return time.monotonic() - begin, text


def one_comes_late(limit: float, seconds: float) -> tuple[float, str]:
    """In a group with this limit, rank 1 comes some seconds after the others."""
    group = dist.new_group()
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=limit), group)
    dist.all_reduce(ones(), group=group)
    if dist.get_rank() == 1:
        time.sleep(seconds)
    answer = error_of_all_reduce(group)
    dist.destroy_process_group(group)
    dist.all_reduce(ones())  # another group goes on
    return answer


def later_calls() -> None:
    """A group that has failed says so at once, and can be left."""
    raises(dist.DistBackendError, "has ended.*ALLREDUCE", lambda: dist.broadcast(ones(), 0))
    dist.destroy_process_group()


def aborted() -> None:
    """A call that waits for ranks that do not come ends by abort, and with it the group."""
    group = dist.new_group()
    if dist.get_rank() == 0:
        work = dist.all_reduce(ones(), group=group, async_op=True)
        future = work.get_future()
        receive = dist.irecv(ones(), 1, group=group, tag=9)
        time.sleep(0.5)
        group.abort()
        for wait in (work.wait, future.wait, receive.wait):
            raises(dist.DistBackendError, "aborted", wait)
        raises(dist.DistBackendError, "aborted", lambda: dist.all_reduce(ones(), group=group))
    dist.barrier()
    dist.destroy_process_group(group)
    x = ones()
    dist.all_reduce(x)  # the other group goes on
    assert x[0].item() == 2


def forked() -> None:
    dist.all_reduce(ones())
    child = os.fork()
    if child == 0:
        try:
            raises(RuntimeError, "was forked", lambda: dist.all_reduce(torch.ones(2)))
            dist.destroy_process_group()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    dist.all_reduce(ones())


def other_shape() -> str:
    x = torch.ones(2 + dist.get_rank(), device="ocl")
    return raises(RuntimeError, "mismatch", lambda: dist.all_reduce(x))


def refused_tag() -> None:
    other = (dist.get_rank() + 1) % dist.get_world_size()
    raises(ValueError, "tag", lambda: dist.send(ones(), other, tag=2**31 - 1))


def different(which: str) -> str:
    """Rank 1 calls something else, in a group of its own, which ends with it; the text of the error
    that each rank gets, at the latest from another one."""
    is_other = dist.get_rank() == 1
    group = dist.new_group()
    x = torch.full((7,), 3.0, device="ocl")
    few = torch.full((5,), 3.0, device="ocl")
    bytes_ = torch.ones(28, dtype=torch.uint8, device="ocl")
    parts = torch.empty(3, 7, device="ocl")
    calls: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "size": (
            lambda: dist.all_reduce(x, group=group),
            lambda: dist.all_reduce(few, group=group),
        ),
        "type": (
            lambda: dist.broadcast(x, 0, group=group),
            lambda: dist.broadcast(bytes_, 0, group=group),
        ),
        "root": (
            lambda: dist.broadcast(x, 0, group=group),
            lambda: dist.broadcast(x, 1, group=group),
        ),
        "reduction": (
            lambda: dist.all_reduce(x, group=group),
            lambda: dist.all_reduce(x, dist.ReduceOp.MAX, group=group),
        ),
        "call": (
            lambda: dist.all_gather_into_tensor(parts, x, group=group),
            lambda: dist.barrier(group=group),
        ),
    }
    text = raises(dist.DistBackendError, "different collectives", calls[which][is_other])
    dist.barrier()  # of the other group
    dist.destroy_process_group(group)
    return text


class Different(RanksCase):
    size = 3

    def test_calls_that_differ_between_ranks(self) -> None:
        for which, words in {
            "size": ("of 7 Float", "of 5 Float"),
            "type": ("of 7 Float", "of 28 Byte"),
            "root": ("with root 0", "with root 1"),
            "reduction": ("by SUM", "by MAX"),
            "call": ("of 7 Float", "BARRIER"),
        }.items():
            with self.subTest(which):
                texts = self.together(different, which)
                for word in words:
                    self.assertIn(word, texts[1])

    def test_no_tag_meets_what_ranks_compare(self) -> None:
        self.together(refused_tag)


class Killed(unittest.TestCase):
    def test_the_others_end(self) -> None:
        ranks = Ranks(3)
        ranks.run(summed)
        ranks.begin(die, ranks=[2])
        ranks.processes[2].join()
        ranks.begin(error_of_all_reduce, ranks=[0, 1])
        answers = [ranks.answer(rank) for rank in (0, 1)]
        for is_right, answer in answers:
            self.assertTrue(is_right, answer)
            seconds, text = answer
            self.assertLess(seconds, NOTICED * LOADED, text)
            self.assertRegex(text, r"collective 2 of group '\w+'")
        self.assertTrue(any("had not come: 2" in text for _, (_, text) in answers), answers)
        ranks.begin(later_calls, ranks=[0, 1])
        for rank in (0, 1):
            self.assertEqual(ranks.answer(rank), (True, None))
        self.assertEqual(ranks.end(60), [0, 0, -signal.SIGKILL])


class Late(RanksCase):
    def test_after_the_limit(self) -> None:
        (seconds, text), (_, heard) = self.together(one_comes_late, 3.0, 12.0)
        self.assertGreater(seconds, 2)
        self.assertLess(seconds, 3 + NOTICED * LOADED)
        self.assertRegex(text, r"rank 0 of 2 \(4004 bytes of Float\) failed.*had not come: 1")
        self.assertIn("ALLREDUCE", heard)


class Ended(RanksCase):
    def test_abort(self) -> None:
        self.together(aborted)

    def test_fork(self) -> None:
        self.together(forked)


class Detail(RanksCase):
    env = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}

    def test_other_shapes(self) -> None:
        self.together(other_shape)


SCRIPT = """
import torch, torch.distributed as dist, torch_ocl
dist.init_process_group("ocl", store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(5, device="ocl")
works = [dist.all_reduce(x, async_op=True) for _ in range(20)]
receive = dist.distributed_c10d._get_default_group().recv_anysource([x], 5)
print("end", flush=True)
"""


class ProcessEnd(unittest.TestCase):
    def test_with_work_in_flight(self) -> None:
        begin = time.monotonic()
        done: Any = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)
        self.assertLess(time.monotonic() - begin, 2 * NOTICED * LOADED)


if __name__ == "__main__":
    unittest.main()
