"""Pointwise operators at special values against torch's CPU: the value, and the sign of a zero."""

import math
import unittest
import warnings
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

ELEMENTARY = """abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc erfinv exp exp2 expm1
floor frac lgamma log log10 log1p log2 logit neg reciprocal round rsqrt sigmoid sign sgn sin sinh
sqrt square tan tanh trunc angle deg2rad rad2deg sinc digamma i0 isnan isinf isfinite isposinf
isneginf signbit logical_not nan_to_num nn.functional.relu6""".split()
UNARY = (
    ELEMENTARY
    + """special.entr special.i0e special.i1 special.i1e special.ndtri
special.log_ndtr special.ndtr special.erfcx special.bessel_j0 special.bessel_j1 special.bessel_y0
special.bessel_y1 special.airy_ai special.modified_bessel_i0 special.modified_bessel_i1
special.modified_bessel_k0 special.modified_bessel_k1 special.scaled_modified_bessel_k0
special.scaled_modified_bessel_k1 special.spherical_bessel_j0 nn.functional.relu nn.functional.elu
nn.functional.celu nn.functional.selu nn.functional.gelu nn.functional.silu nn.functional.mish
nn.functional.hardswish nn.functional.hardsigmoid nn.functional.hardtanh nn.functional.hardshrink
nn.functional.softshrink nn.functional.tanhshrink nn.functional.softsign nn.functional.softplus
nn.functional.logsigmoid nn.functional.leaky_relu""".split()
)
BINARY = """atan2 copysign fmod remainder pow hypot nextafter fmax fmin maximum minimum add sub mul
div floor_divide logaddexp logaddexp2 xlogy special.xlog1py heaviside float_power clamp_min
clamp_max""".split()
COMPLEX = """acos acosh asin asinh atan atanh cos cosh exp exp2 log log10 log1p log2 sin sinh sqrt
tan tanh abs angle neg conj_physical sgn isnan logical_not nan_to_num square nn.functional.silu
""".split()

# Where the CPU is not the judge: arguments that are left out, and why.
INFINITE, LARGEST, SUBNORMAL, AXIS = "infinite", "largest", "subnormal", "by the real axis"
LIMITS = "the CPU gives NaN; the limit is 0 or infinite"
PHASE = "the CPU rounds x - pi / 4, and so loses the phase"
BY_ZERO = "the CPU overflows; the function is about -log(x), or 1 / x"
EXCEPTIONS = {
    "i0": {INFINITE: LIMITS},
    "special.i1": {INFINITE: LIMITS},
    "special.modified_bessel_i0": {INFINITE: LIMITS},
    "special.modified_bessel_i1": {INFINITE: LIMITS},
    "special.bessel_j0": {INFINITE: LIMITS, LARGEST: PHASE},
    "special.bessel_j1": {INFINITE: LIMITS, LARGEST: PHASE},
    "special.bessel_y0": {INFINITE: LIMITS, LARGEST: PHASE},
    "special.bessel_y1": {INFINITE: LIMITS, LARGEST: PHASE},
    "special.airy_ai": {INFINITE: LIMITS, LARGEST: LIMITS},
    "special.modified_bessel_k0": {SUBNORMAL: BY_ZERO},
    "special.modified_bessel_k1": {SUBNORMAL: BY_ZERO},
    "special.scaled_modified_bessel_k0": {SUBNORMAL: BY_ZERO},
    "special.scaled_modified_bessel_k1": {SUBNORMAL: BY_ZERO},
}
COMPLEX_EXCEPTIONS = {
    "acos": {AXIS: "in complex128 the CPU rounds the imaginary part to a zero of the wrong sign"},
    "log1p": {INFINITE: "the CPU adds 1 as a complex number, and gets NaN where clog has infinity"},
    "nn.functional.silu": {LARGEST: "the CPU overflows in exp(-x); the limit is 0"},
}
# Operators of complex numbers that are not compared: in add and sub the CPU multiplies by alpha,
# which makes NaN of infinities; mul and div differ by what overflows in between; pow(0, 0) is NaN
# on the CPU; expm1 and tanhshrink there are differences; sinc has a zero's sign wrong there.

# Special values are judged, not rounding: a few times what the types resolve, or in float64 what
# airy_ai on the CPU gets right.
CLOSE = {torch.float32: 3e-5, torch.float64: 3e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}
WIDE = (torch.float32, torch.float64)


def operator(name: str) -> Callable[..., torch.Tensor]:
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found


def subnormal(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).tiny * torch.finfo(dtype).eps


