"""Tensors over the runtime: copies, pinned memory, streams, storages, saving."""

import copy
import gc
import io
import math
import pickle
import threading
import unittest

import numpy
import torch
import torch.utils.dlpack
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

MIB = 1 << 20


def numbers(*shape: int) -> torch.Tensor:
    return torch.arange(1, 1 + int(numpy.prod(shape)), dtype=torch.float32).reshape(shape) / 3


class Copies(unittest.TestCase):
    def test_types(self) -> None:
        for dtype in (
            torch.float32,
            torch.float16,
            torch.bfloat16,
            torch.int64,
            torch.int32,
            torch.int16,
        ):
            with self.subTest(dtype=dtype):
                cpu = numbers(5, 7).to(dtype)
                self.assertTrue(torch.equal(cpu.to("ocl").cpu(), cpu))
        mask = numbers(9) > 1.5
        self.assertEqual(mask.to("ocl").cpu().tolist(), mask.tolist())

    def test_strides(self) -> None:
        cpu = numbers(6, 8)
        device = cpu.to("ocl")
        for view in (
            lambda t: t.t(),
            lambda t: t[1:5:2, 3:],
            lambda t: t[2],
            lambda t: t[:, :0],
            lambda t: t[3, 4],
        ):
            self.assertTrue(torch.equal(view(device).cpu(), view(cpu)))
        target = torch.zeros(8, 6, device="ocl")
        target.t().copy_(cpu)
        self.assertTrue(torch.equal(target.cpu(), cpu.t()))
        self.assertEqual(numbers(3).to("ocl")[1].item(), numbers(3)[1].item())

    def test_results_have_the_strides_that_aten_gives(self) -> None:
        nhwc = numbers(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
        permuted = numbers(4, 2, 3).permute(2, 0, 1)
        gaps = torch.empty_strided((3, 4), (1, 6)).copy_(numbers(3, 4))
        for name, operands in {
            "channels last": (nhwc, nhwc),
            "channels last and a row": (nhwc, numbers(5)),
            "permuted": (permuted, permuted),
            "permuted and broadcast": (permuted, numbers(4, 1)),
            "the first decides": (permuted, permuted.contiguous()),
            "the second decides": (numbers(1, 2), numbers(2, 3).t()),
            "gaps": (gaps, gaps),
            "a number": (permuted, torch.tensor(2.0)),
        }.items():
            on_device = [
                torch.empty_strided(t.shape, t.stride(), device="ocl").copy_(t) for t in operands
            ]
            for function in (
                torch.add,
                torch.maximum,
                torch.lt,
                lambda a, _: torch.sigmoid(a),
                lambda a, _: a * 2,
            ):
                with self.subTest(operands=name, function=function):
                    expected, actual = function(*operands), function(*on_device)
                    self.assertEqual(actual.stride(), expected.stride())
                    torch.testing.assert_close(actual.cpu(), expected)

    def test_conversion(self) -> None:
        device = numbers(4, 4).to("ocl")
        self.assertTrue(torch.equal(device.to("cpu", torch.int32), numbers(4, 4).to(torch.int32)))
        target = torch.empty(4, 4, dtype=torch.float16, device="ocl")
        target.copy_(numbers(4, 4))
        self.assertTrue(torch.equal(target.cpu(), numbers(4, 4).half()))

    def test_pinned(self) -> None:
        pinned = numbers(1000).pin_memory()
        self.assertTrue(pinned.is_pinned())
        self.assertFalse(numbers(3).is_pinned())
        expected = pinned.clone()
        device = pinned.to("ocl", non_blocking=True)
        del pinned  # the copy keeps it
        other = torch.full((1000,), -1.0).pin_memory()
        torch.ocl.synchronize()
        self.assertTrue(torch.equal(device.cpu(), expected))
        back = device.to("cpu", non_blocking=True)
        torch.ocl.synchronize()
        self.assertTrue(torch.equal(back, expected))
        self.assertEqual(other.sum().item(), -1000)

    def test_pinned_memory_is_read_behind_what_writes_it(self) -> None:
        a = torch.randn(500, 500).to("ocl")
        for non_blocking in (True, False):
            for shape in ((500, 500), (250000,), (3, 4)):
                late = a
                for _ in range(8):  # so that the first copy waits for something
                    late = torch.tanh(late @ a)
                late = late.flatten()[: math.prod(shape)].view(shape)
                pinned = torch.full(shape, -7.0).pin_memory()
                pinned.copy_(late, non_blocking=True)
                back = pinned.to("ocl", non_blocking=non_blocking)
                self.assertTrue(torch.equal(back.cpu(), late.cpu()), (non_blocking, shape))

    def test_pinned_memory_comes_back(self) -> None:
        torch.ocl.synchronize()
        torch.ocl.empty_host_cache()
        before = torch.ocl.memory_stats()["pinned_bytes.all.current"]
        for size in range(1000, 3000, 100):
            torch.empty(size).pin_memory().to("ocl", non_blocking=True)
        torch.ocl.synchronize()
        grown = torch.ocl.memory_stats()["pinned_bytes.all.current"] - before
        self.assertTrue(0 < grown <= 20 * 16384, grown)
        torch.ocl.empty_host_cache()
        self.assertEqual(torch.ocl.memory_stats()["pinned_bytes.all.current"], before)

    def test_loader(self) -> None:
        data = torch.utils.data.TensorDataset(numbers(10, 2))
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True):
            self.assertTrue(batch.is_pinned())
            self.assertTrue(torch.equal(batch.to("ocl", non_blocking=True).cpu(), batch))


