"""The checks of trace_steps.py hold for a trace of training steps, and notice traces that are
wrong."""

import copy
import pathlib
import tempfile
import unittest
from collections import Counter

import torch
import trace_steps


class TraceOfTraining(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = str(pathlib.Path(cls.folder.name) / "trace.json")
        training = trace_steps.Training(2, 32)
        training.step()
        trace_steps.take(training, 2, cls.path)
        cls.events = trace_steps.load(cls.path)

    def test_steps(self) -> None:
        wrong, lines = trace_steps.check(self.path)
        self.assertEqual(wrong, [])
        self.assertEqual(len(lines), 1)
        names = Counter(e["name"] for e in self.events if e["ph"] == "X" and e["cat"] == "range")
        self.assertEqual(
            [names[n] for n in ("forward", "backward", "optimizer", "Optimizer.step#SGD.step")],
            [2] * 4,
        )

    def test_checks_notice(self) -> None:
        def kernels(events):
            return [e for e in events if e["ph"] == "X" and e["cat"] == "kernel"]

        def longer(events) -> None:
            for e in kernels(events):
                e["dur"] *= 2

        def without_operator(events) -> None:
            kernels(events)[3]["args"]["call"] = 1 << 60

        def without_arrow(events) -> None:
            events.remove(next(e for e in events if e["ph"] == "f"))

        checks = {
            longer: lambda e: trace_steps.check_streams(e)[0],
            without_operator: trace_steps.check_kernels,
            without_arrow: trace_steps.check_schema,
        }
        for spoil, check in checks.items():
            self.assertEqual(check(self.events), [])
            spoilt = copy.deepcopy(self.events)
            spoil(spoilt)
            self.assertNotEqual(check(spoilt), [], spoil.__name__)

    def test_same_results(self) -> None:
        plain, traced = trace_steps.Training(2, 32), trace_steps.Training(2, 32)
        losses = [plain.step() for _ in range(2)]
        with torch.ocl.profiler.profile("interval,event", True, path=self.path + ".2"):
            self.assertEqual([traced.step() for _ in range(2)], losses)
        for a, b in zip(plain.model.parameters(), traced.model.parameters(), strict=True):
            self.assertTrue(torch.equal(a.cpu(), b.cpu()))


if __name__ == "__main__":
    unittest.main()
