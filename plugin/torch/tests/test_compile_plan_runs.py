"""torch.compile: how plans run: memory, threads, devices, recordings, traces, errors, interrupts,
caches of processes."""

from __future__ import annotations

import collections
import gc
import signal
import tempfile
import threading
import unittest
import weakref

import torch
from plan_case import PlanCase, bits
from test_compile_process import SAXPY, python
from torch_ocl import _C


def chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = (x @ w).softmax(-1) * 3
    return x.sum(0)


class Runs(PlanCase):
    def compiled(self, n: int = 64) -> None:
        x, w = torch.randn(n, n, device="ocl"), torch.randn(n, n, device="ocl")
        torch.compile(chain)(x, w)

    def given(self, n: int = 64) -> list[torch.Tensor]:
        return [torch.randn(n, n, device="ocl"), torch.randn(n, n, device="ocl")]

    def test_memory(self) -> None:
        """Inputs and values are released where generated Python releases them."""
        n = 512
        self.compiled(n)

        def peak(call: object, keep: bool) -> int:
            given = self.given(n)
            kept = list(given) if keep else []
            torch.ocl.synchronize()
            torch.ocl.reset_peak_memory_stats()
            before = torch.ocl.memory_allocated()
            call(given)
            del kept
            return torch.ocl.max_memory_allocated() - before

        plan, text = self.graphs[-1], self.pythons[-1]
        self.assertEqual(peak(plan, False), peak(text, False))
        self.assertEqual(peak(plan, True), peak(text, True))
        self.assertGreater(peak(plan, True), peak(plan, False))

    def test_what_a_run_leaves(self) -> None:
        self.compiled()
        plan = self.graphs[-1]
        torch.ocl.synchronize()
        before = torch.ocl.memory_allocated()
        given = self.given()
        given[1] = given[1][:, :5]  # not what was compiled: the run ends early
        with self.assertRaises(AssertionError):
            plan(given)
        del given
        self.assertEqual(torch.ocl.memory_allocated(), before)
        result = plan(self.given())
        del result
        self.assertEqual(torch.ocl.memory_allocated(), before)

    def test_threads(self) -> None:
        self.compiled()
        plan, text = self.graphs[-1], self.pythons[-1]
        given = [self.given() for _ in range(8)]
        wanted = [[bits(x) for x in text(list(g))] for g in given]
        got: dict[int, list[object]] = {}

        def run(number: int) -> None:
            for _ in range(10):
                with torch.no_grad():
                    got[number] = [bits(x) for x in plan(list(given[number]))]

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(given))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([got[i] for i in range(len(given))], wanted)

    def test_streams(self) -> None:
        """Steps go to the stream that is current where the graph is called."""
        self.compiled()
        given = self.given()
        wanted = bits(self.pythons[-1](list(given))[0])
        stream = torch.ocl.Stream()
        stream.wait_stream(torch.ocl.current_stream())
        with torch.ocl.stream(stream):
            (got,) = self.graphs[-1](list(given))
            stream.synchronize()
            self.assertEqual(bits(got), wanted)

    def test_recorded(self) -> None:
        self.compiled()
        plan, (x, w) = self.graphs[-1], self.given()
        plan([x, w])
        graph = torch.ocl.OCLGraph()
        with torch.ocl.graph(graph):
            (result,) = plan([x, w])
        for _ in range(3):
            x.copy_(torch.randn(64, 64))
            graph.replay()
            self.assertEqual(bits(result), bits(self.pythons[-1]([x, w])[0]))

    def test_traces(self) -> None:
        """Operators and kernels have the rows that generated Python gives them."""
        self.compiled()
        rows = []
        for call in (self.graphs[-1], self.pythons[-1]):
            given = self.given()
            torch.ocl.synchronize()
            with torch.profiler.profile() as profile:
                call(given)
                torch.ocl.synchronize()
            names = collections.Counter(event.name for event in profile.events())
            rows.append({n: c for n, c in names.items() if n.startswith(("aten::", "ocl_"))})
        self.assertEqual(*rows)
        self.assertIn("aten::mm", rows[0])
        if torch.ocl.get_device_properties().kind == "cpu":  # GPUs' kernels are named otherwise
            self.assertTrue(any(name.startswith("ocl_fused") for name in rows[0]), rows[0])

    def test_errors(self) -> None:
        """Those of generated Python, with the same text."""
        self.compiled()
        x, w = self.given()
        for wrong in ([x[:, :5], w], [x.t(), w], [x.double(), w], [x, w.cpu()], [x], [x, 3]):
            errors = []
            for call in (self.graphs[-1], self.pythons[-1]):
                with self.assertRaises(Exception) as caught:
                    call(list(wrong))
                errors.append((type(caught.exception), str(caught.exception)))
            self.assertEqual(*errors)

    def test_checks(self) -> None:
        """The plan's own checks are as strict as PyTorch's."""
        guards = torch._C._dynamo.guards
        x = torch.randn(6, 1, 4)
        for size, stride in {
            ((6, 1, 4), (4, 4, 1)),
            ((6, 1, 4), (4, 7, 1)),
            ((6, 1, 4), (5, 4, 1)),
            ((6, 4), (4, 1)),
            ((6, 1, 5), (4, 4, 1)),
            ((), ()),
        }:
            called = []
            plan = _C.Plan()
            plan.take([0])
            plan.python(lambda: called.append(1) or (), [], [])
            texts = [[[("constant", n)] for n in numbers] for numbers in (size, stride)]
            plan.check_sizes(0, *texts)
            plan.finish(1, lambda arguments: self.fail("Python was called"))([x])
            try:
                guards.assert_size_stride(x, size, stride)
            except AssertionError:
                self.assertEqual(called, [1])
            else:
                self.assertEqual(called, [])

    @unittest.skipUnless(hasattr(torch._C._dynamo.guards, "assert_alignment"), "new in 2.8")
    def test_beginnings(self) -> None:
        for dtype in (torch.uint8, torch.float16, torch.float32, torch.float64):
            for at in range(20):
                x, called = torch.zeros(64, dtype=dtype)[at:], []
                plan = _C.Plan()
                plan.take([0])
                plan.python(lambda c=called: c.append(1) or (), [], [])
                plan.check_offset(0, 16)
                plan.finish(1, lambda arguments: self.fail("Python was called"))([x])
                try:
                    torch._C._dynamo.guards.assert_alignment(x, 16)
                except AssertionError:
                    self.assertEqual(called, [1])
                else:
                    self.assertEqual(called, [])

    def test_what_nobody_has_any_more(self) -> None:
        """A plan and the module that it belongs to hold each other: both are collected."""
        text = "class Here: pass\nhere = Here()\ndef call(arguments): return here"
        names: dict[str, object] = {}
        exec(text, names)
        here, plan = weakref.ref(names["here"]), _C.Plan()
        plan.look_up(names, [])
        plan.python(names["call"], [], [])
        plan.give([(-1, names["here"])])
        names["call"] = plan.finish(0, names["call"])
        del plan, names
        gc.collect()
        self.assertIsNone(here())

    def test_an_interrupt(self) -> None:
        """A signal's handler runs between steps, and its error ends the run."""
        x, ends = torch.randn(700, 700), []
        plan = _C.Plan()
        plan.take([0])
        for _ in range(400):
            plan.call(1, "aten::mm", "", [("value", 0), ("value", 0)])
        plan.python(lambda: ends.append(1) or (), [], [])
        run = plan.finish(2, lambda arguments: self.fail("Python was called"))

        class Interrupt(Exception):
            pass

        def handle(*_: object) -> None:
            raise Interrupt

        before = signal.signal(signal.SIGALRM, handle)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with self.assertRaises(Interrupt):
                run([x])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(ends, [])


