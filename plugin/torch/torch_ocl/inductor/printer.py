"""Index expressions as OpenCL C. Indices are int or long; the divisors of their divisions are
positive. Python's numbers with a fraction are double, or float where the device has no float64."""

import sympy
from sympy.printing.precedence import PRECEDENCE
from torch.utils._sympy.printers import ExprPrinter

_OPERAND = PRECEDENCE["Atom"] - 0.5


class OpenCLPrinter(ExprPrinter):
    def __init__(self, has_float64: bool) -> None:
        super().__init__()
        self.real, self.end = ("double", "") if has_float64 else ("float", "f")

    def _call(self, name: str, *arguments: sympy.Expr, kind: str = "long") -> str:
        return f"{name}({', '.join(f'({kind})({self._print(a)})' for a in arguments)})"

    def _fold(self, name: str, expr: sympy.Expr) -> str:
        first, *others = (f"(long)({self._print(a)})" for a in expr.args)
        for other in others:
            first = f"{name}({first}, {other})"
        return first

    def _print_Min(self, expr: sympy.Expr) -> str:
        return self._fold("min", expr)

    def _print_Max(self, expr: sympy.Expr) -> str:
        return self._fold("max", expr)

    def _print_Abs(self, expr: sympy.Expr) -> str:
        return f"(long){self._call('abs', *expr.args)}"

    def _print_FloorDiv(self, expr: sympy.Expr) -> str:
        a, b = expr.args
        if a.is_nonnegative and b.is_positive:
            return f"({self.parenthesize(a, _OPERAND)} / {self.parenthesize(b, _OPERAND)})"
        return self._call("index_div", a, b)

    def _print_ModularIndexing(self, expr: sympy.Expr) -> str:
        x, divisor, modulus = expr.args
        text = self.parenthesize(x, _OPERAND)
        if divisor != 1:
            text = f"({text} / {self.parenthesize(divisor, _OPERAND)})"
        if x.is_nonnegative:
            return f"({text} % {self.parenthesize(modulus, _OPERAND)})"
        return f"index_mod((long)({text}), (long)({self._print(modulus)}))"

    def _print_PythonMod(self, expr: sympy.Expr) -> str:
        return self._call("index_mod", *expr.args)

    _print_Mod = _print_PythonMod

    def _print_Where(self, expr: sympy.Expr) -> str:
        condition, yes, no = (self._print(a) for a in expr.args)
        return f"(({condition}) ? ({yes}) : ({no}))"

    def _join(self, operator: str, expr: sympy.Expr) -> str:
        return f"({f' {operator} '.join(f'({self._print(a)})' for a in expr.args)})"

    def _print_And(self, expr: sympy.Expr) -> str:
        return self._join("&&", expr)

    def _print_Or(self, expr: sympy.Expr) -> str:
        return self._join("||", expr)

    def _print_Not(self, expr: sympy.Expr) -> str:
        return f"!({self._print(expr.args[0])})"

    def _print_PowByNatural(self, expr: sympy.Expr) -> str:
        base, exponent = expr.args
        if isinstance(exponent, sympy.Integer) and 0 < int(exponent) < 9:
            return f"({' * '.join([f'({self._print(base)})'] * int(exponent))})"
        return f"(long)pown(({self.real})({self._print(base)}), (int)({self._print(exponent)}))"

    _print_Pow = _print_PowByNatural

    def _print_ToFloat(self, expr: sympy.Expr) -> str:
        return f"({self.real})({self._print(expr.args[0])})"

    _print_TruncToFloat = _print_ToFloat

    def _print_IntTrueDiv(self, expr: sympy.Expr) -> str:
        a, b = (self._print(x) for x in expr.args)
        return f"(({self.real})({a}) / ({self.real})({b}))"

    _print_FloatTrueDiv = _print_IntTrueDiv

    def _print_FloorToInt(self, expr: sympy.Expr) -> str:
        return f"(long){self._call('floor', expr.args[0], kind='float')}"

    _print_floor = _print_FloorToInt

    def _print_CeilToInt(self, expr: sympy.Expr) -> str:
        return f"(long){self._call('ceil', expr.args[0], kind='float')}"

    _print_ceiling = _print_CeilToInt

    def _print_TruncToInt(self, expr: sympy.Expr) -> str:
        return f"(long)({self._print(expr.args[0])})"

    def _print_RoundToInt(self, expr: sympy.Expr) -> str:
        return f"(long){self._call('rint', expr.args[0], kind='float')}"

    def _print_RoundDecimal(self, expr: sympy.Expr) -> str:
        number, digits = expr.args
        by, number = f"1e{abs(int(digits))}{self.end}", f"({self.real})({self._print(number)})"
        there, back = ("*", "/") if digits >= 0 else ("/", "*")
        return f"(rint({number} {there} {by}) {back} {by})"

    def _print_Float(self, expr: sympy.Expr) -> str:
        return f"{float(expr)!r}{self.end}"
