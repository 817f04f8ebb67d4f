"""Formulas of operators stand once, in expressions.def: where an operation of Inductor has an
operator's name, its text is the operator's row, or the difference is listed here with its reason.
"""

from __future__ import annotations

import re
import types
import unittest

import torch
from torch._inductor.codegen.common import CSEVariable
from torch._inductor.virtualized import V
from torch.utils._sympy.value_ranges import ValueRanges
from torch_ocl.inductor import formulas, ops

_HEADER = "kernels/include/math.h is for float: other types have a text of their own"
_TRUTH = "truth is 0 or -1"
DIFFERENT = {
    "add": "the row has a factor",
    "sub": "the row has a factor",
    "exp": "fast on CPU drivers, where the row's is exact under 2.7e-38, too",
    "maximum": _HEADER,
    "minimum": _HEADER,
    "bitwise_left_shift": _HEADER,
    "bitwise_right_shift": _HEADER,
    "logical_and": _TRUTH,
    "logical_or": _TRUTH,
    "logical_xor": _TRUTH,
    "logical_not": _TRUTH,
}


def row_of(name: str) -> str | None:
    return next((r for r in (f"{name}.out", f"{name}.Tensor_out") if r in formulas.rows()), None)


def text_of(name: str, dtype: torch.dtype) -> str:
    """The operation's text for operands x and y."""
    method = getattr(ops.OpenCLOverrides, name)
    values = [CSEVariable(v, ValueRanges.unknown(), dtype) for v in ("x", "y")]
    row = formulas.rows()[row_of(name) or ""]
    return str(method(*values[: 2 if re.search(r"\bb\b", row) else 1]))


class FormulasTest(unittest.TestCase):
    def setUp(self) -> None:
        kernel = V.set_kernel_handler(types.SimpleNamespace(width=1))
        kernel.__enter__()
        self.addCleanup(kernel.__exit__, None, None, None)

    def named_alike(self) -> list[str]:
        names = [n for n in vars(ops.OpenCLOverrides) if row_of(n) is not None]
        return [n for n in names if not ops.OpenCLOverrides._is_unimplemented(n)]

    def test_operations_have_the_rows_texts(self) -> None:
        same = [n for n in self.named_alike() if n not in DIFFERENT]
        self.assertGreater(len(same), 40)
        for name in same:
            with self.subTest(name):
                row = formulas.formula(row_of(name) or "", torch.float32, "x", "y")
                self.assertIn(str(row), text_of(name, torch.float32))

    def test_what_differs_is_listed_and_nothing_else(self) -> None:
        for name in DIFFERENT:
            with self.subTest(name):
                self.assertIn(name, self.named_alike())
                dtype = torch.int32 if "shift" in name else torch.float32
                row = formulas.formula(row_of(name) or "", dtype, "x", "y")
                self.assertNotIn(str(row), text_of(name, dtype))

    def test_integers_have_rows_of_their_own_or_none(self) -> None:
        self.assertEqual(formulas.formula("floor.out", torch.int32, "x"), "(x)")
        self.assertEqual(formulas.formula("signbit.out", torch.int32, "x"), "(x < (int)(0))")
        self.assertIsNone(formulas.formula("sqrt.out", torch.int32, "x"))

    def test_float64_has_opencls_functions_or_none(self) -> None:
        self.assertEqual(formulas.formula("tanh.out", torch.float64, "x"), "(tanh(x))")
        self.assertIsNone(formulas.formula("remainder.Tensor_out", torch.float64, "x", "y"))


if __name__ == "__main__":
    unittest.main()
