"""How the schemas of the operator tables are read (src/base/schemas.py).

usage: schemas.py ROOT
"""

from __future__ import annotations

import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
sys.path.insert(0, str(ROOT / "src/base"))
import schemas  # noqa: E402
from schemas import Argument, parse, rows_of  # noqa: E402


class Reading(unittest.TestCase):
    def test_arguments(self) -> None:
        s = parse(
            "f.out(Tensor self, Tensor?[] indices, int[2] k=[1, 2], SymInt[]? n=None, *, "
            "str mode='a', float? p=0.5, Tensor(a!) x, Tensor(b!)[] y) -> (Tensor(a!), Tensor(b!))"
        )
        self.assertEqual((s.full_name, s.name, s.overload), ("f.out", "f", "out"))
        self.assertEqual(
            s.inputs,
            (
                Argument("self", "Tensor"),
                Argument("indices", "Tensor", is_list=True, of_optional=True),
                Argument("k", "int", is_list=True, length=2, default="[1, 2]"),
                Argument("n", "SymInt", is_list=True, optional=True, default="None"),
                Argument("mode", "str", default="'a'", keyword_only=True),
                Argument("p", "float", optional=True, default="0.5", keyword_only=True),
            ),
        )
        self.assertEqual([(a.name, a.is_list) for a in s.outputs], [("x", False), ("y", True)])
        self.assertTrue(all(a.written for a in s.outputs))

    def test_inputs_that_are_written(self) -> None:
        s = parse("f(Tensor(a!) running, Tensor x, *, Tensor(b!) out) -> Tensor(b!)")
        self.assertEqual([(a.name, a.written) for a in s.inputs], [("running", True), ("x", False)])

    def test_no_schemas(self) -> None:
        for text in ("no schema", "f(Tensor) -> Tensor", "f(Tensor<2> x) -> Tensor"):
            with self.assertRaises(ValueError):
                parse(text)

    def test_rows(self) -> None:
        rows = rows_of(
            '// OCLTENSOR_OPERATOR(x, y, 0, "g(Tensor x) -> Tensor")\n'
            "OCLTENSOR_OPERATOR(\n    loss, f, kRandom | kAnyType,\n"
            '    "library::f.out(Tensor x, *, "\n    "Tensor(a!) out) -> Tensor(a!)")\n'
            'OCLTENSOR_POINTWISE(Float, "h.out(Tensor self, Scalar other, Scalar alpha=1, *, '
            'Tensor(a!) out) -> Tensor(a!)", kLogVariant)\n'
        )
        names = [(r.schema.full_name, r.family, sorted(r.flags)) for r in rows]
        self.assertEqual(
            names,
            [
                ("library::f.out", "loss", ["kAnyType", "kRandom"]),
                ("h.out", "pointwise", ["kLogVariant"]),
            ],
        )
        operands = [rows[1].is_operand(a) for a in rows[1].schema.inputs]
        self.assertEqual(operands, [True, True, False])
        self.assertFalse(rows[0].is_operand(rows[0].schema.inputs[0]))

    def test_tables(self) -> None:
        rows = schemas.read(ROOT / "src/base")
        names = [r.schema.full_name for r in rows]
        self.assertGreater(len(names), 400)
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
