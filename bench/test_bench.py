"""The bench tells right from wrong and fast from slow: small rows of the real plugin, and
contestants that lie.

usage: test_bench.py PLUGIN [unittest's arguments]; exit status 77 where numpy is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is missing")
    sys.exit(77)

import ages
import contest
import data
import goals
import measure
import peers
import plot
import report
import results
import sides
from families import FAMILIES, all_rows
from families.conv import DIRECTIONS, RESNET18, resnet50
from families.matmul import product
from rows import Scale
from sides import clblast

import bench

PLUGIN = ""
NUMBERS = {"weight", "flops", "bytes", "size", "us", "us_low", "us_high", "limit_us", "share"}


class Fake:
    """A contestant whose result is `factor` times the right one, and whose calls take `seconds`."""

    def __init__(
        self, name: str, factor: float = 1.0, seconds: float = 1e-3, nans: int = 0
    ) -> None:
        self.name, self.factor, self.seconds, self.nans = name, factor, seconds, nans
        self.process = None
        self.about = {
            "name": name,
            "device": "fake",
            "gpu": False,
            "vendor": "",
            "cache_bytes": 1 << 20,
            "versions": {},
        }

    def prepare(self, row: str) -> dict:
        values = np.random.default_rng(1).standard_normal(100) * self.factor
        return {
            "once": self.seconds,
            "digests": [data.digest(values, self.nans)],
            "sets": 1,
            "memory": 0,
        }

    def sample(self, seconds: float) -> float:
        return self.seconds

    def ask(self, what: str, **more: object) -> dict:
        return {"copy_gbytes": 10.0, "float32_gflops": 100.0}

    def release(self) -> None:
        pass

    close = release


def run(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = bench.main([*arguments])
    return status, out.getvalue()


def adapter_folder(case: unittest.TestCase) -> pathlib.Path:
    """Where the plugin's build has `torch_ocl`; skips the test where there is none."""
    folder = pathlib.Path(PLUGIN).resolve().parent.parent / "torch"
    if not (folder / "torch_ocl").is_dir() or importlib.util.find_spec("torch") is None:
        case.skipTest("the PyTorch adapter was not built")
    return folder


class Judging(unittest.TestCase):
    row = product(64, 64, 64)

    def test_a_right_result_is_timed(self) -> None:
        entry = contest.measure(self.row, Fake("ours"), [Fake("theirs", seconds=3e-3)], 5, 0.01)
        self.assertFalse(entry["wrong"])
        self.assertAlmostEqual(entry["peers"]["theirs"]["ratio"], 3.0)
        self.assertNotIn("WRONG", report.line(entry))

    def test_another_result_is_wrong(self) -> None:
        for liar in (
            Fake("liar", 1.001),
            Fake("liar", -1),
            Fake("liar", float("nan")),
            Fake("liar", nans=1),
        ):
            entry = contest.measure(self.row, Fake("ours"), [Fake("honest"), liar], 3, 0.01)
            self.assertTrue(entry["wrong"])
            self.assertTrue(entry["peers"]["liar"]["wrong"])
            self.assertFalse(entry["peers"]["honest"]["wrong"])
            self.assertIn("WRONG liar", report.line(entry))
            self.assertIn("**WRONG**", "\n".join(report.rows_table([entry])))

    def test_the_command_fails_on_a_wrong_result(self) -> None:
        for factor, status in ((1.0, 0), (2.0, 1)):
            with mock.patch.object(
                bench,
                "Contestant",
                lambda name, setup, f=factor: Fake(name, f if "torch" in name else 1.0),
            ):
                got, text = run("--plugin", "none", "matmul", "--only", "64x64x64 nn")
            self.assertEqual(got, status)
            self.assertEqual("WRONG" in text, bool(status))

    def test_a_contestant_that_refuses_is_no_result(self) -> None:
        refusing = Fake("ours")
        refusing.prepare = mock.Mock(side_effect=peers.Refused("no such operator"))
        self.assertIn(
            "not run: no such operator",
            report.line(contest.measure(self.row, refusing, [], 3, 0.01)),
        )
        entry = contest.measure(self.row, Fake("ours"), [refusing], 3, 0.01)
        self.assertNotIn("error", entry)
        self.assertEqual(entry["peers"]["ours"], {"refused": "no such operator"})

    def test_an_earlier_build_is_told_apart(self) -> None:
        def judged(seconds: float) -> tuple[str, int]:
            earlier = Fake("earlier", seconds=seconds)
            others = [earlier, Fake("torch-cpu", seconds=1e-6)]
            entry = contest.measure(self.row, Fake("ours"), others, 3, 0.01)
            lines, worse = report.against_earlier([entry])
            return "\n".join(lines), worse

        text, worse = judged(5e-4)
        self.assertEqual(worse, 1)
        self.assertIn("SLOWER", text)
        self.assertIn("1 rows, geometric mean x0.500, 1 slower", text)
        text, worse = judged(2e-3)
        self.assertEqual(worse, 0)
        self.assertIn("faster", text)
        text, worse = judged(1e-3)
        self.assertEqual(worse, 0)
        self.assertNotIn("faster", text)
        entry = contest.measure(self.row, Fake("ours"), [Fake("torch-cpu")], 3, 0.01)
        self.assertEqual(report.against_earlier([entry]), ([], 0))

    def test_goals(self) -> None:
        entry = contest.measure(
            product(512, 512, 512, group="matmul float32"),
            Fake("ours"),
            [Fake("torch-cpu", seconds=9e-4)],
            3,
            0.01,
        )
        states = {g["goal"]: g["state"] for g in goals.judge([entry], gpu=False)}
        self.assertEqual(states, {"float32 matmul of 256 and more": "first met"})
        others = [line for line in report.goals_table([entry], gpu=False) if "not measured" in line]
        self.assertEqual(
            len(others), sum(not g.gpu and g.how != "seconds" for g in goals.GOALS) - 1
        )


