"""Long and parallel use: threads with streams of their own, steady memory, failures in between."""

import gc
import multiprocessing
import pathlib
import subprocess
import sys
import threading
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn

MIB = 1 << 20
THREADS = 8


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * 36, 5),
    )


def batches(seed: int, count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    g = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(6, 1, 6, 6, generator=g), torch.randint(5, (6,), generator=g))
        for _ in range(count)
    ]


def train(model: nn.Module, data: list, losses: list) -> None:
    model.to("ocl")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for images, labels in data:
        loss = nn.functional.cross_entropy(model(images.to("ocl")), labels.to("ocl"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


def resident() -> int:
    """Bytes of host memory in use, by the kernel's count."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


class Threads(unittest.TestCase):
    def test_equal_to_serial(self) -> None:
        def run(number, results) -> None:
            model, losses = models[number], []
            with torch.ocl.stream(torch.ocl.Stream()):
                train(model, data[number], losses)
                torch.ocl.current_stream().synchronize()
            results[number] = (losses, [p.detach().cpu() for p in model.state_dict().values()])

        data = [batches(30 + k, 1) * 12 for k in range(THREADS)]
        models = [network(40 + k) for k in range(THREADS)]
        serial: dict[int, tuple] = {}
        for k in range(THREADS):
            run(k, serial)
        models = [network(40 + k) for k in range(THREADS)]
        together: dict[int, tuple] = {}
        threads = [threading.Thread(target=run, args=(k, together)) for k in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(together), list(range(THREADS)))
        for k in range(THREADS):
            self.assertLess(serial[k][0][-1], serial[k][0][0])  # it learns
            self.assertEqual(together[k][0], serial[k][0])
            for a, b in zip(together[k][1], serial[k][1]):
                self.assertTrue(torch.equal(a, b))

    def test_backward_runs_on_the_stream_of_forward(self) -> None:
        side = torch.ocl.Stream()
        seen = []

        class Watch(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                seen.append(torch.ocl.current_stream().stream_id)
                return grad * 2

        x = torch.ones(3, device="ocl", requires_grad=True)
        side.wait_stream(torch.ocl.current_stream())
        with torch.ocl.stream(side):
            y = Watch.apply(x).sum()
        y.backward()
        self.assertEqual(seen, [side.stream_id])
        self.assertEqual(x.grad.tolist(), [2, 2, 2])

    def test_exception_in_backward(self) -> None:
        class Fails(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad) -> None:
                raise ValueError("on purpose")

        side = torch.ocl.Stream()
        x = torch.ones(100, device="ocl", requires_grad=True)
        before = torch.ocl.current_stream()
        for stream in (before, side):
            with self.subTest(stream=stream), torch.ocl.stream(stream):
                with self.assertRaisesRegex(ValueError, "on purpose"):
                    (Fails.apply(x * 3).exp()).sum().backward()
                self.assertEqual(torch.ocl.current_stream(), stream)
                x.grad = None
                (x * 3).sum().backward()  # the stream goes on
                self.assertEqual(x.grad.sum().item(), 300)
        self.assertEqual(torch.ocl.current_stream(), before)
        torch.ocl.synchronize()
        result = []
        thread = threading.Thread(target=lambda: result.append((x * 2).sum().item()))
        thread.start()
        thread.join()
        self.assertEqual(result, [200])

    def test_declined_in_backward(self) -> None:
        # An operator without a kernel in the backward pass is the same clear error as elsewhere.
        class Missing(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return torch.ops.aten.special_airy_ai(grad)

        x = torch.ones(4, device="ocl", requires_grad=True)
        try:
            Missing.apply(x).sum().backward()
        except NotImplementedError as error:
            self.assertIn("special_airy_ai", str(error))
        self.assertEqual((x * 2).sum().item(), 8)

    def test_shared_tensors(self) -> None:
        # Threads read one tensor and write results of their own; frees happen on any thread.
        shared = torch.arange(5000, device="ocl", dtype=torch.float32)
        wrong = []

        def work(number) -> None:
            with torch.ocl.stream(torch.ocl.Stream()):
                for i in range(60):
                    y = shared * number + i
                    if y[7].item() != 7 * number + i:
                        wrong.append((number, i))

        torch.ocl.synchronize()
        threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Memory(unittest.TestCase):
    def test_steps_do_not_grow(self) -> None:
        steps = 10_000
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).to("ocl")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(5, 6).to("ocl"), torch.randn(5, 2).to("ocl")

        def step():
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        def state():
            torch.ocl.synchronize()
            gc.collect()
            return (
                torch.ocl.memory_allocated(),
                torch.ocl.memory_reserved(),
                torch.ocl.driver_allocated_memory(),
            )

        first, before, host = step().item(), None, 0
        for number in range(1, steps + 1):
            loss = step()
            if number % 50 == 0:
                loss.item()  # as a script does that shows its loss
            del loss
            if number == 100:
                before = state()
            if number == 1000:  # malloc's arenas and the driver's own caches are warm by then
                host = resident()
        self.assertEqual(state(), before)
        # 9,000 steps of some 40 operators each: one leaked 64-byte object per operator were 22 MiB.
        self.assertLess(resident() - host, 8 * MIB)
        self.assertLess(step().item(), first)

    def test_varying_shapes_stay_bounded(self) -> None:
        reserved = []
        for _turn in range(4):
            for size in range(1, 400, 7):
                a = torch.ones(size, 31, device="ocl")
                (a @ a.t()).sum()
            torch.ocl.synchronize()
            reserved.append(torch.ocl.memory_reserved())
        self.assertEqual(reserved[1], reserved[3])

    def test_out_of_memory_in_training(self) -> None:
        self.addCleanup(torch.ocl.set_memory_watermarks, 1.7, 1.0)
        self.addCleanup(torch.ocl.empty_cache)
        model = nn.Linear(8, 8).to("ocl")
        torch.ocl.synchronize()
        torch.ocl.empty_cache()
        room = (torch.ocl.driver_allocated_memory() + 48 * MIB) / torch.ocl.recommended_max_memory()
        torch.ocl.set_per_process_memory_fraction(room)
        before = torch.ocl.memory_allocated()
        ooms = torch.ocl.memory_stats()["num_ooms"]
        with self.assertRaises(torch.OutOfMemoryError) as caught:
            model(torch.ones(4_000_000, 8, device="ocl"))
        self.assertIsInstance(caught.exception, RuntimeError)
        text = str(caught.exception)
        for part in ("MiB", "allocated", "cached", "limit", "set_per_process_memory_fraction"):
            self.assertIn(part, text)
        del caught
        gc.collect()
        self.assertEqual(torch.ocl.memory_allocated(), before)
        self.assertGreater(torch.ocl.memory_stats()["num_ooms"], ooms)
        loss = model(torch.ones(200_000, 8, device="ocl")).sum()  # a smaller batch goes through
        loss.backward()
        self.assertEqual(model.bias.grad[0].item(), 200_000)

    def test_sources_deleted_at_once(self) -> None:
        # Pinned and pageable sources and device targets, deleted while their copies may be under
        # way.
        for round_ in range(20):
            kept = []
            for k in range(8):
                source = torch.full((50_000 + 1000 * k,), float(100 * round_ + k))
                if k % 2:
                    source = source.pin_memory()
                device = source.to("ocl", non_blocking=True)
                del source
                torch.full((50_000 + 1000 * k,), -1.0).pin_memory()  # takes freed memory at once
                temporary = device + 1
                host = torch.empty(temporary.shape, pin_memory=bool(k % 3))
                host.copy_(temporary, non_blocking=True)
                del temporary, device
                torch.full((50_000 + 1000 * k,), -2.0, device="ocl")
                kept.append((host, 100 * round_ + k + 1))
            torch.ocl.synchronize()
            for host, value in kept:
                self.assertTrue(bool((host == value).all()), value)

    def test_streams_and_record_stream(self) -> None:
        # torch.Stream and torch.Event, as code for any accelerator uses them.
        side, done = torch.Stream("ocl"), torch.Event("ocl", enable_timing=True)
        begin = torch.Event("ocl", enable_timing=True)
        x = torch.arange(20_000.0, device="ocl")
        begin.record()
        side.wait_event(begin)
        with side:
            y = x * 2
            x.record_stream(side)
            done.record(side)
        del x
        torch.full((20_000,), -7.0, device="ocl")  # must not take x's memory yet
        done.wait(torch.accelerator.current_stream())
        self.assertTrue(torch.equal(y.cpu(), 2 * torch.arange(20_000.0)))
        side.synchronize()
        self.assertTrue(done.query() and side.query())
        self.assertGreaterEqual(begin.elapsed_time(done), 0)
        with self.assertRaises(RuntimeError):
            torch.ones(3).record_stream(side)


class Squares(torch.utils.data.Dataset):
    """Made in a worker process, by CPU operators."""

    def __len__(self) -> int:
        return 21

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        value = torch.full((3,), float(index))
        return value.square(), index


class UsesDevice(Squares):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(2, device="ocl")


class Loading(unittest.TestCase):
    def test_workers(self) -> None:
        torch.ones(1, device="ocl")  # the driver is in use before the fork
        for options in (
            {"num_workers": 2},
            {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 4},
            {"num_workers": 1, "multiprocessing_context": multiprocessing.get_context("spawn")},
        ):
            with self.subTest(**{k: str(v) for k, v in options.items()}):
                loader = torch.utils.data.DataLoader(
                    Squares(), batch_size=4, pin_memory=True, **options
                )
                for _ in range(2 if "persistent_workers" in options else 1):
                    total = torch.zeros(3, device="ocl")
                    for values, index in loader:
                        self.assertTrue(values.is_pinned() and index.is_pinned())
                        moved = values.to("ocl", non_blocking=True)
                        del values
                        total += moved.sum(0)
                    self.assertEqual(total.tolist(), [sum(k * k for k in range(21))] * 3)
                del loader
        self.assertEqual((torch.ones(3, device="ocl") * 2).tolist(), [2, 2, 2])

    def test_device_in_a_forked_worker(self) -> None:
        torch.ones(1, device="ocl")
        loader = torch.utils.data.DataLoader(
            UsesDevice(), num_workers=1, multiprocessing_context="fork"
        )
        with self.assertRaisesRegex(RuntimeError, "spawn"):
            next(iter(loader))
        self.assertEqual(torch.ones(3, device="ocl").sum().item(), 3)


# The thread of the pass stands back on the one processor there is, so that backward() returns while
# it still holds the pass; what it then frees needs the interpreter, and takes its time.
ENDS_AFTER_BACKWARD = """
import os, time, torch, torch_ocl
class Slow:
    def __call__(self): pass
    def __del__(self): time.sleep(0.3)
y = (torch.ones(3, device="ocl", requires_grad=True) * 2).sum()
y.register_hook(lambda _: torch.autograd.Variable._execution_engine.queue_callback(Slow()))
y.backward(retain_graph=True)
one = {min(os.sched_getaffinity(0))}
for task in os.listdir("/proc/self/task"):
    os.sched_setaffinity(int(task), one)
    if "autograd" in open(f"/proc/self/task/{task}/comm").read():
        os.sched_setscheduler(int(task), os.SCHED_IDLE, os.sched_param(0))
y.backward()
"""


class Exit(unittest.TestCase):
    def test_at_once_after_backward(self) -> None:
        ran = subprocess.run(
            [sys.executable, "-c", ENDS_AFTER_BACKWARD], capture_output=True, text=True
        )
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
