"""Reductions: an accumulator before the loop over a row, its step in the loop, its end after it."""

from typing import Any

import sympy
import torch

from torch_ocl.inductor.types import (
    WIDTH,
    cast,
    computed,
    literal,
    scalar,
    select,
    truth,
    value_type,
)

# By reduction: the name of its functions (those of OpenCL are macros in PoCL), and how a and b are
# combined; max and min differ for integers (preamble.py).
COMBINATIONS = {
    "sum": ("sum", "a + b"),
    "prod": ("product", "a * b"),
    "any": ("some", "a | b"),
    "xor_sum": ("xor", "a ^ b"),
    "max": ("largest", "(a >= b || a != a) ? a : b"),
    "min": ("least", "(a <= b || a != a) ? a : b"),
}
BLOCK = 1024
"""Numbers that one variable adds before its sum is added to another's: of a power of two."""
_IDENTITIES = {"sum": 0, "prod": 1, "any": False, "xor_sum": 0}


def _identity(reduction: str, dtype: torch.dtype) -> str:
    """What a reduction of nothing gives."""
    if reduction in _IDENTITIES:
        return literal(_IDENTITIES[reduction], dtype)
    largest = reduction.endswith("max")
    if dtype.is_floating_point:
        return literal(float("-inf") if largest else float("inf"), dtype)
    limits = torch.iinfo(dtype)
    return literal(limits.min if largest else limits.max, dtype)