def numbers(dtype: torch.dtype) -> torch.Tensor:
    info = torch.finfo(dtype)
    of_both_signs = [0.0, math.inf, math.nan, subnormal(dtype), info.tiny, info.max]
    of_both_signs += [1.0, 0.5, 2.0, 3.0, 2.5, 1e-3, 100.0]
    pairs = [(x, -x) for x in of_both_signs]
    return torch.tensor(pairs, dtype=torch.float64).flatten().to(dtype)


def complex_numbers(dtype: torch.dtype) -> torch.Tensor:
    part = dtype.to_real()
    info = torch.finfo(part)
    both = torch.tensor([0.0, math.inf, math.nan, 1.0, 2.0, info.max, info.tiny], dtype=part)
    both = torch.cat([both, -both])
    return torch.cartesian_prod(both, both).contiguous().view(dtype).flatten()


def left_out(name: str, x: torch.Tensor) -> torch.Tensor:
    """Which of these arguments have a reason in the tables."""
    info = torch.finfo(x.dtype)
    parts = torch.view_as_real(x) if x.is_complex() else x.unsqueeze(-1)
    kinds = {
        INFINITE: parts.isinf(),
        LARGEST: parts.abs() == info.max,
        SUBNORMAL: (parts != 0) & (parts.abs() < info.tiny),
        AXIS: parts[..., 1:].abs() <= info.tiny,
    }
    result = torch.zeros_like(parts[..., 0], dtype=torch.bool)
    for kind in (COMPLEX_EXCEPTIONS if x.is_complex() else EXCEPTIONS).get(name, {}):
        result |= kinds[kind].any(-1)
    return result


def same(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    if ours.dtype != theirs.dtype:
        return torch.zeros_like(theirs, dtype=torch.bool)
    if not ours.is_floating_point():
        return ours == theirs
    x, y = ours.double(), theirs.double()
    equal = (x == y) & (ours.signbit() == theirs.signbit())
    # Next to zero, rounding may be that of a device which flushes denormals.
    near = CLOSE[ours.dtype] * y.abs() + 4 * torch.finfo(ours.dtype).tiny
    signs = (ours.signbit() == theirs.signbit()) | ((x != 0) & (y != 0))
    close = ((x - y).abs() <= near) & signs & x.isfinite() & y.isfinite()
    return equal | close | (x.isnan() & y.isnan())


def same_complex(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    """C99 (annex G) leaves the sign of one part open where the other is NaN."""
    if not theirs.is_complex():
        return same(ours, theirs)
    mine, wanted = torch.view_as_real(ours), torch.view_as_real(theirs)
    open_sign = wanted.isnan().flip(-1)
    return torch.where(open_sign, same(mine.abs(), wanted.abs()), same(mine, wanted)).all(-1)


class SpecialValues(unittest.TestCase):
    def compare(self, name: str, *args: torch.Tensor) -> None:
        """Few numbers, and many: on both devices one loop may be of vectors, another not. The
        CPU's two paths may differ (zeros of both signs in maximum): either is right."""
        function = operator(name)
        many = [x.repeat_interleave(64) for x in args]
        judge = same_complex if args[0].is_complex() else same
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = [function(*(x[k : k + 1] for x in args)) for k in range(len(args[0]))]
            theirs = torch.cat(alone), function(*many)[::64]
            for ours in (
                function(*(x.to("ocl") for x in args)).cpu(),
                function(*(x.to("ocl") for x in many)).cpu()[::64],
            ):
                good = judge(ours, theirs[0]) | judge(ours, theirs[1])
                wrong = ~(good | left_out(name, args[0]))
                self.assertFalse(
                    wrong.any(),
                    f"{name} of {[x[wrong][:5] for x in args]} gave {ours[wrong][:5]}, not "
                    f"{theirs[0][wrong][:5]}",
                )

    def test_unary(self) -> None:
        for dtype in CLOSE:
            for name in UNARY if dtype in WIDE else ELEMENTARY:
                with self.subTest(name, dtype=dtype):
                    x = numbers(dtype)
                    try:
                        operator(name)(x)
                    except NotImplementedError:
                        continue
                    self.compare(name, x)

    def test_binary(self) -> None:
        for dtype in CLOSE:
            x = numbers(dtype)
            a, b = torch.meshgrid(x, x, indexing="ij")
            for name in BINARY if dtype in WIDE else ("nextafter", "clamp_min", "remainder"):
                with self.subTest(name, dtype=dtype):
                    self.compare(name, a.flatten(), b.flatten())

    def test_complex(self) -> None:
        for dtype in (torch.complex64, torch.complex128):
            for name in COMPLEX:
                with self.subTest(name, dtype=dtype):
                    self.compare(name, complex_numbers(dtype))


if __name__ == "__main__":
    unittest.main()
