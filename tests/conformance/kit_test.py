"""Tests of the conformance kit itself: what becomes of a backend that crashes, hangs or exits.

usage: kit_test.py KIT RIGHT.so FAULTY.so   (the template backend, and the same with faults)
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

KIT, RIGHT, FAULTY = sys.argv[1:4]
# The groups in which tests/support/faulty_plugin.c has a fault, and the rows that the kit prints.
GROUPS = {
    "device report": "crashed (SIGSEGV) while trying device.report [tb_device_api]",
    "stream life": "gave no answer in 2 s (--timeout) while trying stream.query of an idle stream"
    " [tb_stream_api]",
    "unknown operators": "ended the process (exit status 0) while trying"
    " operators.find('no_such_operator.out') [Rule \"names\"]",
}
OPERATORS = {
    ("mul.out", "float64"): "crashed (SIGSEGV): the operator's other cases are left out",
    ("fill.Scalar_out", "float32"): "gave no answer in 2 s (--timeout)",
}


class Run:
    def __init__(self, *arguments: str, **environment: str) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            files = {kind: folder / kind for kind in ("json", "junit", "record")}
            options = [f"--{kind}={path}" for kind, path in files.items()]
            done = subprocess.run(
                [KIT, *arguments, *options],
                capture_output=True,
                text=True,
                timeout=1800,
                env={**os.environ, **environment},
            )
            self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
            if files["json"].exists():
                self.json = json.loads(files["json"].read_text())
                self.failed = {g["title"] for g in self.json["groups"] if g["failures"]}
                self.junit = xml.etree.ElementTree.parse(files["junit"]).getroot()[0]
            if files["record"].exists():
                self.records = records(files["record"].read_bytes())


def records(data: bytes) -> list[dict]:
    """The cases of a record file: a line of JSON and the bytes that it counts, each."""
    found = []
    while data:
        line, data = data.split(b"\n", 1)
        found.append(json.loads(line))
        data = data[found[-1]["bytes"] :]
    return found


class Faulty(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.right = Run("--plugin", RIGHT, "--minimal", "--cases=2")
        cls.run_ = Run("--plugin", FAULTY, "--minimal", "--cases=2", "--timeout=2")

    def test_a_right_backend_passes(self) -> None:
        self.assertEqual(self.right.status, 0, self.right.out)
        self.assertEqual(self.right.failed, set())

    def test_each_fault_is_a_row(self) -> None:
        self.assertEqual(self.run_.status, 1)
        self.assertEqual(self.run_.failed, set(GROUPS))
        for title, text in GROUPS.items():
            self.assertIn(f"FAIL {title}: {text}\n", self.run_.out)
        for (op, dtype), text in OPERATORS.items():
            self.assertIn(f"FAIL {op} {dtype}: {text}", self.run_.out)
            self.assertRegex(
                self.run_.out, rf"again: .*--only '\^{op}\$' --dtype {dtype} --seed \d+"
            )

    def test_the_others_have_their_rows(self) -> None:
        titles = [g["title"] for g in self.run_.json["groups"]]
        self.assertEqual(titles, [g["title"] for g in self.right.json["groups"]])
        self.assertGreater(len(titles), 30)
        for op, cells in self.right.json["operators"].items():
            if op in ("mul.out", "fill.Scalar_out"):
                continue
            self.assertEqual(self.run_.json["operators"][op], cells)

    def test_what_a_crash_leaves_out_is_counted(self) -> None:
        for op, dtype in OPERATORS:
            cells = self.run_.json["operators"][op]
            self.assertEqual(cells[dtype]["failed"], 1)
            self.assertEqual(sum(c["failed"] for c in cells.values()), 1)
            count = sum(sum(c.values()) for c in cells.values())
            expected = self.right.json["operators"][op]
            self.assertEqual(count, sum(sum(c.values()) for c in expected.values()))

    def test_junit(self) -> None:
        junit = self.run_.junit
        failed = {
            (case.get("classname"), case.get("name"))
            for case in junit
            if case.find("failure") is not None
        }
        wanted = {("abi", title) for title in GROUPS}
        wanted |= {(f"operators.{op}", dtype) for op, dtype in OPERATORS}
        self.assertEqual(failed, wanted)
        self.assertEqual(int(junit.get("failures")), len(wanted))
        self.assertEqual(int(junit.get("tests")), len(junit))

    def test_records_go_on_behind_a_crash(self) -> None:
        for run in (self.right, self.run_):
            passed = sum(
                c["passed"] for cells in run.json["operators"].values() for c in cells.values()
            )
            self.assertEqual(len(run.records), passed)
            self.assertGreater(passed, 10)

    def test_in_process_the_first_crash_ends_the_run(self) -> None:
        run = Run("--plugin", FAULTY, "--minimal", "--in-process", "--check=device report")
        self.assertEqual(run.status, 128 + 11)
        self.assertIn("CRASH (SIGSEGV) during: ABI check 'device report': device.report", run.err)

    def test_a_crash_at_the_end_of_the_process_is_a_row(self) -> None:
        run = Run(
            "--plugin", FAULTY, "--minimal", "--check=zero bytes", "--only=^mm", FAULTY_AT_EXIT="1"
        )
        self.assertEqual(run.status, 1)
        end = "crashed (SIGSEGV) while trying exit(), after everything was tested"
        self.assertIn(f"FAIL operators: {end}", run.out)
        self.assertGreater(run.json["operators"]["mm.out"]["float32"]["passed"], 0)

    def test_processes_change_no_result(self) -> None:
        run = Run("--plugin", RIGHT, "--minimal", "--cases=2", "--in-process")
        self.assertEqual(run.json, self.right.json)
        self.assertEqual(run.records, self.right.records)

    def test_the_whole_profile_asks_for_more(self) -> None:
        run = Run("--plugin", RIGHT, "--no-operators")
        self.assertEqual(run.status, 1)
        self.assertLessEqual({"generator state", "pinned memory", "profiler"}, run.failed)

    def test_nothing_to_test(self) -> None:
        self.assertEqual(Run("--plugin", "nowhere.so").status, 2)
        self.assertEqual(Run("--plugin", RIGHT, "--device", "7").status, 2)


unittest.main(argv=sys.argv[:1])
