"""Memory snapshots: complete, bounded, and readable by PyTorch's visualiser."""

import pathlib
import pickle
import tempfile
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch.cuda import _memory_viz


class History(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(torch.ocl.memory._record_memory_history, None)

    def test_allocations_and_frees(self) -> None:
        torch.ocl.memory._record_memory_history()
        a = torch.empty(1000, device="ocl")
        b = torch.empty(2000, device="ocl")
        address, kept = a.data_ptr(), b.data_ptr()
        del a
        snapshot = torch.ocl.memory._snapshot()
        (trace,) = snapshot["device_traces"]
        self.assertEqual(
            [e["action"] for e in trace], ["alloc", "alloc", "free_requested", "free_completed"]
        )
        self.assertEqual([e["size"] for e in trace], [4000, 8000, 4000, 4000])
        self.assertEqual([e["addr"] for e in trace], [address, kept, address, address])
        times = [e["time_us"] for e in trace]
        self.assertEqual(times, sorted(times))
        self.assertIn("test_allocations_and_frees", [f["name"] for f in trace[0]["frames"]])
        (segment,) = snapshot["segments"]
        self.assertEqual((segment["address"], segment["total_size"]), (kept, 8000))
        del b

    def test_visualiser_reads_it(self) -> None:
        torch.ocl.memory._record_memory_history()
        kept = torch.empty(5000, device="ocl")
        torch.ones(100, device="ocl").add(1)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "snapshot.pickle"
            torch.ocl.memory._dump_snapshot(path)
            snapshot = pickle.loads(path.read_bytes())
        self.assertIn("free completed", _memory_viz.trace(snapshot))
        self.assertIn("segments: 1", _memory_viz.segsum(snapshot))
        self.assertIn(
            "test_visualiser_reads_it",
            _memory_viz.memory(snapshot, format_flamegraph=lambda lines: lines),
        )
        self.assertIn("<html>", _memory_viz.trace_plot(snapshot))
        self.assertIn("<html>", _memory_viz.segment_plot(snapshot))
        del kept

    def test_bounds_and_modes(self) -> None:
        memory = torch.ocl.memory
        memory._record_memory_history(stacks=None, max_entries=3)
        for _ in range(10):
            torch.empty(10, device="ocl")
        (trace,) = memory._snapshot()["device_traces"]
        self.assertLessEqual(len(trace), 6)
        self.assertEqual(trace[0]["frames"], [])
        memory._record_memory_history("state")
        kept = torch.empty(10, device="ocl")
        snapshot = memory._snapshot()
        self.assertEqual((len(snapshot["segments"]), snapshot["device_traces"]), (1, [[]]))
        memory._record_memory_history(None)
        other = torch.empty(10, device="ocl")
        self.assertEqual(len(memory._snapshot()["segments"]), 1)
        del kept, other
        with self.assertRaisesRegex(ValueError, "'all', 'state' or None"):
            memory._record_memory_history("some")
        with self.assertRaisesRegex(ValueError, "'python' or None"):
            memory._record_memory_history(stacks="all")


if __name__ == "__main__":
    unittest.main()
