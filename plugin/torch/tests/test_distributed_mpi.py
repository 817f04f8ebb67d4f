"""torch.distributed on ocl over MPI: ranks that mpirun starts, which run the collectives' tests."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_ocl.distributed  # noqa: F401
from distributed_case import raises
from torch_ocl.distributed import _engines

HERE = pathlib.Path(__file__)
MPIRUN = shutil.which("mpirun", path=str(pathlib.Path(sys.executable).parent)) or ""
HAS_MPI = importlib.util.find_spec("mpi4py") is not None and bool(MPIRUN)
LIMIT = 300.0  # seconds: what hangs is to fail, what is slow on a busy machine is not


def mpirun(size: int, what: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs the function `what` of this file in `size` ranks."""
    settings = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_btl": "self,sm",  # one host: no network of this machine is looked at
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.run(
        [MPIRUN, "-n", str(size), sys.executable, str(HERE), what],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        env={**os.environ, **settings, **env},
    )


def collectives() -> None:
    import test_distributed as tests

    dist.init_process_group(init_method="mpi://")
    assert _engines.choose().name == "mpi"
    tests.moved()
    tests.uneven()
    tests.sums()
    tests.operations()
    tests.group_of([1, 0])
    if dist.get_world_size() == 2:
        tests.refused()
    else:
        tests.group_of([2, 0, 1])
        bits = int(torch.tensor(260.0, dtype=torch.bfloat16).view(torch.int16))
        assert tests.rounded_once()[0] == [bits]


def messages() -> None:
    dist.init_process_group("ocl", init_method="mpi://")
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    x = torch.arange(1001.0, device="ocl")
    got = torch.empty_like(x)
    if rank == 0:
        works = [dist.isend(x + tag, last, tag=tag) for tag in (3, 5)]
        [work.wait() for work in works]
        dist.recv(got)  # from any rank
        assert torch.equal(got, x - 1)
    elif rank == last:
        second = torch.empty_like(x)
        dist.recv(second, 0, tag=5)  # in the other order
        dist.recv(got, 0, tag=3)
        assert torch.equal(got, x + 3) and torch.equal(second, x + 5)
        dist.send(x - 1, 0)
    dist.group.WORLD.monitored_barrier()
    pairs = [dist.P2POp(dist.isend, x * rank, (rank + 1) % (last + 1))]
    pairs += [dist.P2POp(dist.irecv, got, (rank - 1) % (last + 1))]
    [work.wait() for work in dist.batch_isend_irecv(pairs)]
    assert torch.equal(got, x * ((rank - 1) % (last + 1)))


def late() -> None:
    """Rank 1 does not come: within the limit, rank 0 says what it waited for."""
    dist.init_process_group("ocl", init_method="mpi://", timeout=timedelta(seconds=3))
    x = torch.ones(5, device="ocl")
    dist.all_reduce(x)
    if dist.get_rank() == 0:
        begin = time.monotonic()
        text = raises(RuntimeError, "Timed out", lambda: (dist.all_reduce(x), x.cpu()))
        assert "ALLREDUCE, collective 2" in text and "ranks that had not come: 1" in text, text
        assert time.monotonic() - begin < 60
        print("said")
    else:
        time.sleep(LIMIT)  # until it is ended with rank 0


def training() -> None:
    """DistributedDataParallel gives the gradients of the joint batch."""
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("ocl", init_method="mpi://")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.GELU(), torch.nn.Linear(20, 3))
    batch = torch.randn(6 * ranks, 12)
    model(batch).square().mean().backward()
    want = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    wrapped = DistributedDataParallel(model.to("ocl"))
    wrapped(batch.chunk(ranks)[rank].to("ocl")).square().mean().backward()
    for parameter, grad in zip(model.parameters(), want, strict=True):
        # Sums of some dozen float32 numbers in another order.
        torch.testing.assert_close(parameter.grad.cpu(), grad, rtol=1e-5, atol=1e-6)


def of_gloo() -> None:
    dist.init_process_group("ocl", init_method="mpi://")
    assert _engines.choose().name == "gloo"
    x = torch.ones(3, device="ocl")
    dist.all_reduce(x)
    assert x.tolist() == [float(dist.get_world_size())] * 3


def other_ranks() -> None:
    """Ranks that were given by hand in another order than MPI's are refused."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    name = world.bcast(f"/tmp/{os.getpid()}-store" if world.rank == 0 else None)
    store = dist.FileStore(name, 2)
    begin = dict(store=store, rank=1 - world.rank, world_size=2)
    raises(RuntimeError, "leave the ranks to MPI", lambda: dist.init_process_group("ocl", **begin))


@unittest.skipUnless(HAS_MPI, "mpi4py or mpirun is not installed")
class Mpirun(unittest.TestCase):
    def check(self, size: int, function: Callable[[], None], **env: str) -> str:
        done = mpirun(size, function.__name__, **env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_collectives(self) -> None:
        self.check(2, collectives)

    def test_collectives_of_four(self) -> None:
        self.check(4, collectives)

    def test_messages(self) -> None:
        self.check(3, messages)

    def test_a_rank_that_does_not_come(self) -> None:
        done = mpirun(2, late.__name__)
        self.assertEqual(done.stdout.strip(), "said", done.stderr)
        self.assertNotEqual(done.returncode, 0)

    def test_training(self) -> None:
        self.check(2, training)


@unittest.skipUnless(HAS_MPI, "mpi4py or mpirun is not installed")
class Chosen(unittest.TestCase):
    check = Mpirun.check

    def test_by_the_setting(self) -> None:
        self.check(2, of_gloo, OCLTENSOR_DISTRIBUTED_ENGINE="gloo")

    def test_ranks_of_another_order(self) -> None:
        self.check(2, other_ranks)


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] in globals():
        torch.set_num_threads(1)
        globals()[sys.argv[1]]()
        if dist.is_initialized():
            dist.destroy_process_group()
    else:
        unittest.main()
