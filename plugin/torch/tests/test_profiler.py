"""Traces: what is in the file, and that taking one changes no result."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from collections import defaultdict

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

HOST = 1  # the process of the host's tracks
SLACK = 300.0  # us: how far the device's clock, as measured at the start, may be off


def train(steps: int) -> list[torch.Tensor]:
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)
    ).to("ocl")
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        loss = model(torch.randn(32, 64).to("ocl")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [loss.detach().cpu(), *(p.detach().cpu() for p in model.parameters())]


class Traces(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "trace.json"

    def trace(self, work, mode="interval", **options) -> list[dict]:
        with torch.ocl.profiler.profile(mode, path=self.path, **options):
            self.result = work()
        return json.loads(self.path.read_text())["traceEvents"]

    def test_results_do_not_change(self) -> None:
        expected = train(3)
        for mode in ("interval", "event", " Interval, EVENT "):
            for wait in (False, True):
                self.trace(lambda: train(3), mode, wait_until_completed=wait)
                for a, b in zip(self.result, expected, strict=True):
                    self.assertTrue(torch.equal(a, b))
        self.assertFalse(torch.ocl.profiler.is_enabled())
        for a, b in zip(train(3), expected, strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_kernels_and_their_operators(self) -> None:
        launches = torch.ocl.counters()["launches"]
        events = self.trace(lambda: train(4))
        launches = torch.ocl.counters()["launches"] - launches
        slices = [e for e in events if e["ph"] == "X"]
        calls = {e["args"]["call"]: e for e in slices if e["cat"] == "operator"}
        kernels = [e for e in slices if e["cat"] == "kernel"]
        self.assertEqual(len(kernels), launches)
        self.assertLess({"addmm.out", "mm.out", "relu.out"}, {e["name"] for e in calls.values()})
        for kernel in kernels:
            call = calls[kernel["args"]["call"]]
            self.assertGreaterEqual(kernel["args"]["queued_us"], call["ts"])
            self.assertLessEqual(kernel["args"]["queued_us"], call["ts"] + call["dur"])
            self.assertGreaterEqual(kernel["ts"], kernel["args"]["queued_us"] - SLACK)
        arrows = defaultdict(list)
        for e in events:
            if e["ph"] in "sf":
                arrows[e["id"]].append(e)
        self.assertEqual(
            len(arrows), len([e for e in slices if e["pid"] > HOST and e["args"]["call"]])
        )
        for begin, end in arrows.values():
            self.assertEqual((begin["ph"], end["ph"], begin["pid"]), ("s", "f", HOST))

    def test_streams_are_in_order(self) -> None:
        events = self.trace(lambda: train(4))
        tracks = defaultdict(list)
        for e in events:
            if e["ph"] == "X" and e["pid"] > HOST:
                tracks[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        self.assertTrue(tracks)
        for work in tracks.values():
            work.sort()
            for (_, end), (begin, _) in zip(work, work[1:]):
                self.assertGreaterEqual(begin, end - 1)  # us: rounding of two stamps

    def test_copies_memory_and_names(self) -> None:
        def work():
            x = torch.arange(1 << 18, dtype=torch.float32).to("ocl")
            return (x + 1).cpu()

        events = self.trace(work)
        calls = [e for e in events if e["ph"] == "X" and e["cat"] == "copy" and e["pid"] == HOST]
        self.assertEqual([e["args"]["bytes"] for e in calls], [1 << 20, 1 << 20])
        copies = [e for e in events if e["ph"] == "X" and e["cat"] == "copy" and e["pid"] > HOST]
        self.assertEqual(
            sum(e["args"]["bytes"] for e in copies if e["name"] == "copy to device"), 1 << 20
        )
        self.assertEqual(
            sum(e["args"]["bytes"] for e in copies if e["name"] == "copy to host"), 1 << 20
        )
        for copy in copies:
            self.assertGreater(copy["args"]["GB/s"], 0)
        memory = [e["args"]["allocated"] for e in events if e["ph"] == "C"]
        self.assertGreaterEqual(max(memory), 2 << 20)
        names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.assertIn("host", names)
        self.assertTrue(any(torch.ocl.get_device_name(0) in name for name in names))

    def test_modes(self) -> None:
        phases = {}
        for mode in ("interval", "event", "interval,event"):
            phases[mode] = {e["ph"] for e in self.trace(lambda: train(1), mode)}
        self.assertIn("X", phases["interval"])
        self.assertNotIn("i", phases["interval"])
        self.assertIn("i", phases["event"])
        self.assertNotIn("X", phases["event"])
        self.assertLess({"X", "i"}, phases["interval,event"])

    def test_waiting(self) -> None:
        """An operator's slice ends after its kernels only if the profiler waits for them."""
        size = (
            512 if torch.ocl.get_device_properties().has_unified_memory else 8192
        )  # longer than SLACK
        a = torch.randn(size, size, device="ocl")
        (a @ a).sum().item()

        def late(events):
            calls = {
                e["args"]["call"]: e for e in events if e["ph"] == "X" and e["cat"] == "operator"
            }
            kernels = [e for e in events if e["ph"] == "X" and e["cat"] == "kernel"]
            ends = [(k["ts"] + k["dur"], calls[k["args"]["call"]]) for k in kernels]
            return sum(end > call["ts"] + call["dur"] + SLACK for end, call in ends)

        def work() -> None:
            b = a
            for _ in range(6):
                b = a @ b / 16
            torch.ocl.synchronize()

        self.assertGreater(late(self.trace(work)), 0)
        self.assertEqual(late(self.trace(work, wait_until_completed=True)), 0)

    def test_ranges_and_threads(self) -> None:
        def work() -> None:
            def other() -> None:
                with (
                    torch.ocl.stream(torch.ocl.Stream()),
                    torch.ocl.profiler.range('a "quoted" name'),
                ):
                    (torch.ones(100, device="ocl") * 2).sum().item()

            thread = threading.Thread(target=other)
            thread.start()
            with torch.ocl.profiler.range("outer"), torch.ocl.profiler.range("inner"):
                torch.ones(100, device="ocl").sum().item()
            thread.join()

        events = self.trace(work)
        ranges = {e["name"]: e for e in events if e["ph"] == "X" and e["cat"] == "range"}
        self.assertEqual(set(ranges), {"outer", "inner", 'a "quoted" name'})
        self.assertNotEqual(ranges["outer"]["tid"], ranges['a "quoted" name']["tid"])
        inner, outer = ranges["inner"], ranges["outer"]
        self.assertLessEqual(outer["ts"], inner["ts"])
        self.assertGreaterEqual(outer["ts"] + outer["dur"], inner["ts"] + inner["dur"])
        streams = {e["tid"] for e in events if e["ph"] == "X" and e["pid"] > HOST}
        self.assertEqual(len(streams), 2)
        with self.assertRaisesRegex(RuntimeError, "no range is open"):
            torch.ocl.profiler.range_pop()

    def test_errors(self) -> None:
        profiler = torch.ocl.profiler
        with self.assertRaisesRegex(RuntimeError, "off: start it first"):
            profiler.stop()
        with self.assertRaisesRegex(RuntimeError, "invalid trace mode 'intervals'"):
            profiler.start("intervals", path=self.path)
        with self.assertRaisesRegex(RuntimeError, "cannot be written: No such file"):
            profiler.start(path="/nowhere/trace.json")
        self.assertFalse(profiler.is_enabled())
        profiler.start(path=self.path)
        with self.assertRaisesRegex(RuntimeError, "on already"):
            profiler.start(path=self.path)
        self.assertTrue(profiler.is_enabled())
        profiler.stop()
        with self.assertRaisesRegex(ValueError, "of the user"):
            with profiler.profile(path=self.path):
                torch.ones(3, device="ocl").add(1)
                raise ValueError("of the user")
        self.assertIn("add.out", self.path.read_text())
        if pathlib.Path("/dev/full").exists():
            with self.assertRaisesRegex(RuntimeError, "could not be written to its end"):
                with profiler.profile(path="/dev/full"):
                    train(2)
        self.assertEqual(train(1)[0].shape, ())  # training goes on

    def test_default_path(self) -> None:
        here = os.getcwd()
        os.chdir(self.path.parent)
        try:
            for number in (1, 2):
                with torch.ocl.profiler.profile():
                    torch.ones(3, device="ocl").add(number)
        finally:
            os.chdir(here)
        self.assertEqual(
            len(list(self.path.parent.glob(f"ocltensor_trace_{os.getpid()}_*.json"))), 2
        )

    def test_record_function(self) -> None:
        def work() -> None:
            with torch.profiler.record_function("outer"):
                with torch.profiler.record_function("inner"):
                    torch.ones(100, device="ocl").sum().item()

        ranges = {e["name"] for e in self.trace(work) if e["ph"] == "X" and e["cat"] == "range"}
        self.assertEqual(ranges, {"outer", "inner"})
        work()  # with the trace off nothing is left behind
        self.assertNotIn(
            "outer", {e["name"] for e in self.trace(lambda: torch.ones(3, device="ocl").add(1))}
        )

    def test_fallbacks(self) -> None:
        """They have slices around their copies, and rows with the bytes copied."""
        before = torch.backends.ocl.get_setting("OCLTENSOR_ENABLE_FALLBACK")
        torch.backends.ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 1)
        try:
            x = torch.randn(64, 64).to("ocl")
            torch.ocl.profiler.reset_statistics()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                events = self.trace(lambda: torch._test_functorch_fallback(x, x).cpu())
        finally:
            torch.backends.ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", before)
        slices = [e for e in events if e["ph"] == "X" and e["pid"] == HOST]
        outer = [e for e in slices if e["cat"] == "fallback"]
        self.assertTrue(outer)
        inside = [
            e
            for e in slices
            for o in outer
            if e["cat"] == "copy"
            and o["ts"] <= e["ts"]
            and e["ts"] + e["dur"] <= o["ts"] + o["dur"]
        ]
        self.assertGreaterEqual(sum(e["args"]["bytes"] for e in inside), 64 * 64 * 4)
        rows = torch.ocl.profiler.statistics()["fallbacks"]
        self.assertEqual(sum(r["count"] for r in rows), len(outer))
        self.assertEqual(
            sum(r["bytes"] for r in rows), sum(e["args"].get("bytes", 0) for e in outer)
        )
        self.assertGreater(sum(r["total_ms"] for r in rows), 0)

    def test_statistics_agree_with_the_trace(self) -> None:
        train(1)
        torch.ocl.profiler.reset_statistics()
        events = self.trace(lambda: train(4))
        statistics = torch.ocl.profiler.statistics()
        kernels = defaultdict(list)
        for e in events:
            if e["ph"] == "X" and e["cat"] == "kernel":
                kernels[e["name"]].append(e["dur"] / 1e3)
        self.assertEqual(
            {r["name"]: r["count"] for r in statistics["kernels"]},
            {n: len(t) for n, t in kernels.items()},
        )
        for row in statistics["kernels"]:
            self.assertAlmostEqual(row["total_ms"], sum(kernels[row["name"]]), delta=0.01)
            self.assertAlmostEqual(row["max_ms"], max(kernels[row["name"]]), delta=0.001)
        totals = [r["total_ms"] for r in statistics["operators"]]
        self.assertEqual(totals, sorted(totals, reverse=True))
        operators = [e for e in events if e["ph"] == "X" and e["cat"] == "operator"]
        self.assertEqual(sum(r["count"] for r in statistics["operators"]), len(operators))
        script = (
            "import torch, torch_ocl; p = torch.ocl.profiler; p.start(path='/dev/null'); "
            "torch.ones(3, device='ocl').add(1); p.stop(); p.print_statistics()"
        )
        text = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stderr
        self.assertRegex(
            text, r"operators: \d+ in all(.|\n)*add.out(.|\n)*no CPU fallbacks were recorded"
        )

    def test_whole_process(self) -> None:
        """The two variables in a process of their own: a trace and tables at its end, once."""
        script = (  # the plugin is loaded with the device's first use
            "import torch, torch_ocl\nx = torch.ones(3, device='ocl')\n"
            "with torch.profiler.record_function('mine'): x.add(1)"
        )
        settings = {
            "OCLTENSOR_TRACE_SIGNPOSTS": "all_intervals",
            "OCLTENSOR_LOG_PROFILE_INFO": "operator_stats",
        }
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            cwd=self.path.parent,
            env={**os.environ, **settings},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("wrote a trace of"), 1, done.stderr)
        self.assertEqual(done.stderr.count("operators: "), 1, done.stderr)
        (trace,) = self.path.parent.glob("ocltensor_trace_*.json")
        self.assertIn(str(trace), done.stderr)
        names = {e["name"] for e in json.loads(trace.read_text())["traceEvents"]}
        self.assertLess({"add.out", "mine"}, names)
        unused = subprocess.run(
            [sys.executable, "-c", "import torch_ocl"],
            capture_output=True,
            text=True,
            env={**os.environ, **settings},
        )
        self.assertEqual((unused.returncode, unused.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