class Descriptors(unittest.TestCase):
    def test_every_row_has_costs_and_a_name_of_its_own(self) -> None:
        for scale in (Scale(False), Scale(True), Scale(False, True), Scale(True, True)):
            rows = all_rows(scale)
            self.assertEqual(len({r.name for r in rows}), len(rows))
            for row in rows:
                self.assertIn(row.family, FAMILIES)
                self.assertTrue(row.bytes > 0 or row.only, row.name)
                self.assertTrue(all(i < len(row.outs) for i in row.check) or row.only, row.name)

    def test_models_have_all_their_convolutions(self) -> None:
        self.assertEqual(sum(layer.count for layer in RESNET18), 20)
        self.assertEqual(sum(layer.count for layer in resnet50()), 53)

    def test_sets_go_beyond_the_cache(self) -> None:
        self.assertEqual(measure.sets_for(1 << 20, 8 << 20), 32)
        self.assertEqual(measure.sets_for(64 << 20, 8 << 20), 1)
        self.assertEqual(measure.sets_for(0, 8 << 20), measure.MOST_SETS)

    def test_data_is_the_same_again_and_never_constant(self) -> None:
        tensor = product(64, 64, 64).inputs()[0]
        a, b = data.draw("row", 0, tensor), data.draw("row", 0, tensor)
        np.testing.assert_array_equal(a, b)
        self.assertGreater(float(a.std()), 0.5)
        self.assertFalse(np.array_equal(a, data.draw("row", 1, tensor)))
        x = np.float32([1.0, -2.5, 3.14159])
        np.testing.assert_allclose(data.from_bfloat16(data.to_bfloat16(x)), x, rtol=4e-3)


class TunedClblast(unittest.TestCase):
    """What CLBlast's tuners write, as the peer clblast-tuned reads it."""

    @staticmethod
    def write(folder: str, family: str, *results: tuple[float, dict[str, int]]) -> None:
        book = {
            "kernel_family": family,
            "results": [
                {"time": time, "parameters": {**p, "PRECISION": 32}} for time, p in results
            ],
        }
        pathlib.Path(f"{folder}/clblast_{family}_32.json").write_text(json.dumps(book))

    def test_the_fastest_of_all_searches_counts(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "xgemm_1", (3.0, {"MWG": 16}), (2.0, {"MWG": 32}))
            self.write(folder, "xgemm_12", (1.0, {"MWG": 64}), (4.0, {"MWG": 8}))
            self.write(folder, "xgemm_direct_2", (1.0, {"WGD": 8}))
            self.write(folder, "xdot_1", (1.0, {"WGS1": 8}))  # of no product
            self.assertEqual(
                clblast.tuned_parameters(folder),
                {"Xgemm": {"MWG": 64}, "XgemmDirect": {"WGD": 8}},
            )

    def test_a_product_needs_both_kernels(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "xgemm_1", (1.0, {"MWG": 16}))
            with self.assertRaisesRegex(RuntimeError, "no results .* for XgemmDirect"):
                clblast.tuned_parameters(folder)

    def test_the_peer_needs_a_folder(self) -> None:
        with (
            mock.patch.object(bench, "Contestant", lambda name, setup: Fake(name)),
            self.assertRaisesRegex(SystemExit, "clblast-tuned needs --clblast-tuned"),
        ):
            run("--plugin", "none", "--peer", "clblast-tuned")


