"""What can be seen of collectives: the summary, rows of the profiler, DDP's timings, warnings."""

import json
import os
import pathlib
import tempfile
import time
import unittest

import torch
import torch.distributed as dist
import torch_ocl.distributed
from distributed_case import RanksCase
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LATE = 0.5  # seconds that one rank comes later


def store() -> dist.Store:
    return dist.distributed_c10d._get_default_store()


def counted() -> list[tuple[int, int]]:
    torch.ocl.distributed.reset_summary()
    x = torch.ones(1000, device="ocl")
    for _ in range(3):
        dist.all_reduce(x)
    dist.all_gather_into_tensor(torch.empty(2000, device="ocl"), x)
    dist.reduce_scatter_tensor(torch.empty(500, device="ocl"), x)
    parts = torch.empty(1000, device="ocl")
    dist.all_to_all_single(parts, x)
    dist.all_to_all([*parts.chunk(2)], [*x.chunk(2)])
    other = 1 - dist.get_rank()
    dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, parts, other)]
    )[-1].wait()
    dist.barrier()
    found = torch.ocl.distributed.summary()
    for kind, row in found.calls.items():
        assert all(value >= 0 for value in row), (kind, row)
        assert kind in str(found), found
    kinds = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send", "recv", "barrier")
    assert set(found.calls) == set(kinds), found
    assert found.bytes == sum(row.bytes for row in found.calls.values())
    torch.ocl.distributed.reset_summary()
    assert not torch.ocl.distributed.summary().calls
    return [found.calls[kind][:2] for kind in kinds]


def late(copies: bool) -> tuple[float, float, float]:
    """Rank 1 comes when rank 0 has begun, and some time later: what both waited for each other."""
    torch_ocl.distributed._copies = copies
    group = dist.new_group()
    torch_ocl.distributed._copies = False
    x = torch.ones(1000, device="ocl")
    dist.all_reduce(x, group=group)
    torch.ocl.distributed.reset_summary()
    if dist.get_rank() == 0:
        work = dist.all_reduce(x, group=group, async_op=True)
        store().set(f"late {copies}", "1")
        work.wait()
    else:
        store().wait([f"late {copies}"])
        time.sleep(LATE)
        dist.all_reduce(x, group=group)
    row = torch.ocl.distributed.summary().calls["all_reduce"]
    return row.peers, row.waited, row.copies


def behind() -> float:
    """How long a call was behind another one of its group that waited for a rank."""
    x = torch.ones(10, device="ocl")
    torch.ocl.distributed.reset_summary()
    if dist.get_rank() == 0:
        works = [dist.all_reduce(x, async_op=True) for _ in range(2)]
        store().set("behind", "1")
    else:
        store().wait(["behind"])
        time.sleep(LATE)
        works = [dist.all_reduce(x, async_op=True) for _ in range(2)]
    for work in works:
        work.wait()
    return torch.ocl.distributed.summary().calls["all_reduce"].queue


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to("ocl")


def timed() -> None:
    model = DistributedDataParallel(network())
    torch.ocl.distributed.reset_summary()
    for _ in range(5):
        model(torch.ones(4, 64, device="ocl")).sum().backward()
    found = torch.ocl.distributed.summary()
    assert 1 <= found.steps <= 5, found
    assert 0 <= found.exposed < 60, found
    assert "waited for sums" in str(found)
    data = model._get_ddp_logging_data()
    for name in ("avg_forward_compute_time", "avg_backward_comm_time"):
        assert int(data[name]) > 0, data


def profiled() -> None:
    x = torch.ones(3, 5, device="ocl")
    dist.all_reduce(x)
    with torch.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(x)
    with tempfile.TemporaryDirectory() as folder:  # ranges of a thread lie within each other
        with torch.ocl.profiler.profile(path=f"{folder}/trace.json"):
            work = dist.all_reduce(x, async_op=True)
            with torch.profiler.record_function("outer"):
                work.wait()
        trace = json.loads(pathlib.Path(f"{folder}/trace.json").read_text())
    names = [event["name"] for event in trace["traceEvents"] if "name" in event]
    assert "outer" in names and "ocl:all_reduce" not in names, names
    rows = [row for row in profile.events() if row.name == "ocl:all_reduce"]
    assert len(rows) == 1, [row.name for row in profile.events()]
    assert rows[0].input_shapes == [[3, 5]] and rows[0].is_async, rows[0]


def warned() -> str:
    """What rank 0 writes while it waits for rank 1."""
    torch_ocl.distributed._patience = 1.0
    group = dist.new_group()
    torch_ocl.distributed._patience = 10.0
    x = torch.ones(3, 5, device="ocl")
    if dist.get_rank() == 1:
        store().wait(["warned"])
        dist.all_reduce(x, group=group)
        return ""
    kept = os.dup(2)
    with tempfile.TemporaryFile("w+") as file:
        os.dup2(file.fileno(), 2)
        work = dist.all_reduce(x, group=group, async_op=True)
        until = time.monotonic() + 60
        text = ""
        while "waiting" not in text and time.monotonic() < until:
            time.sleep(0.1)
            file.seek(0)
            text = file.read()
        time.sleep(2.5)  # looks again
        store().set("warned", "1")
        work.wait()
        os.dup2(kept, 2)
        file.seek(0)
        return file.read()


class Seen(RanksCase):
    def test_counts(self) -> None:
        for rows in self.together(counted):
            want = [(3, 12000), (1, 8000), (1, 4000), (2, 8000), (1, 4000), (1, 4000), (1, 0)]
            self.assertEqual([tuple(row) for row in rows], want)

    def test_who_waits_for_whom(self) -> None:
        first, second = self.together(late, False)
        # The rest of LATE is for threads that begin late on a busy machine.
        self.assertGreater(first[0], LATE / 2)
        self.assertGreater(first[1], LATE / 2)
        self.assertLess(second[0], first[0])
        self.assertEqual(first[2], 0.0, "mapped")

    def test_queue(self) -> None:
        self.assertGreater(self.together(behind)[0], LATE / 2)

    def test_ddp(self) -> None:
        self.together(timed)

    def test_profiler(self) -> None:
        self.together(profiled)

    def test_warning(self) -> None:
        text = self.together(warned)[0]
        self.assertEqual(text.count("has been waiting"), 1, text)
        self.assertRegex(
            text,
            r"ALLREDUCE, collective 1 of group '.*', rank 0 of 2 \(60 bytes of Float\) of shape "
            r"\[3, 5\] has been waiting for 1 s; ranks that have not been seen in it: 1",
        )

    def test_copies(self) -> None:
        for row in self.together(late, True):
            self.assertGreater(row[2], 0)


if __name__ == "__main__":
    unittest.main()