class Reductions:
    """A part of the kernel."""

    combinations: set[tuple[str, str]]
    """Those that the kernel uses, and of which scalar type."""
    moments: set[str]
    """Types that it has moments of."""

    def reduction(self, dtype: Any, src_dtype: Any, reduction_type: Any, value: Any) -> Any:
        key = (src_dtype, reduction_type, value)
        if key not in self.cse.reduction_cache:
            result = self._reduce(computed(dtype), computed(src_dtype), reduction_type, value)
            self.cse.reduction_cache[key] = result
        return self.cse.reduction_cache[key]

    def _reduce(self, dtype: Any, src_dtype: Any, reduction: str, value: Any) -> Any:
        acc = f"acc{next(self.accumulators)}"
        if reduction in ("argmax", "argmin"):
            return self._reduce_place(acc, dtype, src_dtype, reduction, value)
        if reduction == "welford_reduce":
            return self._reduce_moments(acc, value)
        if reduction == "welford_combine":
            return self._combine_moments(acc, value)
        if reduction not in ("sum", "prod", "max", "min", "any", "xor_sum"):
            raise NotImplementedError(f"reduction {reduction}")
        if reduction == "any":
            dtype = torch.bool
        elif dtype == torch.bool:  # the largest truth is that of any, the least that of all
            of_numbers = self._reduce(torch.int32, torch.int32, reduction, value)
            return self._result(cast(of_numbers, torch.int32, dtype), dtype)
        identity = _identity(reduction, dtype)
        self.before.writeline(f"{value_type(dtype)} {acc} = {identity};")
        value = self._live(cast(value, value.dtype, dtype), identity, dtype)
        added = acc
        if reduction == "sum" and dtype.is_floating_point:
            added = self._in_blocks(dtype, acc)[0]
        self.compute.writeline(f"{added} = {self.combination(reduction, dtype, added, value)};")
        return self._result(self._ended(reduction, acc, dtype), dtype)

    def _block_start(self) -> str | None:
        """Of a row so long that one variable's sum of it would lose digits: when a block of BLOCK
        numbers begins, whose sum is one of the row's summands."""
        lanes = WIDTH if self.lanes == "r0_" else 1
        step = self.group_shape().items if self.style == "gpu" else lanes
        elements, block = self._row_tree().numel, BLOCK * step
        is_short = isinstance(elements, sympy.Integer) and int(elements) <= 4 * block
        return None if is_short else f"(r0_index & {block - 1}) < {step}"

    def _in_blocks(self, dtype: torch.dtype, *sums: str) -> tuple[str, ...]:
        """Names of sums of a block, which are added to the given ones, or those."""
        start = self._block_start()
        if start is None:
            return sums
        zero = literal(0, dtype)
        names = tuple(f"{name}_block" for name in sums)
        lines = " ".join(f"{name} += {name}_block; {name}_block = {zero};" for name in sums)
        self.before.writeline(f"{value_type(dtype)} {', '.join(f'{n} = {zero}' for n in names)};")
        self.compute.writeline(f"if ({start}) {{ {lines} }}")
        for name in sums:
            self.after.writeline(f"{name} += {name}_block;")
        return names

    def combination(self, reduction: str, dtype: torch.dtype, a: str, b: str) -> str:
        name, expression = COMBINATIONS[reduction]
        if reduction in ("max", "min"):
            self.combinations.add((reduction, scalar(dtype)))
            return f"combine_{name}({a}, {b})"
        return f"{a} {expression.split()[1]} {b}"

    def _result(self, text: str, dtype: torch.dtype) -> Any:
        var = self.cse.newvar(dtype=dtype)
        self.outer.add(var)
        self.after.writeline(f"const {value_type(dtype)} {var} = {text};")
        return var

    def _ended(self, reduction: str, acc: str, dtype: torch.dtype) -> str:
        """A loop's accumulator as the row's result."""
        if self.style == "gpu" or self.lanes == "r0_":
            self.combinations.add((reduction, scalar(dtype)))
        name = COMBINATIONS[reduction][0]
        if self.style == "gpu":
            return self.by_group(name, acc, scalar(dtype))
        if self.lanes == "r0_":
            return f"({value_type(dtype)})(lanes_{name}({acc}))"
        return acc

    def _live(self, value: str, identity: str, dtype: torch.dtype) -> str:
        """A value, or the identity in lanes behind the row's end."""
        if self.lanes != "r0_":
            return value
        return f"LIVE{computed(dtype).itemsize if dtype != torch.bool else 4}({value}, {identity})"

    # ---- Where the best value is
    def _reduce_place(
        self, acc: str, dtype: Any, src_dtype: Any, reduction: str, value: Any
    ) -> Any:
        """The first place of the best value, or of the first NaN. One value at a time."""
        kind = torch.int32 if src_dtype == torch.bool else src_dtype
        name, value = scalar(kind), cast(value, value.dtype, kind)
        self.before.writeline(f"{name} {acc} = {_identity(reduction, kind)}; long {acc}_at = -1;")
        better = f"{value} {'>' if reduction == 'argmax' else '<'} {acc}"
        if kind.is_floating_point:
            better = f"({better} || (isnan({value}) && !isnan({acc})))"
        taken = f"{{ {acc} = {value}; {acc}_at = r0_index; }}"
        self.compute.writeline(f"if ({acc}_at < 0 || {better}) {taken}")
        if self.style == "cpu":
            return self._result(f"{acc}_at", dtype)
        # The group's best value, and of the items that have it the first place.
        order = reduction.removeprefix("arg")
        self.combinations |= {(order, name), ("min", "long")}
        best = self.by_group(COMBINATIONS[order][0], acc, name)
        self.after.writeline(f"const {name} {acc}_best = {best};")
        is_best = f"{acc} == {acc}_best"
        if kind.is_floating_point:
            is_best = f"({is_best} || {acc} != {acc})"
        place = f"({acc}_at >= 0 && {is_best}) ? {acc}_at : LONG_MAX"
        return self._result(self.by_group("least", place, "long"), dtype)

    # ---- Means and sums of squared differences
    def _reduce_moments(self, acc: str, value: Any) -> Any:
        """By sums of differences from the lane's first value, which stay exact enough where the
        mean is far from zero."""
        kind = value.dtype if value.dtype == torch.float64 else torch.float32
        name, given = value_type(kind), cast(value, value.dtype, kind)
        one, zero = literal(1, kind), literal(0, kind)
        difference, count = (self._live(v, zero, kind) for v in (f"({given} - {acc}_k)", one))
        self.before.writeline(f"{name} {acc}_k = 0, {acc}_s = 0, {acc}_q = 0, {acc}_n = 0;")
        self.before.writeline(f"int {acc}_first = 1;")
        s, q, n = self._in_blocks(kind, f"{acc}_s", f"{acc}_q", f"{acc}_n")
        self.compute.splice(f"""
            if ({acc}_first) {{ {acc}_k = {given}; {acc}_first = 0; }}
            {{
              const {name} d_ = {difference};
              {s} += d_;
              {q} += d_ * d_;
              {n} += {count};
            }}""")
        safe = select(truth(f"{acc}_n == {zero}"), one, f"{acc}_n", kind)
        self.after.splice(f"""
            const {name} {acc}_mean = {acc}_k + {acc}_s / {safe};
            const {name} {acc}_m2 = {acc}_q - {acc}_s * {acc}_s / {safe};""")
        return self._moments(acc, kind)

    def _combine_moments(self, acc: str, values: Any) -> Any:
        """Of parts that have moments already."""
        kind = torch.float64 if values[0].dtype == torch.float64 else torch.float32
        name, zero = value_type(kind), literal(0, kind)
        mean, m2, n = (cast(v, v.dtype, kind) for v in values)
        m2, n = self._live(m2, zero, kind), self._live(n, zero, kind)
        start, to = self._block_start(), acc
        if start is not None:
            to = f"{acc}_block"
            of_block = self._merged(acc, kind, f"{to}_mean", f"{to}_m2", f"{to}_n")
            cleared = f"{to}_mean = 0; {to}_m2 = 0; {to}_n = 0;"
            self.before.writeline(f"{name} {to}_mean = 0, {to}_m2 = 0, {to}_n = 0;")
            self.compute.splice(f"if ({start}) {{ {of_block} {cleared} }}")
        self.before.writeline(f"{name} {acc}_mean = 0, {acc}_m2 = 0, {acc}_n = 0;")
        self.compute.splice(self._merged(to, kind, mean, m2, n))
        if start is not None:
            self.after.splice(of_block)
        return self._moments(acc, kind)

    def _merged(self, acc: str, kind: torch.dtype, mean: str, m2: str, n: str) -> str:
        """Moments and those of a part, which may be of nothing."""
        name, zero = value_type(kind), literal(0, kind)
        is_empty = truth(f"part_ == {zero}")
        m2 = select(is_empty, zero, f"({m2} + d_ * d_ * {acc}_n * share_)", kind)
        return f"""
            {{
              const {name} part_ = {n}, n_ = {acc}_n + part_, d_ = {mean} - {acc}_mean;
              const {name} share_ = part_ / n_;
              {acc}_mean += {select(is_empty, zero, "d_ * share_", kind)};
              {acc}_m2 += {m2};
              {acc}_n = n_;
            }}"""

    def _moments(self, acc: str, kind: torch.dtype) -> Any:
        """Those of all lanes or of all items."""
        name = scalar(kind)
        self.moments.add(name)
        parts = [f"{acc}_mean", f"{acc}_m2", f"{acc}_n"]
        if self.style == "gpu":
            self.after.writeline(f"const Moments_{name} {acc}_own = {{{', '.join(parts)}}};")
            whole = self.by_group("moments", f"{acc}_own", f"Moments_{name}")
        elif self.lanes == "r0_":
            whole = f"lanes_moments({', '.join(parts)})"
        else:
            return tuple(self._result(part, kind) for part in parts)
        self.after.writeline(f"const Moments_{name} {acc}_all = {whole};")
        splat = f"({value_type(kind)})" if self.width == WIDTH else ""
        return tuple(self._result(f"{splat}({acc}_all.{p})", kind) for p in ("mean", "m2", "n"))
