"""Memory that CUDA's libraries and other processes see: one memory, refusals, who keeps it.

Where there is no NVIDIA driver, only the refusals run; the rest is skipped with the reason.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import time
import unittest
from typing import Any
from unittest import mock

# Before the plugin reads it.
os.environ.setdefault("OCLTENSOR_SHARED_MEMORY", "1")

import torch
import torch.multiprocessing as mp
import torch_ocl
from torch_ocl import _processes

DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64),
)


def refusal() -> str:
    """Why the current device shares no memory; empty if it does."""
    try:
        torch_ocl._C.cuda_number(0)
    except (NotImplementedError, RuntimeError) as error:
        return str(error)
    return ""


REFUSAL = refusal()
needs_sharing = unittest.skipIf(REFUSAL, REFUSAL)
needs_cuda = unittest.skipUnless(
    not REFUSAL and torch.cuda.is_available(), "needs a CUDA build of torch, and shared memory"
)


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(-100, 100, shape, generator=generator).to(dtype)


def wait_until(condition: Any, seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


class Cuda:
    """CUDA's driver without a library: copies and fills by address."""

    def __init__(self) -> None:
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.check(self.driver.cuInit(0))
        self.context = ctypes.c_void_p()
        self.check(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0))

    def check(self, result: int) -> None:
        if result:
            raise AssertionError(f"CUDA: {result}")

    def read(self, address: int, size: int) -> bytes:
        memory = ctypes.create_string_buffer(size)
        self.check(self.driver.cuCtxSetCurrent(self.context))
        source, count = ctypes.c_uint64(address), ctypes.c_size_t(size)
        self.check(self.driver.cuMemcpyDtoH_v2(memory, source, count))
        return memory.raw

    def fill(self, address: int, byte: int, size: int) -> None:
        self.check(self.driver.cuCtxSetCurrent(self.context))
        target, count = ctypes.c_uint64(address), ctypes.c_size_t(size)
        self.check(self.driver.cuMemsetD8_v2(target, ctypes.c_ubyte(byte), count))
        self.check(self.driver.cuCtxSynchronize())


def address_of(x: torch.Tensor) -> int:
    torch.ocl.synchronize()
    return torch_ocl._C.shared_place(x.data_ptr())["address"]


class SentOn(unittest.TestCase):
    """What is sent, by functions of the plugin that stand for those of a device with CUDA."""

    def reduce(self, storage: torch.UntypedStorage) -> tuple[Any, ...]:
        place = {"segment": storage.data_ptr(), "bytes": 4}
        functions = {
            "shared_place": lambda address: place,
            "export_memory": lambda address: os.open(os.devnull, os.O_RDONLY),
            "lifetime_of": lambda storage: os.dup(self.owner[0]),
        }
        with mock.patch.multiple(_processes._C, **functions):
            return _processes._reduce(storage)

    def test_is_kept_by_its_owner_and_not_by_who_sends_it_on(self) -> None:
        self.owner = os.pipe()
        self.addCleanup(lambda: [os.close(end) for end in self.owner])
        sent = _processes._of_this_process()
        received, own = torch.UntypedStorage(4), torch.UntypedStorage(4)
        _processes._remember_origin("another:0:0:4", received)
        key, _, memory, lifetime, *_ = self.reduce(received)[1]
        self.assertEqual(key, "another:0:0:4")
        self.assertNotIn(key, sent.storages)
        descriptor = lifetime.detach()
        self.assertEqual(os.fstat(descriptor).st_ino, os.fstat(self.owner[0]).st_ino)
        os.close(descriptor)
        os.close(memory.detach())
        key, _, memory, lifetime, *_ = self.reduce(own)[1]
        self.assertEqual(len(sent.storages[key]), 1)
        os.close(memory.detach())
        os.close(lifetime.detach())
        self.assertTrue(wait_until(lambda: key not in sent.storages))

    def test_memory_of_this_process_has_no_other_owner(self) -> None:
        storage = torch.ones(3, device="ocl").untyped_storage()
        self.assertEqual(_processes._C.lifetime_of(storage), -1)