class Libraries(unittest.TestCase):
    """Peers that are libraries, on small rows; skipped where one is not installed."""

    def check(self, kind: str, rows: list[str], **more: object) -> None:
        options = {"plugin": PLUGIN, "device": 0, "setting": [], "clblast_tuned": "", **more}
        ours = sides.make("plugin", argparse.Namespace(**options))
        try:
            theirs = sides.make(kind, argparse.Namespace(**options))
        except RuntimeError as e:
            self.skipTest(str(e))
        known = {row.name: row for row in all_rows(Scale(False))}
        for row in (known[name] for name in rows):
            with self.subTest(row.name):
                self.assertTrue(theirs.supports(row))
                digests = [side.prepare(row)["digests"] for side in (ours, theirs)]
                self.assertLessEqual(data.difference(*digests), row.tolerance)
                for side in (ours, theirs):
                    side.release()

    def test_clblast(self) -> None:
        rows = ["512x512x512 nt float32", "512x512x512 tt float32"]
        self.check("clblast", [*rows, "bmm 32x96x128x64 nn float32"])

    def test_dlprimitives(self) -> None:
        layer = "resnet50 128x28 -> 512 1x1 s1 b4 (x4)"
        rows = [f"{direction}: {layer}" for direction in DIRECTIONS]
        self.check("dlprimitives", ["512x512x512 tn float32", *rows])