class Processes(unittest.TestCase):
    IS_PLAN = (
        "from torch._inductor.codecache import PyCodeCache\n"
        "print([type(m.call).__name__ for m in PyCodeCache.modules if hasattr(m, 'call')],"
        " torch.ocl.counters()['program_builds'])"
    )

    def test_a_second_process(self) -> None:
        """It finds the text in Inductor's cache, and makes the plan of it again."""
        code = SAXPY + f"print(torch.compile(function)(x, x).tolist())\n{self.IS_PLAN}"
        with tempfile.TemporaryDirectory() as folder:
            names = ("OCLTENSOR_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
            caches = {name: f"{folder}/{name}" for name in names} | {"OCLTENSOR_BUILD_AHEAD": "0"}
            first, second = (python(code, **caches).split("\n") for _ in range(2))
            switched = python(code, **caches, OCLTENSOR_COMPILE_PLAN="0").split("\n")
        self.assertEqual((first[0], second[0], switched[0]), ("[9.0, 36.0]",) * 3)
        self.assertRegex(first[1], r"^\['PlanFunction'\] [1-9]")
        self.assertEqual(second[1], "['PlanFunction'] 0")
        self.assertEqual(switched[1], "['method'] 0")  # of the same text

    def test_two_devices(self) -> None:
        code = (
            "import torch, torch_ocl\n"
            "x = torch.arange(6.0).view(2, 3)\n"
            "function = torch.compile(lambda x, y: (x @ x.t() * 2, y @ y.t() + 3, y.sum(1)))\n"
            "last = torch.ocl.device_count() - 1\n"
            "results = function(x.to('ocl:0'), x.to(f'ocl:{last}'))\n"
            "steps = torch.ocl.compile_report()[-1].plan.steps\n"
            "print([(r.device.index, r.tolist()) for r in results], torch.ocl.current_device(),"
            " steps['enter_device'] == steps['leave_device'] > 1, last)\n"
        )
        text = python(code, POCL_DEVICES="pthread pthread").strip()
        x = torch.arange(6.0).view(2, 3)
        last = int(text.split()[-1])  # beside PoCL's two there may be others
        products = [(0, (x @ x.t() * 2).tolist()), (last, (x @ x.t() + 3).tolist())]
        self.assertEqual(text, f"{[*products, (last, [3.0, 12.0])]} 0 True {last}")
        self.assertGreater(last, 0)


if __name__ == "__main__":
    unittest.main()