class Kept(unittest.TestCase):
    """Storages that were sent, whatever their device, while the ends of their pipes are open."""

    def test_until_each_pipe_has_ended(self) -> None:
        sent = _processes._Sent()
        storages = [torch.UntypedStorage(4) for _ in range(3)]
        pipes = [sent.keep(key, x) for key, x in zip("aba", storages, strict=True)]

        def counts() -> dict[str, int]:
            return {key: len(kept) for key, kept in sent.storages.items()}

        self.assertEqual(counts(), {"a": 2, "b": 1})
        found = sent.find("b")
        self.assertEqual(found.data_ptr(), storages[1].data_ptr())
        self.assertIsNone(sent.find("c"))
        copy = os.dup(pipes[0])
        os.close(pipes[0])
        os.close(pipes[2])
        self.assertTrue(wait_until(lambda: counts() == {"a": 1, "b": 1}))
        os.close(copy)  # another process's
        self.assertTrue(wait_until(lambda: counts() == {"b": 1}))
        os.close(pipes[1])
        self.assertTrue(wait_until(lambda: not sent.storages))
        again = sent.keep("a", storages[0])
        self.assertEqual(counts(), {"a": 1})
        os.close(again)
        self.assertTrue(wait_until(lambda: not sent.storages))


class Descriptor:
    """What multiprocessing's DupFd is for the process that receives it."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()

    def detach(self) -> int:
        return self.write

    def is_closed(self) -> bool:
        return os.read(self.read, 1) == b""


class Known(unittest.TestCase):
    """Storages that come by several ways are known again; the bookkeeping takes any device's."""

    def test_an_owner_gets_its_own(self) -> None:
        sent = _processes._of_this_process()
        storage = torch.UntypedStorage(4)
        key = f"{sent.process}:0:0:4"
        pipe = sent.keep(key, storage)
        memory, lifetime = Descriptor(), Descriptor()
        same = _processes._rebuild(key, 0, memory, lifetime, 4, 0, 4)
        self.assertEqual(same._cdata, storage._cdata)
        self.assertTrue(memory.is_closed() and lifetime.is_closed())
        os.close(pipe)

    def test_what_was_received_keeps_its_name(self) -> None:
        storage = torch.UntypedStorage(4)
        self.assertIsNone(_processes._origin_of(storage))
        _processes._remember_origin("another:0:0:4", storage)
        self.assertEqual(_processes._origin_of(storage), "another:0:0:4")
        memory, lifetime = Descriptor(), Descriptor()
        same = _processes._rebuild("another:0:0:4", 0, memory, lifetime, 4, 0, 4)
        self.assertEqual(same._cdata, storage._cdata)
        self.assertTrue(memory.is_closed() and lifetime.is_closed())
        address = storage.data_ptr()
        del storage, same
        gc.collect()
        other = torch.UntypedStorage(8)
        _processes._origins[other.data_ptr()] = "another:0:0:4"  # at the address of the other one
        self.assertIsNone(_processes._origin_of(other))
        _processes._remember_origin("another:8:0:8", other)
        self.assertEqual(list(_processes._origins.values()).count("another:0:0:4"), 0, address)


