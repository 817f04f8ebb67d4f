"""Tests of the farm: what its gate refuses, what it reads, what it does without a compiler.

usage: test_farm.py    those that need a compiler are skipped where it is not
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import budget
import compilers
import corpus
import devices
import elf
import inner_loop
import page
import table

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = ("gfx906", "gfx1030", "skl")
TOOLS = compilers.Tools()
KNOWN = devices.devices()


def farm(folder: str, programs: list[str], *more: str, environment: dict | None = None) -> tuple:
    """Exit status and output of the command, on planted programs and a table of this compiler."""
    corpus_folder = pathlib.Path(folder) / "corpus"
    corpus_folder.mkdir(exist_ok=True)
    for name in programs:
        text = (HERE / "planted" / f"{name}.cl").read_text()
        (corpus_folder / f"{name}.cl").write_text(text)
        (corpus_folder / f"{name}.opt").write_text("-cl-std=CL1.2")
    command = [sys.executable, HERE / "farm.py", "--offline", "--corpus", corpus_folder]
    command += ["--table", pathlib.Path(folder) / "budget.tsv", *more]
    env = {k: v for k, v in os.environ.items() if k != "CI"} | (environment or {})
    done = subprocess.run(
        [str(c) for c in command], env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


class Gate(unittest.TestCase):
    """With real compilers, for each target of the gate whose compiler is here."""

    def setUp(self) -> None:
        self.targets = [t for t in TARGETS if not TOOLS.lacking(KNOWN[t])]
        if not self.targets:
            self.skipTest(TOOLS.lacking(KNOWN[TARGETS[0]]))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        rows = {t: TOOLS.version(KNOWN[t]) for t in self.targets}
        budget.write(budget.Budget(compilers=rows), pathlib.Path(self.folder) / "budget.tsv")

    def test_clean_programs_pass(self) -> None:
        code, text = farm(self.folder, ["clean"], *self.targets)
        self.assertEqual(code, 0, text)

    def test_a_planted_spill_fails(self) -> None:
        for target in self.targets:
            code, text = farm(self.folder, ["clean", "spill"], target)
            self.assertEqual(code, 1, text)
            self.assertRegex(text, rf"WORSE: {target}: planted/spill.cl:spill \(COUNT=320\): ")
            self.assertNotIn("WORSE: planted/clean", text)

    def test_a_planted_front_end_error_fails(self) -> None:
        for target in self.targets:
            code, text = farm(self.folder, ["mistake"], target)
            self.assertEqual(code, 1, text)
            self.assertRegex(text, rf"WORSE: {target}: planted/mistake.cl.*error: .*not_declared")

    def test_the_table_is_raised_for_a_reason_alone(self) -> None:
        target = self.targets[0]
        code, text = farm(self.folder, ["spill"], target, "--update")
        self.assertEqual(code, 1, text)
        self.assertIn("not raised without --reason", text)
        code, text = farm(self.folder, ["spill"], target, "--update", "--reason", "planted")
        self.assertEqual(code, 0, text)
        code, text = farm(self.folder, ["spill"], target)
        self.assertEqual(code, 0, text)

    def test_another_compiler_counts_failures_alone(self) -> None:
        target = self.targets[0]
        rows = budget.Budget(compilers={target: "another 1.0"})
        budget.write(rows, pathlib.Path(self.folder) / "budget.tsv")
        code, text = farm(self.folder, ["spill"], target)
        self.assertEqual(code, 0, text)
        self.assertIn("only failures count", text)
        self.assertEqual(farm(self.folder, ["mistake"], target)[0], 1)


class Missing(unittest.TestCase):
    def test_is_said_and_fails_in_ci(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            nothing = {"COMPILE_FARM_TOOLS": folder, "PATH": "/nowhere"}
            code, text = farm(folder, ["clean"], "skl", environment=nothing)
            self.assertEqual(code, 77, text)
            self.assertIn("SKIPPED: skl: no ocloc", text)
            code, text = farm(folder, ["clean"], "skl", environment=nothing | {"CI": "true"})
            self.assertEqual(code, 1, text)


class Failures(unittest.TestCase):
    def run_as_ocloc(self, script: str) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "ocloc"
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            tools = compilers.Tools(pathlib.Path(folder))
            tools.ocloc = str(program)
            return compilers.compile_program(tools, KNOWN["skl"], "kernel", "")

    def test_a_signal_is_a_crash(self) -> None:
        result = self.run_as_ocloc("kill -SEGV $$")
        self.assertEqual(result["status"], "crash", result)

    def test_no_end_is_a_failure(self) -> None:
        with mock.patch.object(compilers, "SECONDS", 1):
            result = self.run_as_ocloc("while true; do :; done")
        self.assertEqual(result["status"], "timeout", result)

    def test_no_output_is_an_error(self) -> None:
        self.assertEqual(self.run_as_ocloc("exit 0")["status"], "error")


class Table(unittest.TestCase):
    program = corpus.Program("a/b.cl", "X=1", HERE, "", {"k": (256, 0)})

    def result(self, spills: int = 0, private: int = 0) -> dict:
        kernel = {"registers": 64, "spills": spills, "private": private, "local": 0, "width": 64}
        return {"status": "ok", "message": "", "kernels": {"k": kernel, "not_launched": kernel}}

    def judge(self, entry: budget.Entry | None, result: dict) -> budget.Verdict:
        known = budget.Budget({"gfx906": "c"})
        if entry:
            kernel = "a/b.cl:k" if entry.status == "ok" else "a/b.cl"
            known.entries["gfx906", kernel, "X=1"] = entry
        return budget.judge(known, KNOWN["gfx906"], "c", [(self.program, result)])

    def test_numbers_may_only_fall(self) -> None:
        entry = budget.Entry("D2", "ok", 10, 40)
        self.assertFalse(self.judge(entry, self.result(10, 40)).worse)
        self.assertTrue(self.judge(entry, self.result(11, 40)).worse)
        self.assertTrue(self.judge(entry, self.result(0, 44)).worse)
        better = self.judge(entry, self.result(0, 0))
        self.assertTrue(better.better and not better.worse)
        self.assertTrue(self.judge(None, self.result(0, 4)).worse)
        self.assertFalse(self.judge(None, self.result()).worse)

    def test_only_a_listed_crash_is_allowed(self) -> None:
        crash = {"status": "crash", "message": "exit status -11", "kernels": {}}
        self.assertTrue(self.judge(None, crash).worse)
        self.assertFalse(self.judge(budget.Entry("D1", "crash"), crash).worse)
        error = {**crash, "status": "error"}
        self.assertTrue(self.judge(budget.Entry("D1", "crash"), error).worse)

    def test_a_row_for_any_form(self) -> None:
        known = budget.Budget(entries={("skl", "a/b.cl", "*"): budget.Entry("D1", "crash")})
        crash = {"status": "crash", "message": "", "kernels": {}}
        self.assertFalse(budget.judge(known, KNOWN["skl"], "c", [(self.program, crash)]).worse)

    def test_updates_lower_and_take_out(self) -> None:
        known = budget.Budget({"gfx906": "c"})
        key = ("gfx906", "a/b.cl:k", "X=1")
        known.entries[key] = budget.Entry("D2", "ok", 10, 40)
        for result, left in ((self.result(4, 16), budget.Entry("D2", "ok", 4, 16)), (None, None)):
            pair = (self.program, result or self.result())
            verdict = budget.judge(known, KNOWN["gfx906"], "c", [pair])
            self.assertEqual(budget.update(known, verdict, ""), [])
            self.assertEqual(known.entries.get(key), left)

    def test_updates_forget_what_is_not_asked_for_any_more(self) -> None:
        known = budget.Budget({"gfx906": "c"})
        for device in ("gfx906", "skl"):
            known.entries[device, "a/old.cl:k", "X=1"] = budget.Entry("D2", "ok", 10, 40)
            known.entries[device, "a/old.cl", "*"] = budget.Entry("D1", "crash")
        verdict = budget.judge(known, KNOWN["gfx906"], "c", [(self.program, self.result())])
        budget.settle(known, "gfx906", verdict)
        self.assertEqual({key[0] for key in known.entries}, {"skl"})

    def test_rows_for_any_form_are_raised_and_settle_at_the_most(self) -> None:
        known = budget.Budget({"gfx906": "c"})
        forms = [dataclasses.replace(self.program, form=f"X={n}") for n in range(3)]
        key = ("gfx906", "a/b.cl:k", "*")
        for factor in (4, 2):
            pairs = [(p, self.result(n, factor * n)) for n, p in enumerate(forms)]
            verdict = budget.judge(known, KNOWN["gfx906"], "c", pairs)
            self.assertEqual(budget.update(known, verdict, "D4", any_form=True), [])
            budget.settle(known, "gfx906", verdict)
            self.assertEqual(known.entries, {key: budget.Entry("D4", "ok", 2, 2 * factor)})

    def test_is_read_as_it_was_written(self) -> None:
        known = budget.read()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "budget.tsv"
            budget.write(known, path)
            self.assertEqual(path.read_text(), budget.PATH.read_text())
        self.assertEqual({d for d, *_ in known.entries} - set(KNOWN), set())

    def test_occupancy(self) -> None:
        unit = KNOWN["gfx906"].unit
        kernel = {"registers": 128, "width": 64}
        self.assertEqual(table.occupancy(unit, kernel, 256, 0), (8, 40))
        self.assertEqual(table.occupancy(unit, kernel, 256, 40000), (4, 40))
        self.assertEqual(table.occupancy(KNOWN["gfx1030"].unit, kernel, 32, 0), (16, 32))


class Page(unittest.TestCase):
    program = corpus.Program("conv/implicit.cl", "X=1", HERE, "", {"implicit": (256, 0)})

    def result(self, private: int = 0) -> dict:
        kernel = {"registers": 64, "spills": 0, "private": private, "local": 0, "width": 64}
        return {"status": "ok", "message": "", "kernels": {"implicit": kernel}}

    def made(self, private: int = 0) -> page.Page:
        document = page.Page()
        document.put(KNOWN["gfx906"], "clang 1", [(self.program, self.result(private))])
        return document

    def test_is_current(self) -> None:
        found = page.problems(page.PATH.read_text(), budget.read(), KNOWN)
        self.assertEqual(found, [], "./run compile-farm --all --markdown plugin/opencl/DEVICES.md")

    def test_is_read_as_it_was_written(self) -> None:
        text = self.made(8).text()
        self.assertEqual(page.read(text).text(), text)
        self.assertRegex(text, r"\| `implicit` \| 64, \d+%, 8 B \|")
        self.assertIn(f"| gfx906 | {KNOWN['gfx906'].title} | clang 1 | 1 | 0 |", text)

    def test_has_the_most_of_each_kernel_and_a_dash_for_what_was_not_asked(self) -> None:
        document = self.made()
        more = dataclasses.replace(self.program, form="X=2")
        other = dataclasses.replace(
            self.program, source="norm/a.cl", launches={"implicit": (64, 0)}
        )
        results = [(self.program, self.result()), (more, self.result(4)), (other, self.result())]
        document.put(KNOWN["skl"], "ocloc", results)
        text = document.text()
        self.assertRegex(text, r"\| `implicit` \| 64, \d+% \| 64, \d+%, 4 B \|")
        self.assertRegex(text, r"\| `a: implicit` \| - \| 64, \d+% \|")

    def test_keeps_sources_and_devices_that_were_not_compiled(self) -> None:
        document = self.made(8)
        other = dataclasses.replace(self.program, source="norm/a.cl")
        document.put(KNOWN["gfx906"], "clang 2", [(other, self.result())], whole=False)
        document.put(KNOWN["skl"], "ocloc", [(other, self.result())])
        self.assertEqual(document.cells["conv", "implicit"], {"gfx906": "64, 40%, 8 B"})
        self.assertEqual(document.known["gfx906"].compiler, "clang 1")
        document.put(KNOWN["gfx906"], "clang 2", [(other, self.result())])
        self.assertNotIn(("conv", "implicit"), document.cells)

    def test_a_kernel_that_it_lacks_is_told(self) -> None:
        document, device = self.made(), KNOWN["gfx906"]
        self.assertEqual(page.lacking(document, device, [(self.program, self.result())]), [])
        other = dataclasses.replace(self.program, source="norm/a.cl")
        lacking = page.lacking(document, device, [(other, self.result())])
        self.assertEqual(lacking, ["gfx906: norm/a: implicit"])

    def test_what_is_not_so_is_told(self) -> None:
        there = {"gfx906": KNOWN["gfx906"]}
        known = budget.Budget({"gfx906": "clang 1"})
        self.assertEqual(page.problems(self.made().text(), known, there), [])
        row = {("gfx906", "conv/implicit.cl:implicit", "*"): budget.Entry("D2", "ok", 0, 8)}
        listed = budget.Budget({"gfx906": "clang 1"}, row)
        self.assertEqual(page.problems(self.made(8).text(), listed, there), [])
        text = self.made().text()
        for wrong, why in (
            ((self.made(8).text(), known, there), "the table has no reason"),
            ((text, budget.Budget({"gfx906": "clang 2"}), there), "clang 2 in the table"),
            ((text, known, there | {"skl": KNOWN["skl"]}), "skl has no row"),
            ((text.replace("Vega 20", "Vega 64"), known, there), "is AMD Vega 20"),
            ((text.replace("`implicit`", "`explicit`"), known, there), "there is no kernel"),
            ((text + "\nmore", known, there), "not as it was written"),
        ):
            self.assertIn(why, " ".join(page.problems(*wrong)))


class Accepted(unittest.TestCase):
    """By the plugin that this build tree has: what it asks of a driver, the null layer answers."""

    def test_each_described_device(self) -> None:
        if "COMPILE_FARM_BUILD" not in os.environ:
            self.skipTest("no build tree is named")
        build = pathlib.Path(os.environ["COMPILE_FARM_BUILD"])
        for device in KNOWN.values():
            with tempfile.TemporaryDirectory() as folder:
                answers = pathlib.Path(folder) / "device"
                answers.write_text(device.flat())
                settings = {
                    "OPENCL_LAYERS": str(build / "lib/libnull_layer.so"),
                    "FARM_DEVICE": str(answers),
                    "FARM_DUMP": folder,
                    "OCLTENSOR_CACHE_DIR": folder,
                    "OCLTENSOR_BUILD_AHEAD": "0",
                }
                info = subprocess.run(
                    [build / "bin/ocltensor-info"],
                    env=os.environ | settings,
                    capture_output=True,
                    text=True,
                )
            said = info.stdout + info.stderr
            self.assertIn(f"; {device.name}, {device.title}: its row of", said)


class Reading(unittest.TestCase):
    def test_devices(self) -> None:
        self.assertGreaterEqual(len(KNOWN), 13)
        for device in KNOWN.values():
            self.assertIn(device.compiler, compilers.COMPILERS)
            self.assertEqual(device.flat().count("\n"), len(device.flat().splitlines()))
            for fact in device.facts:
                self.assertEqual(set(fact) - {"caps"}, {"text", "source"})

    def test_capabilities(self) -> None:
        caps = devices.caps(KNOWN["adreno"]).split(",")
        expected = ("fp64=0", "int64_atomics=0", "work_group=1024", "kernel_work_group=64")
        self.assertLessEqual(set(expected), set(caps))
        self.assertIn("item_registers=128", devices.caps(KNOWN["skl"]))

    def test_profiles_are_the_descriptions(self) -> None:
        self.assertEqual(
            devices.PROFILES.read_text(), devices.profiles(), "run devices.py profiles"
        )

    def test_comments_and_places_of_lines_change_no_key(self) -> None:
        device = KNOWN["gfx906"]

        def key(text: str) -> str:
            return compilers.key_of("c", device, text, "-O")

        one = 'int a; // one\n#line 7 "x.cl"\nint b; /* two\n lines */\n'
        self.assertEqual(key(one), key('int a;\n\n#line 9 "x.cl"\n  int b;\n'))
        self.assertNotEqual(key(one), key(one.replace("int b", "int c")))
        self.assertNotEqual(key(one), compilers.key_of("d", device, one, "-O"))

    def test_inner_loops_of_amd(self) -> None:
        assembly = "f:\n\tv_dot4_i32_i8 v0, v1, v2, v0\n.LBB0_1:\n\tds_load_b128 v[0:3], v4\n"
        assembly += "\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]\n" * 3
        assembly += "\ts_cbranch_scc0 .LBB0_1\n.LBB0_2:\n\ts_endpgm\n"
        self.assertEqual(inner_loop.of_amd(assembly), (3, 5))
        self.assertEqual(inner_loop.of_amd("f:\n.LBB0_1:\n\ts_branch .LBB0_1\n"), (0, 0))

    def test_inner_loops_of_intel(self) -> None:
        def code(opcode: int, to: int | None = None) -> bytes:
            if to is None:  # compacted
                return struct.pack("<Q", opcode | 1 << 29)
            return struct.pack("<Qii", opcode, to, to)

        dpas, add, jump = code(0x59), code(0x40), 0x2E
        program = [add, add, dpas, dpas, add, code(jump, -24), add, dpas, code(0x31, 0)]
        self.assertEqual(inner_loop.of_intel(b"".join(program)), (2, 4))
        self.assertEqual(inner_loop.of_intel(b"".join([add, code(jump, -8)])), (0, 0))

    def test_messagepack(self) -> None:
        data = b"\x82\xa1a\x93\x01\xff\xcd\x01\x00\xd9\x02bc\xc3"
        self.assertEqual(elf.Unpacker(data).value(), {"a": [1, -1, 256], "bc": True})

    def test_notes(self) -> None:
        note = struct.pack("<III", 7, 3, 32) + b"AMDGPU\0\0" + b"xyz\0"
        self.assertEqual(elf.notes(note), [("AMDGPU", 32, b"xyz")])

    def test_zebin(self) -> None:
        info = (
            "version: '1.14'\nkernels:\n  - name:            k\n    execution_env:\n"
            "      grf_count:       128\n      simd_size:       16\n"
            "    per_thread_memory_buffers:\n"
            "      - type:            scratch\n        usage:           single_space\n"
            "        size:            1024\n      - type:            global\n"
            "        usage:           private_space\n        size:            816\n"
            "        is_simt_thread:  true\nkernels_misc_info:\n  - name:            k\n"
        )
        kernel = compilers.intel_kernels(info, {".text.k": b"1234"})["k"]
        self.assertEqual((kernel["private"], kernel["width"], kernel["code"]), (880, 16, 4))


if __name__ == "__main__":
    unittest.main()
