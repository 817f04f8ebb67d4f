"""judges/suite.py and its harnesses: differences between ocl and the CPU, processes that crash."""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import sys
import tempfile
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "judges"))
import array_api  # noqa: E402
import geometric  # noqa: E402
import inductor  # noqa: E402
import scipy_api  # noqa: E402
import suite  # noqa: E402

FAKE = """
import json, os, pathlib, sys
told = json.loads(pathlib.Path(sys.argv[sys.argv.index("--work") + 1]).read_text())
for name in [f"tests/test_x.py::{n}" for n in "abcd"]:
    if name in told["seen"]:
        continue
    print("judged " + json.dumps({"begin": name}), file=sys.stderr, flush=True)
    if name.endswith("b") and told["device"] == "ocl":
        print("terminate called", file=sys.stderr, flush=True)
        os._exit(134)
    state = "failed" if name.endswith("c") else "passed"
    line = {"test": name, "state": state, "reason": "E", "notes": {"twins": 2}}
    print("judged " + json.dumps(line), file=sys.stderr, flush=True)
"""


def result(state: str, reason: str = "") -> dict:
    return {"state": state, "reason": reason}


class Suites(unittest.TestCase):
    suite = array_api.SUITE
    found = {
        "cpu": {"a": result("passed"), "b": result("failed", "theirs"), "c": result("passed")},
        "ocl": {"a": result("failed", "ours | x"), "b": result("failed"), "c": result("passed")},
    }

    def test_differences(self) -> None:
        self.assertEqual([n for n, _, _ in suite.differences(self.found)], ["a"])
        text = suite.page(self.suite, self.found)
        self.assertIn("| ocl | 2 failed, 1 passed | 33.3 % |", text)
        self.assertIn("| `a` | passed | failed | ours \\| x |", text)
        known = dataclasses.replace(self.suite, explained={"^a$": "on purpose"})
        self.assertIn("| `a` | passed | failed | on purpose |", suite.page(known, self.found))

    def test_missing_is_a_difference(self) -> None:
        found = {"cpu": {"a": result("passed")}, "ocl": {}}
        self.assertEqual([b["state"] for _, _, b in suite.differences(found)], ["missing"])

    def test_skipped_by_the_suite(self) -> None:
        found = {"cpu": {"a": result("passed")}, "ocl": {"a": result("skipped", "other devices")}}
        self.assertEqual(suite.differences(found), [])
        self.assertIn("| ocl | 1 skipped | - |", suite.page(self.suite, found))

    def test_second_calls(self) -> None:
        both = {"cpu": (10, 500), "ocl": (200, 600)}
        found = {
            d: {n: {**result("passed"), "notes": {suite.SECOND: t}} for n, t in zip("ab", us)}
            for d, us in both.items()
        }
        text = suite.page(self.suite, found)
        self.assertIn("2 second calls", text)
        self.assertIn("| `a` | 10 | 200 | 20 |", text)
        self.assertNotIn("| `b` |", text)

    def test_parts(self) -> None:
        found = {"cpu": {"scipy/fft/tests/test_basic.py::T::x": result("passed")}}
        self.assertIn("| fft/basic | 1 passed |", suite.page(self.suite, found, by_part=True))
        self.assertEqual(suite.part_of("/there/test/nn/conv"), "nn/conv")

    def test_goes_on_behind_a_crash(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            fake = place / "fake.py"
            fake.write_text(FAKE)
            known = dataclasses.replace(self.suite, harness=os.fspath(fake))
            options = argparse.Namespace(
                checkout=place,
                examples=1,
                only="",
                second_calls=False,
                timeout=60.0,
                scratch=folder,
            )
            part = place / "tests" / "test_x.py"
            ours = suite.run_part(known, part, "ocl", options)
            theirs = suite.run_part(known, part, "cpu", options)
        states = [r["state"] for _, r in sorted(ours.items())]
        self.assertEqual(states, ["passed", "crashed", "failed", "passed"])
        self.assertIn("terminate called", ours["tests/test_x.py::b"]["reason"])
        self.assertEqual([r["state"] for _, r in sorted(theirs.items())].count("passed"), 3)
        self.assertIn("twins: 6", suite.page(known, {"cpu": theirs, "ocl": ours}))

    def test_inductor_names_the_device(self) -> None:
        text = 'NPU_TYPE = "npu"\ntorch.npu.x()\nimpl("NPU")\n'
        text += "from inductor.test_torchinductor import y\n"
        ours = inductor.for_device(text, "static", "ocl").splitlines()
        self.assertEqual(ours[:3], ['NPU_TYPE = "ocl"', "torch.ocl.x()", 'impl("PrivateUse1")'])
        self.assertEqual(ours[3], "from test_torchinductor import y")
        self.assertIn('"cuda"', inductor.for_device(text, "static", "cpu"))
        self.assertIn('"cpu"', inductor.for_device(text, "opinfo", "cpu"))

    def test_scipy_chooses_by_fixture(self) -> None:
        chosen = scipy_api.USES_BACKENDS.search
        self.assertTrue(chosen("class TestX:\n    def test_x(self, xp):\n"))
        self.assertTrue(chosen("@make_xp_test_case(fft.fft)\n"))
        self.assertFalse(chosen("def test_x():\n    np.exp(1)\n"))


class Wrong(torch.nn.Linear):
    """On ocl its gradient is twice what it is elsewhere; the values agree."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return 2 * y - y.detach() if x.device.type == "ocl" else y


class Twins(unittest.TestCase):
    def compare(self, module: torch.nn.Module, *args: object) -> str:
        return geometric.compare(module.to("ocl"), args, {})

    def test_module_and_twin(self) -> None:
        x = torch.randn(5, 3, device="ocl")
        edges = torch.tensor([[0, 1], [1, 2]], device="ocl")
        self.assertEqual(self.compare(torch.nn.Linear(3, 2), x), "compared")
        self.assertEqual(self.compare(torch.nn.Dropout(), x), "random")
        self.assertEqual(self.compare(torch.nn.Linear(4, 2), x), "without a twin")
        self.assertEqual(self.compare(torch.nn.Embedding(5, 3), edges), "compared")
        with self.assertRaisesRegex(AssertionError, "not close"):
            self.compare(Wrong(3, 2), x)


if __name__ == "__main__":
    unittest.main()
