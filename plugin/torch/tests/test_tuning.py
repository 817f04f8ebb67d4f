"""``torch.ocl.tune``: what a function computes is tuned, kept, chosen by later processes, and
serves other machines as a file."""

import os
import pathlib
import tempfile
import unittest

import forked

# Tunes the products of a function; prints family, whether complete, and the choice, per class.
TUNE = """
import torch, torch_ocl
a, b = torch.randn(160, 96).to("ocl"), torch.randn(96, 200).to("ocl")
calls = []
def product(x, y):
    calls.append(1)
    return (x @ y).relu()
tuning = torch.ocl.tune(product, a, b, quick=True)
assert len(calls) == (2 if tuning.classes else 1), calls
assert not tuning.failures and tuning.speedup >= 1, tuning
for c in tuning.classes:
    assert c.wrong == 0 and c.speedup >= 1 and c.rule.startswith("matmul."), c
    print(c.family, c.is_complete, c.best, sep="\\t")
"""
# The choice for the same class of shapes in another process, and why.
CHOICE = """
import torch, torch_ocl
a, b = torch.randn(160, 96).to("ocl"), torch.randn(96, 200).to("ocl")
with torch.backends.ocl.verbose(1):
    got = a @ b
torch.testing.assert_close(got.cpu(), a.cpu() @ b.cpu())
"""
EXPORT = "import sys, torch, torch_ocl; torch.ocl.export_measurements(sys.argv[1])"


class Tuning(unittest.TestCase):
    def setUp(self) -> None:
        # Builders that are still busy may write into it.
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_python(self, source: str, *arguments: str, cache: str = "cache", **names: str) -> str:
        """What it printed to both outputs."""
        settings = {"OCLTENSOR_" + name: value for name, value in names.items()}
        run = forked.run(
            source,
            *arguments,
            env={**os.environ, "OCLTENSOR_CACHE_DIR": str(self.folder / cache), **settings},
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout + run.stderr

    def test_a_function_is_tuned_once_and_later_processes_choose_by_it(self) -> None:
        ((family, complete, best),) = (
            line.split("\t") for line in self.run_python(TUNE).splitlines()
        )
        self.assertEqual((family, complete), ("matmul", "True"))
        text = self.run_python(CHOICE)
        self.assertIn(f": {best} (measured before)", text)
        self.assertIn(
            "(by rule: deterministic)", self.run_python(CHOICE, TUNE="full", DETERMINISTIC="1")
        )
        (file,) = (self.folder / "cache").glob("measured-*.tsv")
        before = file.read_text()
        self.assertIn(best, self.run_python(TUNE))
        self.assertEqual(file.read_text(), before)  # nothing was missing

    def test_exported_measurements_serve_elsewhere(self) -> None:
        best = self.run_python(TUNE).split()[2]
        path = str(self.folder / "exported.tsv")
        self.run_python(EXPORT, path)
        text = self.run_python(CHOICE, cache="elsewhere", TUNED_FILES=path)
        self.assertIn(f": {best} (measured before)", text)
        self.assertIn("(by rule)", self.run_python(CHOICE, cache="elsewhere"))
        # As with all measurements: not where the same bits are wanted in every run.
        text = self.run_python(CHOICE, cache="elsewhere", TUNED_FILES=path, DETERMINISTIC="1")
        self.assertIn("(by rule)", text)

    def test_a_context_tunes_what_runs_in_it(self) -> None:
        text = self.run_python(
            """
import torch, torch_ocl
x = torch.randn(40, 24).to("ocl")
with torch.ocl.tuning(quick=True), torch.backends.ocl.verbose(1):
    x @ x.t()
print(len(torch.backends.ocl.measurements()))
"""
        )
        self.assertIn("(measured)", text)
        self.assertGreaterEqual(int(text.split()[0]), 2)

    def test_the_table_and_its_names(self) -> None:
        text = self.run_python(
            """
import torch, torch_ocl
for names in ({"family": "nothing"}, {"dtype": torch.int8}):
    try:
        torch.ocl.tune(**names)
    except ValueError as error:
        print(error)
tuning = torch.ocl.tune(family="matmul", dtype=torch.float32, quick=True, budget=2)
print(bool(tuning.classes), tuning.file, tuning.seconds < 300)
"""
        )
        self.assertIn("no problem of 'nothing'", text)
        self.assertIn("no problem of 'int8'", text)
        self.assertRegex(text, r"True \S+measured-\w+\.tsv True")


if __name__ == "__main__":
    unittest.main()
