"""Two devices in one process: copies between them, and what belongs to each of them.

PoCL is asked for two devices; other drivers are tested where they have two.
"""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import sys
import threading
import unittest
import unittest.mock

os.environ.setdefault("POCL_DEVICES", "pthread pthread")

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from gpu_style import run_again
from torch.nn import functional

A, B = torch.device("ocl:0"), torch.device("ocl:1")
PIECE = 1 << 20  # float32 numbers of one piece of a large copy


def setUpModule() -> None:
    if torch.ocl.device_count() < 2:
        raise unittest.SkipTest("SKIPPED: needs two devices")


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    if dtype.is_complex:
        return torch.randn(sizes, dtype=dtype)
    if dtype == torch.bool:
        return torch.rand(sizes) < 0.5
    if dtype.is_floating_point:
        return torch.randn(sizes).to(dtype)
    return torch.randint(0, 100, sizes).to(dtype)


class Copies(unittest.TestCase):
    def assert_copied(self, source: torch.Tensor, target: torch.device, **options: bool) -> None:
        """`source` is on one device; its copy on `target` has equal numbers."""
        copied = source.to(target, **options)
        self.assertEqual(copied.device, target)
        self.assertTrue(torch.equal(copied.cpu(), source.cpu()))

    def test_every_type_both_ways(self) -> None:
        floats = (torch.float64,) if torch.ocl.get_device_properties(0).has_fp64 else ()
        types = (torch.float32, torch.float16, torch.bfloat16, torch.complex64, *floats)
        integers = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
        for dtype, (a, b) in itertools.product((*types, *integers), ((A, B), (B, A))):
            with self.subTest(dtype=dtype, source=a):
                self.assert_copied(numbers(37, 5, dtype=dtype).to(a), b)

    def test_every_layout(self) -> None:
        x = numbers(4, 6, 10).to(A)
        z = numbers(5, 7, dtype=torch.complex64).to(A)
        for name, view in {
            "transposed": x.transpose(0, 2),
            "gaps": x[:, ::2, 1::3],
            "offset": x.flatten()[3:101],
            "expanded": x[:, :1].expand(4, 6, 10),
            "one number": x[1, 2, 3],
            "none": x[:0],
            "conjugate": z.conj(),
            "negative": z.conj().imag,
            "channels last": numbers(2, 3, 4, 5)
            .to(A)
            .contiguous(memory_format=torch.channels_last),
        }.items():
            with self.subTest(name):
                self.assert_copied(view, B)

    def test_into_part_of_a_tensor(self) -> None:
        x = numbers(PIECE + 3)
        y = torch.full((2, 2 * PIECE + 11), 7.0, device=B)
        y[1, 5 : PIECE + 8] = x.to(A)
        wanted = torch.full((2, 2 * PIECE + 11), 7.0)
        wanted[1, 5 : PIECE + 8] = x
        self.assertTrue(torch.equal(y.cpu(), wanted))

    def test_another_type(self) -> None:
        x = numbers(1000)
        y = torch.empty(1000, dtype=torch.float16, device=B)
        y.copy_(x.to(A))
        self.assertTrue(torch.equal(y.cpu(), x.half()))

    def test_sizes_around_pieces(self) -> None:
        for size in (1, 65_535, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 9 * PIECE + 17):
            with self.subTest(size=size):
                self.assert_copied(numbers(size).to(A), B)
                self.assert_copied(numbers(size).to(B), A, non_blocking=True)

    def test_comes_after_work_of_both_and_before_later_work(self) -> None:
        x, y = numbers(300, 300).to(A), numbers(300, 300).to(B)
        for _ in range(20):
            y.zero_()
            x = x @ x
            x = x / x.abs().max()
            y.copy_(x)
            x.fill_(torch.nan)  # after the copy
            x = y.to(A)
            y.add_(1)
        self.assertTrue(torch.equal((y - 1).cpu(), (x.cpu() + 1) - 1))
        self.assertFalse(torch.isnan(x).any().item())

    def test_on_streams_that_are_current(self) -> None:
        a, b = torch.ocl.Stream(A), torch.ocl.Stream(B)
        x = numbers(PIECE + 1)
        with torch.ocl.stream(a), torch.ocl.stream(b):
            source = x.to(A) * 2
            target = source.to(B) + 1
            wanted = x * 2 + 1
            self.assertTrue(torch.equal(target.cpu(), wanted))

    def test_threads_that_copy_in_opposite_directions(self) -> None:
        x, failures = numbers(3 * PIECE), []

        def pass_on(source: torch.device, target: torch.device) -> None:
            y = x.to(source)
            for _ in range(10):
                if not torch.equal(y.to(target).cpu(), x):
                    failures.append((source, target))

        threads = [threading.Thread(target=pass_on, args=d) for d in ((A, B), (B, A), (A, B))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_invalid_values_of_the_source_are_raised(self) -> None:
        x, index = numbers(10).to(A), torch.tensor([3, 99]).to(A)
        with self.assertRaisesRegex(IndexError, "99"):
            x.index_select(0, index).to(B)
        self.assert_copied(x, B)

    def test_backward_passes_gradients_back(self) -> None:
        x = numbers(6, 4).to(A).requires_grad_()
        w = numbers(4, 3).to(B).requires_grad_()
        (x.to(B) @ w).square().sum().backward()
        c, v = x.detach().cpu().requires_grad_(), w.detach().cpu().requires_grad_()
        (c @ v).square().sum().backward()
        torch.testing.assert_close(x.grad.cpu(), c.grad)
        torch.testing.assert_close(w.grad.cpu(), v.grad)
        self.assertEqual((x.grad.device, w.grad.device), (A, B))

    def test_a_graph_refuses_them(self) -> None:
        x, y = numbers(10).to(A), torch.zeros(10, device=B)
        graph = torch.ocl.OCLGraph()
        with (
            self.assertRaisesRegex(RuntimeError, "copying from another device"),
            torch.ocl.device(1),
            torch.ocl.graph(graph),
        ):
            y.copy_(x)
        y.copy_(x)
        self.assertTrue(torch.equal(y.cpu(), x.cpu()))


class PiecesOfPinnedMemory(unittest.TestCase):
    def test_copies(self) -> None:
        """This file again, on devices that have a memory of their own."""
        if "OCLTENSOR_CAPS" in os.environ:
            self.skipTest("SKIPPED: this is the other run")
        run_again(self, OCLTENSOR_CAPS="unified_memory=0")


class BelongsToOneDevice(unittest.TestCase):
    def test_current_device(self) -> None:
        self.assertEqual(torch.ocl.current_device(), 0)
        with torch.ocl.device(1):
            self.assertEqual(torch.ocl.current_device(), 1)
            self.assertEqual(torch.zeros(2, device="ocl").device, B)
            self.assertEqual(torch.ocl.current_stream().device, B)
        self.assertEqual(torch.zeros(2, device="ocl").device, A)

    def test_operators_run_where_their_tensors_are(self) -> None:
        x = numbers(50, 50)
        y = x.to(B)
        wanted = functional.softmax(x @ x, 1)
        with torch.ocl.device(0):
            torch.testing.assert_close(functional.softmax(y @ y, 1).cpu(), wanted)
        self.assertEqual((y @ y).device, B)

    def test_mixed_devices_are_refused(self) -> None:
        x, y = numbers(4, 4).to(A), numbers(4, 4).to(B)
        for work in (
            lambda: x + y,
            lambda: x @ y,
            lambda: torch.where(x > 0, x, y),
            lambda: torch.cat([x, y]),
            lambda: functional.layer_norm(x, (4,), y[0]),
            lambda: x.index_select(0, torch.tensor([1], device=B)),
            lambda: functional.conv2d(x[None, None], y[None, None]),
            lambda: functional.scaled_dot_product_attention(x[None], y[None], x[None]),
        ):
            with self.assertRaisesRegex(RuntimeError, "(?s)same device.*ocl:[01]"):
                work()

    def test_random_numbers(self) -> None:
        torch.manual_seed(3)
        first = torch.rand(5, device=A), torch.rand(5, device=B)
        torch.ocl.manual_seed_all(3)
        again = torch.rand(5, device=A), torch.rand(5, device=B)
        for one, other in zip(first, again, strict=True):
            self.assertTrue(torch.equal(one.cpu(), other.cpu()))
        states = torch.ocl.get_rng_state_all()
        torch.rand(5, device=A)
        self.assertTrue(torch.equal(torch.ocl.get_rng_state(B), states[1]))
        self.assertFalse(torch.equal(torch.ocl.get_rng_state(A), states[0]))
        with self.assertRaises(RuntimeError):
            torch.rand(5, device=B, generator=torch.Generator(A))

    def test_memory_is_counted_apart(self) -> None:
        before = [torch.ocl.memory_allocated(d) for d in (A, B)]
        x = torch.empty(PIECE, device=B)
        after = [torch.ocl.memory_allocated(d) for d in (A, B)]
        self.assertEqual(after[0], before[0])
        self.assertGreaterEqual(after[1] - before[1], x.nbytes)

    def test_events_and_streams(self) -> None:
        x = numbers(200, 200).to(B)
        event = torch.ocl.Event()
        torch.ocl.synchronize(B)  # the copy is another stream's
        with torch.ocl.stream(torch.ocl.Stream(B)) as _:
            y = x @ x
            event.record()
        torch.ocl.current_stream(A).wait_event(event)  # of another device: the host waits
        event.synchronize()
        self.assertTrue(event.query())
        torch.testing.assert_close(y.cpu(), x.cpu() @ x.cpu())

    def test_checkpoints(self) -> None:
        file = io.BytesIO()
        x = numbers(20)
        torch.save({"x": x.to(B)}, file)
        for wanted, where in ((B, None), (A, "ocl:0"), (A, {"ocl:1": "ocl:0"})):
            file.seek(0)
            loaded = torch.load(file, map_location=where)["x"]
            self.assertEqual(loaded.device, wanted)
            self.assertTrue(torch.equal(loaded.cpu(), x))

    def test_training_is_the_same_on_both(self) -> None:
        losses = []
        for device in (A, B):
            torch.manual_seed(0)
            model = torch.nn.Sequential(
                torch.nn.Conv2d(1, 4, 3),
                torch.nn.ReLU(),
                torch.nn.Flatten(),
                torch.nn.LazyLinear(5),
            )
            model(torch.zeros(1, 1, 8, 8))
            model.to(device)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            x, y = numbers(16, 1, 8, 8).to(device), torch.arange(16).to(device) % 5
            for _ in range(5):
                optimizer.zero_grad()
                loss = functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
        self.assertEqual(*losses)

    def test_a_model_in_two_halves(self) -> None:
        torch.manual_seed(0)
        first, second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
        x, y = numbers(32, 8), torch.arange(32) % 3
        parameters = [*first.parameters(), *second.parameters()]

        def step(a: torch.device, b: torch.device) -> list[torch.Tensor]:
            first.to(a), second.to(b)
            for p in parameters:
                p.grad = None
            hidden = torch.relu(first(x.to(a)))
            functional.cross_entropy(second(hidden.to(b)), y.to(b)).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 0.1)
            return [p.grad.cpu() for p in parameters]

        cpu = torch.device("cpu")
        for one, other in zip(step(A, B), step(cpu, cpu), strict=True):
            torch.testing.assert_close(one, other)


