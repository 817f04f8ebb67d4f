"""judges/array_api.py: differences between ocl and the CPU, and processes that crash."""

import argparse
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "judges"))
import array_api  # noqa: E402

FAKE = """
import json, os, sys
arguments = json.loads(sys.argv[sys.argv.index("--work") + 1])
names = [f"array_api_tests/{part}::{n}" for part in ("test_x.py",) for n in "abcd"]
for name in names:
    if name in arguments["seen"]:
        continue
    print("judged " + json.dumps({"begin": name}), file=sys.stderr, flush=True)
    if name.endswith("b") and '"ocl"' in os.environ["ARRAY_API_TESTS_MODULE"]:
        print("terminate called", file=sys.stderr, flush=True)
        os._exit(134)
    state = "failed" if name.endswith("c") else "passed"
    line = {"test": name, "state": state, "reason": "E" * (state == "failed")}
    print("judged " + json.dumps(line), file=sys.stderr, flush=True)
"""


def result(state: str, reason: str = "") -> dict:
    return {"state": state, "reason": reason}


class ArrayApi(unittest.TestCase):
    found = {
        "cpu": {"a": result("passed"), "b": result("failed", "theirs"), "c": result("passed")},
        "ocl": {"a": result("failed", "ours | x"), "b": result("failed"), "c": result("passed")},
    }

    def test_differences(self) -> None:
        self.assertEqual([n for n, _, _ in array_api.differences(self.found)], ["a"])
        text = array_api.page(self.found)
        self.assertIn("| ocl | 2 failed, 1 passed |", text)
        self.assertIn("| `a` | passed | failed | ours \\| x |", text)
        with mock.patch.dict(array_api.EXPLAINED, {"^a$": "on purpose"}):
            self.assertIn("| `a` | passed | failed | on purpose |", array_api.page(self.found))

    def test_missing_is_a_difference(self) -> None:
        found = {"cpu": {"a": result("passed")}, "ocl": {}}
        self.assertEqual([b["state"] for _, _, b in array_api.differences(found)], ["missing"])

    def test_goes_on_behind_a_crash(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "array_api_tests").mkdir()
            part = place / "array_api_tests" / "test_x.py"
            part.write_text("")
            fake = place / "fake.py"
            fake.write_text(FAKE)
            options = argparse.Namespace(
                checkout=place, examples=1, only="", timeout=60.0, scratch=folder
            )
            with mock.patch.object(array_api, "__file__", os.fspath(fake)):
                ours = array_api.run_part(part, "ocl", options)
                theirs = array_api.run_part(part, "cpu", options)
        states = [r["state"] for _, r in sorted(ours.items())]
        self.assertEqual(states, ["passed", "crashed", "failed", "passed"])
        self.assertIn("terminate called", ours["array_api_tests/test_x.py::b"]["reason"])
        self.assertEqual([r["state"] for _, r in sorted(theirs.items())].count("passed"), 3)


if __name__ == "__main__":
    unittest.main()
