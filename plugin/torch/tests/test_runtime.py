"""The runtime of torch.ocl: devices, streams, events, memory, generators; needs no operator."""

import os
import pickle
import subprocess
import sys
import threading
import time
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

MIB = 1 << 20


def storage(size: int, device: str = "ocl") -> torch.UntypedStorage:
    return torch.UntypedStorage(size, device=device)


class Devices(unittest.TestCase):
    def test_presence(self) -> None:
        self.assertTrue(torch.ocl.is_built())
        self.assertTrue(torch.ocl.is_available(), torch.ocl.unavailable_reason())
        self.assertEqual(torch.ocl.unavailable_reason(), "")
        self.assertIn(torch.ocl.get_device_name(), torch.ocl.device_report())
        self.assertGreaterEqual(torch.ocl.device_count(), 1)
        self.assertTrue(torch.backends.ocl.is_available())
        self.assertEqual(torch.accelerator.current_accelerator().type, "ocl")
        self.assertFalse(torch.ocl._is_in_bad_fork())

    def test_properties(self) -> None:
        p = torch.ocl.get_device_properties()
        self.assertTrue(p.name and p.driver_version)
        self.assertIn(p.kind, ("cpu", "gpu", "accelerator"))
        self.assertGreater(p.total_memory, MIB)
        self.assertGreater(p.recommended_memory, 0)
        self.assertLessEqual(p.recommended_memory, p.total_memory)
        self.assertGreaterEqual(p.compute_units, 1)
        self.assertEqual(torch.ocl.get_device_name(0), p.name)
        self.assertGreaterEqual(torch.ocl.get_device_capability(), (1, 1))
        self.assertIn("OpenCL C", torch.backends.ocl.get_device_capability())

    def test_supported_types(self) -> None:
        if not hasattr(torch.accelerator, "get_device_capability"):
            self.skipTest("this torch has no torch.accelerator.get_device_capability")
        types = torch.accelerator.get_device_capability()["supported_dtypes"]
        known = {torch.float32, torch.complex32, torch.complex64, torch.uint64, torch.float8_e4m3fn}
        self.assertLessEqual(known, types)
        self.assertNotIn(torch.qint8, types)
        for dtype in (torch.float64, torch.complex128):
            self.assertEqual(dtype in types, torch.ocl.get_device_properties().has_fp64, dtype)

    def test_bad_index(self) -> None:
        count = torch.ocl.device_count()
        for call in (
            torch.ocl.set_device,
            torch.ocl.get_device_properties,
            torch.ocl.synchronize,
            torch.ocl.current_stream,
            torch.ocl.device,
        ):
            with (
                self.subTest(call=call.__name__),
                self.assertRaisesRegex(RuntimeError, f"ocl:{count}"),
            ):
                call(count)
        with self.assertRaisesRegex(RuntimeError, f"ocl:{count}"):
            storage(8, f"ocl:{count}")
        with self.assertRaisesRegex(ValueError, "expected an ocl device, got 'cpu'"):
            torch.ocl.synchronize("cpu")

    def test_context(self) -> None:
        with torch.ocl.device(0):
            self.assertEqual(torch.ocl.current_device(), 0)
        with torch.ocl.device(None), torch.ocl.device(-1), torch.ocl.device("ocl"):
            self.assertEqual(torch.ocl.current_device(), 0)
        with torch.ocl.device_of(torch.ones(1)):
            self.assertEqual(torch.ocl.current_device(), 0)
        self.assertEqual(torch.device("ocl:0").index, 0)

    def test_settings(self) -> None:
        name = "OCLTENSOR_LOG_LEVEL"
        old = torch.backends.ocl.get_setting(name)
        self.addCleanup(torch.backends.ocl.set_setting, name, old)
        torch.backends.ocl.set_setting(name, "error")
        self.assertEqual(torch.backends.ocl.settings()[name], "error")
        with self.assertRaisesRegex(RuntimeError, "trace, debug, info"):
            torch.backends.ocl.set_setting(name, "loud")
        with self.assertRaisesRegex(RuntimeError, "NO_SUCH"):
            torch.backends.ocl.get_setting("NO_SUCH")
        self.assertEqual(torch.backends.ocl.get_setting(name), "error")

    def test_fork(self) -> None:
        storage(8)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            text = (
                f"{torch.ocl._is_in_bad_fork()} {torch.ocl.is_available()} "
                f"{torch.ocl.unavailable_reason()}"
            )
            try:
                storage(8)
                text += " allocated"
            except RuntimeError as error:
                text += f" {error}"
            os.write(write, text.encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        self.assertTrue(text.startswith("True False "), text)
        self.assertIn("fork", text)
        self.assertNotIn("allocated", text)


class Streams(unittest.TestCase):
    def test_pool(self) -> None:
        ids = [torch.ocl.Stream().stream_id for _ in range(33)]
        self.assertEqual(len(set(ids[:32])), 32)
        self.assertEqual(ids[0], ids[32])
        high = torch.ocl.Stream(priority=-1)
        self.assertNotIn(high.stream_id, ids)
        self.assertNotIn(0, ids)
        self.assertEqual(torch.ocl.default_stream().stream_id, 0)
        self.assertTrue(high.query())
        high.synchronize()
        plain = torch.Stream("ocl")
        self.assertEqual(plain.device, torch.device("ocl:0"))
        if hasattr(plain, "native_handle"):  # newer than torch 2.11
            self.assertTrue(torch.ocl.default_stream().native_handle)

    def test_context(self) -> None:
        default = torch.ocl.current_stream()
        first, second = torch.ocl.Stream(), torch.ocl.Stream()
        with torch.ocl.stream(first):
            self.assertEqual(torch.ocl.current_stream(), first)
            with torch.ocl.stream(second), torch.ocl.stream(None):
                self.assertEqual(torch.ocl.current_stream(), second)
            self.assertEqual(torch.ocl.current_stream(), first)
            self.assertEqual(torch.accelerator.current_stream().stream_id, first.stream_id)
        with second:
            self.assertEqual(torch.ocl.current_stream().stream_id, second.stream_id)
        self.assertEqual(torch.ocl.current_stream(), default)

    def test_threads_have_their_own(self) -> None:
        seen = []
        with torch.ocl.stream(torch.ocl.Stream()):
            thread = threading.Thread(
                target=lambda: seen.append(torch.ocl.current_stream().stream_id)
            )
            thread.start()
            thread.join()
        self.assertEqual(seen, [0])

    def test_synchronize_waits_for_what_was_submitted_before(self) -> None:
        """Mesa 22.3's clFinish does not wait for commands that an event's query has flushed."""
        y = torch.randn(300, 300, device="ocl")
        for _ in range(4):
            event = torch.Event("ocl")
            for _ in range(3):
                y = y @ y / 300
            event.record()
            event.query()
            torch.ocl.synchronize()
            self.assertTrue(event.query())

    def test_events(self) -> None:
        event = torch.ocl.Event()
        self.assertFalse(event.query())
        event.synchronize()
        stream, other = torch.ocl.Stream(), torch.ocl.Stream()
        event.record(stream)
        other.wait_event(event)
        other.wait_stream(stream)
        event.wait(other)
        event.synchronize()
        self.assertTrue(event.query())
        self.assertTrue(stream.record_event().event_id)
        self.assertIs(stream.record_event(event), event)

    def test_elapsed_time(self) -> None:
        start, end = torch.ocl.Event(enable_timing=True), torch.ocl.Event(enable_timing=True)
        with self.assertRaisesRegex(RuntimeError, "must be recorded"):
            start.elapsed_time(end)
        a = torch.randn(300, 300, device="ocl")
        a @ a
        torch.ocl.synchronize()
        begin = time.perf_counter()
        start.record()
        for _ in range(20):
            a @ a
        end.record()
        elapsed = start.elapsed_time(end)  # waits
        wall = 1e3 * (time.perf_counter() - begin)
        self.assertGreater(elapsed, 0)
        self.assertLess(elapsed, wall + 1)  # both clocks tick, and 1 ms is left for their start
        with self.assertRaisesRegex(RuntimeError, "enable_timing=True"):
            start.elapsed_time(torch.ocl.Event())


class Memory(unittest.TestCase):
    def setUp(self) -> None:
        torch.ocl.synchronize()
        torch.ocl.empty_cache()
        self.before = torch.ocl.memory_allocated()

    def test_accounting(self) -> None:
        torch.ocl.reset_peak_memory_stats()
        held = storage(3 * MIB + 5)
        now = torch.ocl.memory_allocated() - self.before
        self.assertGreaterEqual(now, 3 * MIB + 5)
        self.assertLess(now, 4 * MIB)
        self.assertEqual(torch.ocl.current_allocated_memory(), self.before + now)
        self.assertEqual(torch.accelerator.memory_allocated(), self.before + now)
        self.assertGreaterEqual(torch.ocl.memory_reserved(), torch.ocl.memory_allocated())
        self.assertGreaterEqual(torch.ocl.driver_allocated_memory(), torch.ocl.memory_reserved())
        del held
        self.assertEqual(torch.ocl.memory_allocated(), self.before)
        self.assertEqual(torch.ocl.max_memory_allocated(), self.before + now)
        torch.ocl.reset_peak_memory_stats()
        self.assertEqual(torch.ocl.max_memory_allocated(), self.before)
        self.assertEqual(torch.accelerator.max_memory_allocated(), self.before)

    def test_empty_cache(self) -> None:
        held = storage(40 * MIB)
        reserved = torch.ocl.memory_reserved()
        del held
        self.assertEqual(torch.ocl.memory_reserved(), reserved)  # cached
        torch.ocl.empty_cache()
        self.assertLessEqual(torch.ocl.memory_reserved(), reserved - 40 * MIB)

    def test_accumulated(self) -> None:
        torch.ocl.reset_accumulated_memory_stats()
        for _ in range(3):
            storage(1000)
        stats = torch.ocl.memory_stats()
        self.assertEqual(stats["requested_bytes.all.allocated"], 3000)
        self.assertEqual(stats["requested_bytes.all.freed"], 3000)
        self.assertEqual(stats["allocation.all.allocated"], 3)
        self.assertEqual(torch.accelerator.memory_stats()["allocation.all.freed"], 3)

    def test_info_and_summary(self) -> None:
        free, total = torch.ocl.mem_get_info()
        self.assertEqual((free, total), torch.accelerator.get_memory_info())
        self.assertEqual(total, torch.ocl.get_device_properties().total_memory)
        held = storage(64 * MIB)
        self.assertLessEqual(torch.ocl.mem_get_info()[0], free - 64 * MIB)
        self.assertIn("64.00 MiB", torch.ocl.memory_summary())
        self.assertNotIn("freed", torch.ocl.memory_summary(abbreviated=True))
        del held

    def test_resize(self) -> None:
        held = storage(1000)
        address = held.data_ptr()
        held.resize_(5000)
        self.assertEqual(held.nbytes(), 5000)
        self.assertNotEqual(held.data_ptr(), address)
        held.resize_(0)
        self.assertEqual(held.data_ptr(), 0)
        del held
        self.assertEqual(torch.ocl.memory_allocated(), self.before)

    def test_side_stream(self) -> None:
        # Memory of another stream comes back, whichever stream is current when it is freed.
        with torch.ocl.stream(torch.ocl.Stream()):
            first, second = storage(MIB), storage(MIB)
            del first
        del second
        torch.ocl.synchronize()
        self.assertEqual(torch.ocl.memory_allocated(), self.before)

    def test_out_of_memory(self) -> None:
        self.addCleanup(torch.backends.ocl.set_setting, "OCLTENSOR_HIGH_WATERMARK_RATIO", "1.7")
        self.addCleanup(torch.ocl.set_memory_watermarks, 1.7, 1.0)
        limit = (
            torch.ocl.driver_allocated_memory() + 64 * MIB
        ) / torch.ocl.recommended_max_memory()
        torch.ocl.set_per_process_memory_fraction(limit)
        with self.assertRaises(torch.OutOfMemoryError) as caught:
            storage(100 * MIB)
        text = str(caught.exception)
        for part in ("100.00 MiB", "set_per_process_memory_fraction"):
            self.assertIn(part, text)
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertIsInstance(copy, torch.OutOfMemoryError)
        self.assertEqual(str(copy), text)
        storage(16 * MIB)  # the next smaller one succeeds
        self.assertEqual(torch.ocl.memory_allocated(), self.before)

    def test_bad_fractions(self) -> None:
        with self.assertRaisesRegex(TypeError, "must be `float`"):
            torch.ocl.set_per_process_memory_fraction(1)
        for value in (-0.1, 2.1, float("nan")):
            with self.assertRaisesRegex(ValueError, "Allowed range: 0~2"):
                torch.ocl.set_per_process_memory_fraction(value)
            with self.assertRaisesRegex(ValueError, "Allowed range: 0~2"):
                torch.ocl.set_memory_watermarks(value, 1.0)


class Generators(unittest.TestCase):
    def test_new(self) -> None:
        generator = torch.Generator("ocl")
        self.assertEqual(generator.device, torch.device("ocl:0"))
        self.assertEqual(generator.initial_seed(), 67280421310721)
        generator.manual_seed(-3)
        self.assertEqual(generator.initial_seed(), 2**64 - 3)
        self.assertNotEqual(generator.seed(), generator.seed())

    def test_state(self) -> None:
        first, second = torch.Generator("ocl"), torch.Generator("ocl").manual_seed(11)
        first.manual_seed(12)
        first.set_offset(48)
        state = first.get_state()
        self.assertEqual((state.dtype, state.device.type, state.numel()), (torch.uint8, "cpu", 16))
        self.assertEqual(state.tolist(), [12] + [0] * 7 + [48] + [0] * 7)
        second.set_state(state)
        self.assertEqual((second.initial_seed(), second.get_offset()), (12, 48))
        clone = second.clone_state()
        second.manual_seed(1)
        self.assertEqual(clone.get_state().tolist(), state.tolist())
        with self.assertRaisesRegex(RuntimeError, "wrong size"):
            first.set_state(torch.zeros(15, dtype=torch.uint8))
        with self.assertRaises(TypeError):
            first.set_state(torch.zeros(16))
        self.assertEqual(first.get_state().tolist(), state.tolist())

    def test_the_first_random_operator_obeys_the_seed(self) -> None:
        # In processes of their own: afterwards the generator is there.
        show = "import torch, torch_ocl; torch.manual_seed({}); print({}.tolist())"
        for operator in (
            "torch.dropout(torch.ones(64, device='ocl'), 0.5, True)",
            "torch.rand(4, device='ocl')",
        ):
            printed = [
                subprocess.run(
                    [sys.executable, "-c", show.format(seed, operator)],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
                for seed in (1, 1, 2)
            ]
            torch.manual_seed(1)
            self.assertEqual(printed[0], f"{eval(operator).tolist()}\n")
            self.assertEqual(printed[0], printed[1])
            self.assertNotEqual(printed[0], printed[2])

    def test_default(self) -> None:
        torch.ocl.manual_seed(5)
        state = torch.ocl.get_rng_state()
        torch.ocl.seed()
        self.assertNotEqual(torch.ocl.initial_seed(), 5)
        torch.ocl.set_rng_state(state)
        self.assertEqual(torch.ocl.initial_seed(), 5)
        torch.ocl.manual_seed_all(-1)
        self.assertEqual(torch.ocl.initial_seed(), 2**64 - 1)
        with self.assertRaisesRegex(ValueError, "2\\*\\*63"):
            torch.ocl.manual_seed_all(2**64)
        torch.manual_seed(99)
        self.assertEqual(torch.ocl.initial_seed(), 99)
        states = torch.ocl.get_rng_state_all()
        self.assertEqual(torch.ocl.seed_all(), torch.ocl.initial_seed())
        torch.ocl.set_rng_state_all(states)
        self.assertEqual(torch.ocl.initial_seed(), 99)
        with torch.random.fork_rng(device_type="ocl"):
            torch.ocl.manual_seed(1)
        self.assertEqual(torch.ocl.initial_seed(), 99)

    def test_state_beside_tensors_without_data(self) -> None:
        """States are tensors with data in every mode: DTensors' rules set them there."""
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        torch.ocl.manual_seed(5)
        with FakeTensorMode():
            state = torch.ocl.get_rng_state()
            self.assertNotIsInstance(state, FakeTensor)
            torch.ocl.manual_seed(6)
            torch.ocl.set_rng_state(state)
            self.assertEqual(torch.ocl.initial_seed(), 5)


if __name__ == "__main__":
    unittest.main()
