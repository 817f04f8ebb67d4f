"""The operators' formulas, which Inductor's operations share with the plugin's own kernels.

Rows are those of plugin/opencl/ops/pointwise/expressions.def, which the build puts into the
package: what they say of a, b and of kinds of types holds here, too.
"""

import functools
import re

import torch

from torch_ocl.inductor.target import FORMULAS
from torch_ocl.inductor.types import value_type

_ROW = re.compile(r'^OCLTENSOR_EXPRESSION\("([^"]+)", \w+, (.*)\)$', re.M)
_LITERAL_OR_OPERAND = re.compile(r"\bK\(|\b[ab]\b")
_CALL = re.compile(r"\b(?!K\b)\w+\(")
_OF_HEADER = re.compile(r"\b(\w+)_\(")
# Functions of kernels/include/math.h that are OpenCL's own but for speed or one driver's defect.
_OF_OPENCL = frozenset("sin cos tanh erf lgamma pow nextafter fmod".split())


@functools.cache
def rows() -> dict[str, str]:
    """By name, as ``sqrt.out`` or ``floor.out@int``."""
    return dict(_ROW.findall(FORMULAS.read_text()))


def formula(row: str, dtype: torch.dtype, a: str, b: str = "") -> str | None:
    """The text of a row for operands of a type; None if the row is for floats alone and they are
    none, or the headers, whose functions are for float, have nothing for float64."""
    text = rows()[row]
    if not dtype.is_floating_point:
        text = rows().get(f"{row}@int", text)
        if _CALL.search(text):
            return None
    elif dtype == torch.float64:
        if not _OF_OPENCL.issuperset(_OF_HEADER.findall(text)):
            return None
        text = _OF_HEADER.sub(r"\1(", text)
    values = {"a": a, "b": b, "K(": f"({value_type(dtype)})("}
    return f"({_LITERAL_OR_OPERAND.sub(lambda found: values[found[0]], text)})"