class Files(unittest.TestCase):
    committed = sorted((HERE / "results").glob("*.json"))

    def test_committed_results_are_small_and_read(self) -> None:
        self.assertGreater(len(self.committed), 1)
        for path in self.committed:
            lines = path.read_text().splitlines()
            book = results.load(str(path))
            self.assertLess(len(lines), 2 * len(book["rows"]))
            status, text = run("--from", str(path), "--compare", str(path))
            self.assertEqual(status, 0, text)
            self.assertIn(f"{len(book['rows'])} rows, geometric mean x1.000, 0 slower", text)

    def test_committed_tables_are_theirs(self) -> None:
        text = (HERE / "RESULTS.md").read_text()
        self.assertEqual(results.committed_tables(lambda *_: None), ages.without_remarks(text))

    def test_old_sections_say_so(self) -> None:
        book = results.load(str(HERE / "results/h200.json"))
        commits = {"conv": ages.OLD, "matmul": ages.OLD - 1}
        text = "\n".join(results.section(book, "", lambda commit, family: commits.get(family)))
        of_conv = text.split("\n### conv\n")[1].split("\n### ")[0]
        count = sum(r["family"] == "conv" for r in book["rows"])
        self.assertIn(f"**Old**: {count} rows measured 100 commits of its kernels ago.", of_conv)
        self.assertIn("**Old**: what is from conv, see there.", text.split("\n### ")[1])
        self.assertEqual(text.count(ages.MARK), 2)
        plain = "\n".join(results.section(book, "", lambda *_: None))
        self.assertEqual(ages.without_remarks(text), plain)
        self.assertNotIn(ages.MARK, plain)

    def test_ages_count_commits_of_a_family(self) -> None:
        self.assertEqual({*ages.FOLDERS, "launch"}, set(FAMILIES))
        for folders in ages.FOLDERS.values():
            for folder in folders:
                self.assertTrue((HERE.parent / "kernels" / folder).is_dir(), folder)
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            self.assertIsNone(ages.commits_since("HEAD", "conv", root / "nowhere"))
            with mock.patch.dict(os.environ, GIT_CEILING_DIRECTORIES=str(root.parent)):
                self.assertIsNone(ages.commits_since("HEAD", "conv", root))

            def git(*words: str) -> str:
                who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
                command = ["git", *who, *words]
                return subprocess.run(
                    command, cwd=root, check=True, capture_output=True, text=True
                ).stdout.strip()

            git("init", "-q")
            for name in (
                "kernels/conv/a.cl",
                "kernels/conv/b.cl",
                "kernels/vendor/conv/c.cl",
                "plugin/opencl/ops/conv/d.cpp",
                "kernels/pool/e.cl",
                "README.md",
            ):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(name)
                git("add", ".")
                git("commit", "-q", "-m", name)
            first = git("rev-list", "--max-parents=0", "HEAD")
            self.assertEqual(ages.commits_since(first, "conv", root), 3)
            self.assertEqual(ages.commits_since(first, "pool", root), 1)
            self.assertEqual(ages.commits_since(first, "models", root), 4)
            self.assertEqual(ages.commits_since(first, "launch", root), 0)
            self.assertIsNone(ages.commits_since("", "conv", root))
            self.assertIsNone(ages.commits_since("0123abc", "conv", root))

    def test_a_file_written_again_is_the_same(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for path in self.committed:
                again = f"{folder}/{path.name}"
                results.save(again, results.load(str(path)))
                self.assertEqual(pathlib.Path(again).read_text(), path.read_text())

    def test_everything_that_is_shown_comes_back(self) -> None:
        refusing, liar = Fake("refusing"), Fake("liar", 2.0)
        refusing.prepare = mock.Mock(side_effect=peers.Refused("no such operator"))
        rows = [
            contest.measure(row, ours, [Fake("torch-cpu", seconds=3e-3), refusing, liar], 3, 0.01)
            for row, ours in (
                (product(512, 512, 512, group="matmul float32"), Fake("ours")),
                (product(64, 64, 64), refusing),
            )
        ]
        about = {"ocltensor": {**Fake("ours").about, "versions": {"driver": "one, two"}}}
        meta = {
            "device": "fake",
            "gpu": False,
            "limits": Fake("ours").ask("limits"),
            "contestants": about,
        }
        meta |= {
            "command": "bench.py",
            "date": "today",
            "commit": "",
            "threads": 1,
            "machine": bench.machine(),
        }
        book = results.book(meta, rows)
        with tempfile.TemporaryDirectory() as folder:
            results.save(f"{folder}/a.json", book)
            back = results.load(f"{folder}/a.json")
        self.assertEqual(results.section(back, ""), results.section(book, ""))
        self.assertEqual(
            [report.line(r) for r in back["rows"]], [report.line(r) for r in book["rows"]]
        )
        self.assertIn("**WRONG**", "\n".join(results.section(back, "")))


class Command(unittest.TestCase):
    def test_rows_of_the_plugin(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/a.json"
            peer = "torch-cpu" if importlib.util.find_spec("torch") else "openblas"
            status, text = run(
                "--plugin",
                PLUGIN,
                "matmul",
                "--only",
                "64x64x64 nn",
                "--peer",
                peer,
                "--samples",
                "2",
                "--seconds",
                "0.001",
                "--json",
                path,
            )
            self.assertEqual(status, 0, text)
            self.check_file(path)
            self.check_comparison(path)
            status, text = run("--from", path, "--markdown", f"{folder}/a.md", "--plot", folder)
            self.assertEqual(status, 0)
            self.assertIn("64x64x64 nn float32", pathlib.Path(f"{folder}/a.md").read_text())
            self.assertIn("<svg", pathlib.Path(f"{folder}/roofline.svg").read_text())

    def test_an_earlier_build_runs_beside(self) -> None:
        words = ["--plugin", PLUGIN, "--earlier", PLUGIN, "--peer", "none", "--samples", "2"]
        _, text = run(*words, "--seconds", "0.001", "matmul", "--only", "64x64x64 nn float32")
        self.assertRegex(text, r"64x64x64 nn float32 +[0-9.]+ us .*earlier [0-9.]+ us x[0-9.]+")
        self.assertIn("1 rows beside the earlier build", text)
        self.assertNotIn("WRONG", text)

    def test_a_row_has_settings_of_its_own(self) -> None:
        side = sides.make("plugin", argparse.Namespace(plugin=PLUGIN, device=0, setting=[]))
        name = "OCLTENSOR_PREFER_OPENCL"
        side.prepare(product(8, 8, 8, settings={name: "1"}))
        self.assertEqual(side.plugin.get(name), "1")
        side.release()
        self.assertEqual(side.plugin.get(name), "0")

    def test_a_python_call(self) -> None:
        adapter_folder(self)
        status, text = run(
            "--plugin",
            PLUGIN,
            "torch",
            "--only",
            "a + b",
            "--samples",
            "2",
            "--seconds",
            "0.001",
            "--peer",
            "torch-cpu",
        )
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"a \+ b, 256 elements +[0-9.]+ us .*torch-cpu [0-9.]+ us")

    def check_file(self, path: str) -> None:
        book = results.load(path)
        self.assertEqual(book["schema"], results.SCHEMA)
        meta = book["runs"][0]
        self.assertLessEqual(
            {"command", "date", "machine", "device", "limits", "contestants", "threads"}, set(meta)
        )
        self.assertGreater(meta["limits"]["copy_gbytes"], 0)
        self.assertGreater(meta["limits"]["float32_gflops"], 0)
        (row,) = book["rows"]
        self.assertLessEqual(
            NUMBERS | {"name", "family", "dtype", "peers", "wrong", "run"}, set(row)
        )
        for key in NUMBERS:
            self.assertIsInstance(row[key], (int, float), key)
        self.assertGreater(row["us"], 0)
        ((_, peer),) = row["peers"].items()
        self.assertGreater(peer["ratio"], 0)
        self.assertLessEqual(peer["low"], peer["high"])

    def check_comparison(self, path: str) -> None:
        status, text = run("--from", path, "--compare", path)
        self.assertEqual(status, 0, text)
        self.assertIn("geometric mean x1.000, 0 slower", text)
        # The spread is set, not measured: two short samples on a busy machine can lie further apart
        # than the factor.
        book = results.load(path)
        for spread, status in ((1.1, 1), (5.0, 0)):
            now, before = (
                self.write_scaled(
                    pathlib.Path(path).with_name(f"{name}.json"), book, factor, spread
                )
                for name, factor in (("now", 1), ("before", 20))
            )
            ended, text = run("--from", now, "--compare", before)
            self.assertEqual(ended, status, text)
            self.assertIn("x0.05", text)
            self.assertEqual("SLOWER" in text, status == 1)

    @staticmethod
    def write_scaled(path: pathlib.Path, book: dict, factor: float, spread: float) -> str:
        """The book's one row `factor` times as fast, each figure between itself over and times
        `spread`."""
        book = copy.deepcopy(book)
        row = book["rows"][0]
        row["us"] /= factor
        row["us_low"], row["us_high"] = row["us"] / spread, row["us"] * spread
        for peer in row["peers"].values():
            peer["ratio"] *= factor
            peer["low"], peer["high"] = peer["ratio"] / spread, peer["ratio"] * spread
        # In a file the peer's ratio is its time and ours; files of schema 2 have rows as they are.
        path.write_text(json.dumps({**book, "schema": 2}))
        return str(path)

    def test_a_contestant_that_died_is_started_again(self) -> None:
        row = "64x64x64 nn float32"
        contestant = peers.Contestant("ocltensor", peers.Setup(PLUGIN))
        prepared = contestant.prepare(row)
        self.assertEqual(len(prepared["digests"]), 1)
        self.assertGreater(prepared["sets"], 1)
        contestant.process.kill()
        with self.assertRaisesRegex(peers.Refused, "ocltensor ended with status"):
            contestant.sample(0.001)
        self.assertEqual(len(contestant.prepare(row)["digests"]), 1)
        self.assertGreater(contestant.sample(0.001), 0)
        self.assertIsNone(contestant.prepare("a + b, 256 elements"))
        with self.assertRaisesRegex(peers.Refused, "there is no request"):
            contestant.ask("dance", row=row)
        contestant.close()

    def test_unknown_names_are_errors(self) -> None:
        for arguments in (["nosuchfamily"], ["--peer", "nosuchpeer"]):
            with (
                mock.patch.object(bench, "Contestant", lambda name, setup: Fake(name)),
                self.assertRaisesRegex(SystemExit, "nosuch"),
            ):
                run("--plugin", "none", *arguments)

    def test_a_cliff_is_found(self) -> None:
        times = {1: 10.0, 10: 11.0, 100: 300.0, 1000: 3000.0}
        rows = [
            {
                "name": f"g{n}",
                "family": "growth",
                "group": "growth x",
                "size": n,
                "us": t,
                "us_low": t,
                "us_high": t,
                "flops": n,
                "bytes": n,
                "scratch": n * n,
                "memory": n,
                "peers": {},
            }
            for n, t in times.items()
        ]
        self.assertEqual([c["name"] for c in report.cliffs(rows)], ["g100"])
        self.assertIn("size^2.0", "\n".join(report.growth_table(rows)))

    def test_growth_plot(self) -> None:
        rows = [
            {
                "name": f"g{n}",
                "family": "growth",
                "group": "growth pointwise",
                "size": n,
                "us": 1.0 + n,
                "peers": {},
                "flops": n,
                "bytes": n,
            }
            for n in (1, 10, 100)
        ]
        book = {"device": "fake", "rows": rows, "runs": [{"limits": {}}]}
        self.assertIn("polyline", plot.growth(book))
        self.assertEqual(plot.roofline(book), "")


class Programs(unittest.TestCase):
    """What is measured by a program of its own, on toys."""

    def run_program(self, name: str, *arguments: str, **settings: str) -> str:
        environment = {**os.environ, **settings, "PYTHONPATH": str(adapter_folder(self))}
        done = subprocess.run(
            [sys.executable, str(HERE / name), *arguments],
            env=environment,
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_graphs(self) -> None:
        sizes = {"layers": 1, "width": 16, "heads": 2, "words": 20, "context": 8, "tokens": 4}
        arguments = [part for name, value in sizes.items() for part in (f"--{name}", str(value))]
        self.assertRegex(self.run_program("graphs.py", *arguments), r"eager / replay [0-9.]+ \(")

    def test_transfers(self) -> None:
        text = self.run_program(
            "transfers.py", "--mib", "5", "--rounds", "2", POCL_DEVICES="pthread pthread"
        )
        self.assertRegex(text, r"(?m)^ocl:0( +[0-9.]+){4}   ")
        if "\nocl:1 " in text:
            self.assertRegex(text, r"ocl:1 to ocl:0 +[0-9.]+ +[0-9.]+ of the slower side")

    def test_scale_out(self) -> None:
        few = ("--seconds", "0.01", "--sides", "ocl-gloo")
        loopback = {"GLOO_SOCKET_IFNAME": "lo"}
        one = ("--sizes", "64", "--only", "all_gather")
        text = self.run_program("scale_out.py", "collectives", *one, *few, **loopback)
        self.assertRegex(text, r"(?m)^all_gather +ocl-gloo +[0-9.]+ \([0-9]+\)$")
        name = "resnet18 float32, small, DDP"
        text = self.run_program("scale_out.py", "training", "--only", name, *few, **loopback)
        self.assertRegex(text, rf"(?m)^{name} +ocl-gloo( +[0-9.]+){{6}}$")

    def test_joint_batch(self) -> None:
        name = "BERT, DDP, no_sync"
        text = self.run_program(
            "joint_batch.py", "--only", name, "--steps", "2", GLOO_SOCKET_IFNAME="lo"
        )
        self.assertRegex(text, rf"(?m)^{name} +([0-9.e+-]+ +){{4}}[0-9.]+$")

    def test_vision(self) -> None:
        apart = pathlib.Path(sys.prefix) / "torchvision"  # where ./run test installs it
        if not apart.is_dir() and importlib.util.find_spec("torchvision") is None:
            self.skipTest("torchvision is not installed")
        text = self.run_program("vision.py", "--boxes", "200", "--rounds", "1")
        for row in ("nms, 200 boxes", "roi_align", "roi_pool"):
            self.assertRegex(text, rf"(?m)^{row}.*( +[0-9.]+){{2}}$")


if __name__ == "__main__":
    PLUGIN = sys.argv.pop(1)
    unittest.main()