@unittest.skipUnless(REFUSAL, "this device shares its memory")
class Refused(unittest.TestCase):
    def test_by_name(self) -> None:
        x = values(torch.float32, 5).to("ocl")
        for call in (
            lambda: torch.ocl.cuda_view(x),
            lambda: torch_ocl._C.export_memory(x.data_ptr()),
        ):
            with self.assertRaisesRegex(NotImplementedError, "shares no memory .* CUDA: .+"):
                call()
        with self.assertRaisesRegex(BufferError, r"got \(2, 0\): .*shares no memory"):
            x.__dlpack__(dl_device=(2, 0))
        with self.assertRaisesRegex(NotImplementedError, "sent to another process.*cpu()"):
            mp.SimpleQueue().put(x)

    def test_settings(self) -> None:
        code = (
            "import torch, torch_ocl\n"
            "x = torch.arange(3.0, device='ocl') + 1\n"
            "try: torch.ocl.cuda_view(x)\n"
            "except NotImplementedError as e: print(e)\n"
            "print(x.tolist())"
        )
        for name, value, text in (
            ("OCLTENSOR_SHARED_MEMORY", "0", "OCLTENSOR_SHARED_MEMORY is 0"),
            ("OCLTENSOR_CAPTURE_ENABLED", "1", "captures know no shared memory"),
        ):
            with self.subTest(name):
                run = subprocess.run(
                    [sys.executable, "-c", code],
                    env={**os.environ, name: value},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.assertIn(text, run.stdout, run.stderr)
                self.assertIn("[1.0, 2.0, 3.0]", run.stdout)

    def test_what_is_not_cuda(self) -> None:
        with self.assertRaisesRegex(ValueError, "arrays on CUDA"):
            torch.ocl.from_cuda(torch.ones(2))
        with self.assertRaisesRegex(ValueError, "tensors on ocl"):
            torch.ocl.cuda_view(torch.ones(2))


@needs_sharing
class Addresses(unittest.TestCase):
    def setUp(self) -> None:
        self.cuda = Cuda()

    def test_both_see_what_either_writes(self) -> None:
        for dtype in DTYPES:
            host = values(dtype, 3000)
            x = host.to("ocl")
            for view in (x, x[7:], x[-1:]):
                with self.subTest(dtype=dtype, count=view.numel()):
                    size = view.numel() * view.element_size()
                    got = self.cuda.read(address_of(view), size)
                    self.assertEqual(got, bytes(view.cpu().view(torch.uint8).numpy()))
        x = torch.zeros(1000, dtype=torch.uint8, device="ocl")
        self.cuda.fill(address_of(x[10:]), 7, 100)
        expected = torch.zeros(1000, dtype=torch.uint8)
        expected[10:110] = 7
        self.assertTrue(torch.equal(x.cpu(), expected))

    def test_every_size(self) -> None:
        for size in (1, 511, 512, 1 << 20, (1 << 20) + 1, 12 << 20, (40 << 20) + 3):
            x = torch.full((size,), 3, dtype=torch.uint8, device="ocl")
            with self.subTest(size=size):
                place = torch_ocl._C.shared_place(x.data_ptr())
                self.assertEqual(place["library"], "CUDA")
                torch.ocl.synchronize()
                self.assertEqual(self.cuda.read(place["address"] + size - 1, 1), b"\3")

    def test_many_segments_leave_nothing(self) -> None:
        def descriptors() -> int:
            return len(list(pathlib.Path("/proc/self/fd").iterdir()))

        torch.ocl.empty_cache()
        before = None
        for _ in range(30):
            kept = [torch.ones(3 << 20, device="ocl") for _ in range(3)]
            self.assertEqual(kept[2][-1].item(), 1)
            del kept
            torch.ocl.empty_cache()
            before = before or descriptors()
        self.assertLessEqual(descriptors(), before)

    def test_out_of_memory_is_an_error_and_passes(self) -> None:
        kept = []
        with self.assertRaises(torch.OutOfMemoryError):
            while True:
                kept.append(torch.empty(4 << 30, dtype=torch.uint8, device="ocl"))
        self.assertGreater(len(kept), 1)
        kept.clear()
        x = torch.ones(4 << 30, dtype=torch.uint8, device="ocl")
        self.assertEqual(x[-1].item(), 1)
        del x
        torch.ocl.empty_cache()


@needs_cuda
class OfPyTorch(unittest.TestCase):
    def test_types_and_strides(self) -> None:
        for dtype in DTYPES:
            host = values(dtype, 6, 8)
            for name, view in {
                "whole": lambda t: t,
                "transposed": lambda t: t.t(),
                "sliced": lambda t: t[1:, ::2],
                "empty": lambda t: t[:0],
                "scalar": lambda t: t[2, 3],
            }.items():
                with self.subTest(dtype=dtype, view=name):
                    mine = view(host.to("ocl"))
                    there = torch.from_dlpack(torch.ocl.cuda_view(mine))
                    self.assertEqual(there.device.type, "cuda")
                    self.assertEqual(there.stride(), mine.stride())
                    self.assertTrue(torch.equal(there.cpu(), view(host)))
                    back = torch.ocl.from_cuda(there)
                    self.assertEqual(back.device, mine.device)
                    self.assertTrue(torch.equal(back.cpu(), view(host)))
                    if mine.numel():
                        self.assertEqual(back.data_ptr(), mine.data_ptr())

    def test_both_write(self) -> None:
        x = values(torch.float32, 1000).to("ocl")
        there = torch.from_dlpack(torch.ocl.cuda_view(x))
        expected = x.cpu()
        for step in range(20):
            x.mul_(0.5).add_(step)
            torch.ocl.synchronize()
            there.add_(3)
            torch.cuda.synchronize()
            expected = expected * 0.5 + step + 3
        self.assertTrue(torch.equal(x.cpu(), expected))

    def test_a_view_keeps_the_memory(self) -> None:
        there = torch.from_dlpack(torch.ocl.cuda_view(torch.full((5000,), 4.0, device="ocl")))
        others = [torch.zeros(5000, device="ocl") for _ in range(20)]
        self.assertEqual(there.sum().item(), 20000)
        self.assertEqual(len(others), 20)

    def test_of_cuda(self) -> None:
        theirs = values(torch.float32, 300, 40).to("cuda")[:, 3:]
        with self.assertRaisesRegex(RuntimeError, "cuMemCreate"):
            torch.ocl.from_cuda(theirs, copy=False)
        for copy in (None, True):
            mine = torch.ocl.from_cuda(theirs, copy=copy)
            self.assertTrue(torch.equal(mine.cpu(), theirs.cpu()))
        self.assertEqual(mine.stride(), theirs.stride())

    def test_exportable_memory_of_cuda_is_shared(self) -> None:
        code = (
            "import torch, torch_ocl\n"
            "a = torch.arange(3000.0, device='cuda')\n"
            "try: b = torch.ocl.from_cuda(a, copy=False)\n"
            "except RuntimeError as e: print('not exportable', e); raise SystemExit\n"
            "assert torch.equal(b.cpu(), a.cpu())\n"
            "b.add_(1); torch.ocl.synchronize()\n"
            "assert torch.equal(b.cpu(), a.cpu()); print('shared')"
        )
        variables = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertRegex(run.stdout, "shared|not exportable", run.stderr)
        print(run.stdout.strip(), file=sys.stderr)

    def test_mixed_rounds(self) -> None:
        n = 1 << 16
        x = torch.zeros(n, dtype=torch.int32, device="ocl")
        there = torch.from_dlpack(torch.ocl.cuda_view(x))
        wrong = 0
        for step in range(200):
            x.add_(step)
            torch.ocl.synchronize()
            there.mul_(3).add_(1)
            torch.cuda.synchronize()
            if step % 10 == 0:
                wrong += int((x != x[0]).sum().item()) + int((there != there[0]).sum().item())
        expected = 0
        for step in range(200):
            expected = ((expected + step) * 3 + 1 + 2**31) % 2**32 - 2**31
        self.assertEqual((wrong, x[-1].item()), (0, expected))


def echo(queue: Any, back: Any, done: Any) -> None:
    """In the other process: adds one in place, and sends it back with a tensor of its own."""
    x, part = queue.get()
    x.add_(1)
    own = x * 2
    torch.ocl.synchronize()
    back.put((x, own, part.sum().item(), part.untyped_storage().data_ptr() - x.data_ptr()))
    done.wait()


def hold(x: torch.Tensor, ready: Any, done: Any) -> None:
    ready.put(x.sum().item())
    done.wait()


@needs_sharing
class Processes(unittest.TestCase):
    def setUp(self) -> None:
        self.context = mp.get_context("spawn")

    def test_there_and_back(self) -> None:
        queue, back = self.context.Queue(), self.context.Queue()
        done = self.context.Event()
        other = self.context.Process(target=echo, args=(queue, back, done))
        other.start()
        x = values(torch.float32, 5000).to("ocl")
        host = x.cpu()
        queue.put((x, x[100:200]))
        same, own, total, distance = back.get(timeout=60)
        self.assertEqual(same.data_ptr(), x.data_ptr())
        self.assertEqual(distance, 0)  # one storage for both
        self.assertTrue(torch.equal(x.cpu(), host + 1))
        self.assertTrue(torch.equal(own.cpu(), (host + 1) * 2))
        self.assertEqual(total, (host + 1)[100:200].sum().item())
        done.set()
        other.join(30)
        self.assertEqual(other.exitcode, 0)
        self.assertTrue(torch.equal(own.cpu(), (host + 1) * 2))  # outlives its process

    def test_sent_memory_is_kept_until_it_is_freed_there(self) -> None:
        ready, done = self.context.Queue(), self.context.Event()
        torch.ocl.synchronize()
        before = torch.ocl.memory_allocated()
        x = values(torch.float32, 3 << 20).to("ocl")
        total = x.sum().item()
        other = self.context.Process(target=hold, args=(x, ready, done))
        other.start()
        self.assertEqual(ready.get(timeout=60), total)
        del x
        gc.collect()
        self.assertGreaterEqual(torch.ocl.memory_allocated(), before + (12 << 20))
        done.set()
        other.join(30)
        self.assertTrue(wait_until(lambda: torch.ocl.memory_allocated() <= before))

    def test_a_killed_receiver_frees(self) -> None:
        ready, done = self.context.Queue(), self.context.Event()
        before = torch.ocl.memory_allocated()
        x = torch.ones(3 << 20, device="ocl")
        other = self.context.Process(target=hold, args=(x, ready, done))
        other.start()
        ready.get(timeout=60)
        del x
        other.kill()
        other.join(30)
        self.assertTrue(wait_until(lambda: torch.ocl.memory_allocated() <= before))

    def test_empty_and_parameters(self) -> None:
        queue, back = self.context.Queue(), self.context.Queue()
        done = self.context.Event()
        other = self.context.Process(target=echo, args=(queue, back, done))
        other.start()
        x = torch.nn.Parameter(values(torch.float32, 12).to("ocl"))
        queue.put((x.detach(), torch.empty(0, device="ocl")))
        _, own, total, _ = back.get(timeout=60)
        self.assertEqual((total, own.numel()), (0, 12))
        done.set()
        other.join(30)


if __name__ == "__main__":
    unittest.main()
