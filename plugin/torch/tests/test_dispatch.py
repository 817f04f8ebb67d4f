"""Every operator of this PyTorch has a kernel, is composed by ATen, or is known to be missing."""

import pathlib
import sys
import unittest

import torch
import torch_ocl  # noqa: F401

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "opinfo"))
import dispatch  # noqa: E402


class Dispatch(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.found = dispatch.answers()

    def test_no_operator_is_missing(self) -> None:
        missing = [
            name
            for name, (where, _) in self.found.items()
            if where == dispatch.FALLBACK and not dispatch.explained(name)
        ]
        self.assertEqual(missing, [])

    def test_answers(self) -> None:
        self.assertGreater(len(self.found), 2000)
        for name, place in (
            ("add.out", dispatch.KERNEL),
            ("poisson", dispatch.KERNEL),
            ("rms_norm", dispatch.COMPOSED),
            ("from_file", dispatch.FALLBACK),
        ):
            self.assertEqual(self.found[name][0], place, name)
        self.assertEqual(self.found["add.out"][1], "CPU, CUDA")
        self.assertFalse(dispatch.explained("an_operator_of_tomorrow"))

    def test_the_page(self) -> None:
        version = torch.__version__.split("+")[0]
        text = dispatch.PAGE.read_text()
        if f"torch {version}," not in text:
            self.skipTest("the page is of another torch")
        self.assertEqual(dispatch.page(self.found, version), text)


if __name__ == "__main__":
    unittest.main()
