"""How kernels' functions are counted (kernel_functions.py) and their exits found (kernel_exits.py),
and what structure.kernels says.

usage: functions.py
"""

from __future__ import annotations

import unittest

from kernel_exits import returns_from_loops
from kernel_functions import Function, Unbalanced, functions
from structure import long_functions

KERNEL = """// A comment with { and "f(".
typedef struct {
  int x;
} Place;
__constant float table[] = {1.0f, 2.0f};
KEPT_FUNCTION(uint, as_uint)
INLINE int one(const int x) { return x ? '}' : 0; }
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void two(__global int *x,
#if GUARDED
                  uint wanted,
#endif
                  const Params p) {
#define LOAD(i) \\
  {             \\
    x[i]
  /* { */
#if FAST
  for (int i = 0; i < 4; ++i) {
#else
  if (p.slow) {
#endif
    x[0] = 1;
  }
}
"""


def kernel(lines: int) -> str:
    return "__kernel void f(int x) {\n" + "  x;\n" * (lines - 2) + "}\n"


class Counting(unittest.TestCase):
    def test_names_and_lines(self) -> None:
        self.assertEqual(functions(KERNEL), [Function("one", 7, 1), Function("two", 13, 13)])

    def test_attributes_behind_parameters(self) -> None:
        text = "void f(int x) __attribute__((noinline)) {\n}\n"
        self.assertEqual(functions(text), [Function("f", 1, 2)])

    def test_functions_of_each_branch(self) -> None:
        text = "#if A\nint f(void) {\n}\n#elif B\nint g(void) {\n\n}\n"
        text += "#else\nint h(void) {}\n#endif\n"
        lengths = {f.name: f.lines for f in functions(text)}
        self.assertEqual(lengths, {"f": 2, "g": 3, "h": 1})

    def test_braces_that_do_not_match(self) -> None:
        for text in ("void f(void) {\n  {\n}\n", "}\n", "#endif\n"):
            with self.subTest(text), self.assertRaises(Unbalanced):
                functions(text)


class Lengths(unittest.TestCase):
    def check(self, lines: int, allowed: dict, expected: str) -> None:
        problems = "\n".join(long_functions({"a.cl": kernel(lines)}, allowed))
        self.assertEqual(bool(problems), bool(expected), problems)
        self.assertIn(expected, problems)

    def test_limit(self) -> None:
        self.check(100, {}, "")
        self.check(101, {}, "a.cl:1: f has 101 lines, more than 100")

    def test_exceptions(self) -> None:
        listed = {("a.cl", "f"): 150}
        self.check(150, listed, "")
        self.check(151, listed, "more than 150")

    def test_exceptions_shrink(self) -> None:
        listed = {("a.cl", "f"): 150}
        self.check(149, listed, "lower it to 149")
        self.check(100, listed, "take it out")
        self.check(10, {("a.cl", "g"): 150}, "g is gone")

    def test_text_that_cannot_be_counted(self) -> None:
        self.assertIn("not closed", long_functions({"a.cl": "void f(void) {\n"}, {})[0])


class Exits(unittest.TestCase):
    def lines(self, body: str) -> list[int]:
        return returns_from_loops(f"__kernel void f(int x,\n  int y) {{\n{body}}}\n")

    def test_returns_from_loops_with_barriers(self) -> None:
        barrier = "  barrier(CLK_LOCAL_MEM_FENCE);\n"
        self.assertEqual(
            self.lines("  for (int i = 0; i < 4; ++i) {\n" + barrier + "return;}\n"), [5]
        )
        self.assertEqual(self.lines(barrier + "  while (x) if (y) return;\n"), [4])
        self.assertEqual(self.lines("  do {\n    if (y) { return; }\n  SYNC; } while (x);\n"), [4])

    def test_other_returns(self) -> None:
        barrier = "  barrier(CLK_LOCAL_MEM_FENCE);\n"
        self.assertEqual(self.lines("  for (;;) return;\n"), [])
        self.assertEqual(self.lines(barrier + "  for (int i = 0; i < 4; ++i) x;\n  return;\n"), [])
        self.assertEqual(self.lines(barrier + "  if (x) return;\n  for (;;) { x; }\n"), [])


if __name__ == "__main__":
    unittest.main()