PARTS = """
import torch, torch_ocl
parts = [torch.ocl.get_device_properties(k) for k in range(torch.ocl.device_count())]
print(*(part.compute_units for part in parts))
torch.manual_seed(0)
x, w = torch.randn(64, 96), torch.randn(96, 32)
wanted = x.double() @ w.double()
for k in range(len(parts)):
    a = x.to(f"ocl:{k}") @ w.to(f"ocl:{k}")
    error = (a.cpu() - wanted).abs().max() / wanted.abs().max()
    assert error < 1e-6 and a.device.index == k, (k, error)  # sums of 96 products in float32
    assert torch.equal(a.to("ocl:0").cpu(), a.cpu())
"""


OF_A_RANK = """
import threading, torch, torch_ocl
print(torch.ocl.device_count(), torch.ocl.current_device(), torch.ones(1, device="ocl").device)
thread = threading.Thread(target=lambda: print(torch.ones(1, device="ocl").device))
thread.start()
thread.join()
with torch.ocl.device(0):
    print(torch.ones(1, device="ocl").device)
print(torch.ones(1, device="ocl").device)
torch.ocl.set_device(0)
print(torch.ones(1, device="ocl").device)
"""


class PartsOfACpu(unittest.TestCase):
    def run_parts(self, count: int) -> subprocess.CompletedProcess[str]:
        return self.run_with(PARTS, OCLTENSOR_CPU_DEVICES=str(count))

    def run_with(self, code: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "POCL_DEVICES": "pthread", **env},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_each_has_its_share_of_the_cores(self) -> None:
        whole = self.run_parts(1).stdout.split()
        if len(whole) != 1 or int(whole[0]) < 2 or "CPU" not in device_kind():
            self.skipTest("SKIPPED: needs one device that is a CPU of two cores")
        units = int(whole[0])
        self.assertEqual(self.run_parts(2).stdout.split(), [str(units // 2)] * 2)

    def test_ranks_have_one_each(self) -> None:
        whole = self.run_parts(1).stdout.split()
        if len(whole) != 1 or int(whole[0]) < 2 or "CPU" not in device_kind():
            self.skipTest("SKIPPED: needs one device that is a CPU of two cores")
        own = ["ocl:1", "ocl:1", "ocl:0", "ocl:1", "ocl:0"]  # of a thread, of a guard, as chosen
        for env, count, devices in (
            ({"LOCAL_WORLD_SIZE": "2"}, "2 1", own),
            ({"LOCAL_WORLD_SIZE": "2", "OCLTENSOR_CPU_DEVICES": "1"}, "1 0", ["ocl:0"] * 5),
            ({"LOCAL_WORLD_SIZE": "4096"}, "1 0", ["ocl:0"] * 5),  # more than it has cores
        ):
            with self.subTest(env):
                done = self.run_with(OF_A_RANK, LOCAL_RANK="1", **env)
                self.assertEqual(done.stdout.split(), [*count.split(), *devices])
                self.assertEqual(done.stderr, "")

    def test_what_launchers_say(self) -> None:
        for rank, ranks, want in (
            ("1", "2", (1, 2)),
            ("0", "1", (0, 1)),
            ("2", "2", (0, 1)),  # each of these is no launcher's
            ("-1", "2", (0, 1)),
            ("0", "some", (0, 1)),
            ("0", "", (0, 1)),
        ):
            given = {"LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks}
            with unittest.mock.patch.dict(os.environ, given):
                self.assertEqual(torch_ocl._launcher.place(), want, given)

    def test_more_parts_than_cores_leave_it_whole(self) -> None:
        if "CPU" not in device_kind():
            self.skipTest("SKIPPED: needs a device that is a CPU")
        done = self.run_parts(4096)
        self.assertEqual(len(done.stdout.split()), 1)
        self.assertRegex(done.stderr, "OCLTENSOR_CPU_DEVICES=4096: .* stays whole")


def device_kind() -> str:
    return torch.ocl.get_device_properties(0).kind.upper()


if __name__ == "__main__":
    unittest.main()
