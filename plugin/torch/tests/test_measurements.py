"""What ``benchmark`` measured is kept on disk: later processes choose by it, and nothing wrong in
the file does harm."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import forked

PRODUCT = """
import torch, torch_ocl
a, b = (torch.arange(3072.0) % 7).reshape(48, 64), (torch.arange(2560.0) % 5).reshape(64, 40)
got = (a.to("ocl") @ b.to("ocl")).cpu()
assert torch.equal(got, a @ b)
print(torch.backends.ocl.last_choices()["matmul"], len(torch.backends.ocl.measurements()))
"""
# The choices with what was measured, by rule for three reasons, and with it again.
SWITCHES = """
import torch, torch_ocl
ocl, a, b = torch.backends.ocl, torch.ones(48, 64, device="ocl"), torch.ones(64, 40, device="ocl")
ocl.set_setting("OCLTENSOR_VERBOSE", "{}")
chosen = []
for switches in (
    {{}}, {{"immediate": True}}, {{"deterministic": True}}, {{"keep_measurements": False}}, {{}}
):
    with ocl.flags(**switches):
        assert torch.equal((a @ b).cpu(), torch.full((48, 40), 64.0))
    chosen.append(ocl.last_choices()["matmul"])
print(",".join(chosen), 0)
"""


class Measurements(unittest.TestCase):
    def setUp(self) -> None:
        # Builders that are still busy may write into it.
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name, "cache")

    def product(self, source: str = PRODUCT, **settings: str) -> tuple[str, int, str]:
        """The algorithm, how many measurements are known, and what was printed of the choice."""
        names = {"OCLTENSOR_" + name: value for name, value in settings.items()}
        environment = {
            **os.environ,
            "OCLTENSOR_CACHE_DIR": str(self.cache),
            "OCLTENSOR_VERBOSE": "1",
            **names,
        }
        run = forked.run(source, env=environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        algorithm, count = run.stdout.split()
        return algorithm, int(count), run.stderr

    def file(self) -> pathlib.Path:
        (path,) = self.cache.glob("measured-*.tsv")
        return path

    def other_than(self, best: str) -> str:
        """Another one that was measured, now the best in the file."""
        text = self.file().read_text()
        names = re.findall(r"(matmul\.\w+)=", text)
        other = next(name for name in names if name != best)
        self.file().write_text(text.replace(f"\t{best}\t", f"\t{other}\t"))
        return other

    def test_later_processes_choose_by_them(self) -> None:
        by_rule, count, text = self.product()
        self.assertIn("(by rule)", text)
        self.assertEqual(count, 0)
        self.assertEqual(list(self.cache.glob("measured-*")), [])
        best, count, text = self.product(BENCHMARK="1")
        self.assertIn("(measured)", text)
        self.assertGreaterEqual(count, 2)
        other = self.other_than(best)
        algorithm, known, text = self.product(BENCHMARK="1")
        self.assertEqual((algorithm, known), (other, count))
        self.assertIn("(measured)", text)
        # With a printed line, and the short way without.
        algorithms, _, text = self.product(SWITCHES.format(1))
        self.assertIn("(measured before)", text)
        wanted = f"{other},{by_rule},{by_rule},{by_rule},{other}"
        self.assertEqual(algorithms, wanted)
        self.assertEqual(self.product(SWITCHES.format(0))[0], wanted)

    def test_not_kept(self) -> None:
        self.assertGreaterEqual(self.product(BENCHMARK="1", KEEP_MEASUREMENTS="0")[1], 2)
        self.assertEqual(list(self.cache.glob("measured-*")), [])

    def test_forgetting_removes_the_file(self) -> None:
        self.product(BENCHMARK="1")
        self.assertTrue(self.file().exists())
        self.product(PRODUCT + "torch.backends.ocl.forget_measurements()\n", VERBOSE="0")
        self.assertEqual(list(self.cache.glob("measured-*.tsv")), [])

    def test_a_damaged_file_does_no_harm(
        self,
    ) -> None:  # every kind of damage: tests/plugin/measurement_file_test.cpp
        self.product(BENCHMARK="1")
        good = self.file().read_text()
        self.file().write_text(re.sub(r"\tmatmul\.\w+\t", "\tmatmul.of_another_version\t", good))
        self.assertIn("(by rule)", self.product()[2])
        self.file().write_bytes(os.urandom(5000))
        self.assertGreaterEqual(self.product(BENCHMARK="1")[1], 2)  # measured anew, and kept
        self.assertEqual(self.file().read_text().splitlines()[0], good.splitlines()[0])

    def test_processes_add_to_each_other(self) -> None:
        shapes = [(48, 64, 40), (96, 64, 40), (48, 128, 40), (48, 64, 80)]
        source = (
            "import torch, torch_ocl\n_ = torch.ones({0}, {1}, device='ocl') @ torch.ones({1}, "
            "{2}, device='ocl')\ntorch.ocl.synchronize()"
        )
        environment = {
            **os.environ,
            "OCLTENSOR_CACHE_DIR": str(self.cache),
            "OCLTENSOR_BENCHMARK": "1",
        }
        running = [
            subprocess.Popen([sys.executable, "-c", source.format(*shape)], env=environment)
            for shape in shapes
        ]
        self.assertEqual([process.wait(timeout=1800) for process in running], [0] * len(shapes))
        self.assertEqual(len(self.file().read_text().splitlines()), 1 + len(shapes))
        self.assertEqual([p.name for p in self.cache.glob("measured-*") if p != self.file()], [])


if __name__ == "__main__":
    unittest.main()