class StreamsAndMemory(unittest.TestCase):
    def test_threads(self) -> None:
        # Each thread has a stream; pinned and device memory are reused between them.
        wrong = []

        def work(number) -> None:
            stream = torch.ocl.Stream()
            with torch.ocl.stream(stream):
                for i in range(100):
                    source = torch.full((1000 + 37 * i,), float(100 * number + i)).pin_memory()
                    device = source.to("ocl", non_blocking=True)
                    del source
                    back = torch.empty(device.shape, pin_memory=True)
                    back.copy_(device, non_blocking=True)
                    stream.synchronize()
                    if not bool((back == 100 * number + i).all()):
                        wrong.append((number, i))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_memory_profile(self) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
            tensor = torch.empty(1000, device="ocl")
            del tensor
        rows = {row.key: row for row in profile.key_averages()}
        self.assertEqual(rows["aten::empty"].device_memory_usage, 4000)

    def test_dlpack(self) -> None:
        tensor = numbers(4).to("ocl")
        twin = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(tensor))
        self.assertEqual(twin.data_ptr(), tensor.data_ptr())
        twin.record_stream(torch.ocl.Stream())
        self.assertTrue(torch.equal(twin.cpu(), numbers(4)))

    def test_random_stream(self) -> None:
        torch.ocl.manual_seed(8)
        torch.rand(5, device="ocl")
        state = torch.ocl.get_rng_state()
        first = torch.rand(100, device="ocl").cpu()
        self.assertFalse(torch.equal(first, torch.rand(100, device="ocl").cpu()))
        torch.ocl.set_rng_state(state)
        self.assertTrue(torch.equal(first, torch.rand(100, device="ocl").cpu()))
        with self.assertRaisesRegex(
            RuntimeError, "Expected a 'ocl' device type for generator but found 'cpu'"
        ):
            torch.rand(3, device="ocl", generator=torch.Generator())

    def test_side_stream(self) -> None:
        side = torch.ocl.Stream()
        source = numbers(256, 256).to("ocl")
        side.wait_stream(torch.ocl.current_stream())
        with torch.ocl.stream(side):
            result = torch.empty_like(source)
            for _ in range(5):
                result.copy_(source)
            source.record_stream(side)
        del source
        overwritten = torch.full((256, 256), -5.0).to("ocl")
        torch.ocl.current_stream().wait_stream(side)
        self.assertTrue(torch.equal(result.cpu(), numbers(256, 256)))
        self.assertEqual(overwritten.cpu().min().item(), -5)

    def test_no_leak(self) -> None:
        held = numbers(1000, 1000).to("ocl")
        torch.ocl.synchronize()
        before, reserved = torch.ocl.memory_allocated(), torch.ocl.memory_reserved()
        for size in range(1000, 2000, 50):
            numbers(size).to("ocl").clone().cpu()
        gc.collect()
        self.assertEqual(torch.ocl.memory_allocated(), before)
        self.assertLessEqual(torch.ocl.memory_reserved(), reserved + 16 * MIB)
        del held

    def test_resize(self) -> None:
        tensor = numbers(10).to("ocl")
        tensor.resize_(30)
        self.assertTrue(torch.equal(tensor[:10].cpu(), numbers(10)))
        tensor.untyped_storage().resize_(400)
        self.assertTrue(torch.equal(tensor[:10].cpu(), numbers(10)))

    def test_out_of_memory_goes_on(self) -> None:
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(1 << 50, dtype=torch.uint8, device="ocl")
        self.assertTrue(torch.equal(numbers(7).to("ocl").cpu(), numbers(7)))


class Saving(unittest.TestCase):
    def test_save_and_load(self) -> None:
        tensor = numbers(3, 4).to("ocl")
        file = io.BytesIO()
        torch.save({"a": tensor, "b": tensor[1]}, file)
        file.seek(0)
        loaded = torch.load(file)
        self.assertEqual(loaded["a"].device, torch.device("ocl:0"))
        self.assertTrue(torch.equal(loaded["a"].cpu(), numbers(3, 4)))
        self.assertEqual(
            loaded["a"].untyped_storage().data_ptr(), loaded["b"].untyped_storage().data_ptr()
        )
        file.seek(0)
        self.assertTrue(torch.equal(torch.load(file, map_location="cpu")["b"], numbers(3, 4)[1]))

    def test_copies(self) -> None:
        tensor = numbers(5).to("ocl")
        for twin in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), tensor.clone()):
            self.assertNotEqual(twin.data_ptr(), tensor.data_ptr())
            self.assertTrue(torch.equal(twin.cpu(), numbers(5)))

    def test_copy_on_write(self) -> None:
        tensor = numbers(5).to("ocl")
        lazy = torch._lazy_clone(tensor)
        lazy.zero_()
        self.assertTrue(torch.equal(tensor.cpu(), numbers(5)))
        self.assertEqual(lazy.cpu().tolist(), [0] * 5)


if __name__ == "__main__":
    unittest.main()
