"""What a generated program needs before its kernel: the plugin's headers, and of their macros those
that the kernel's text uses."""

import re

from torch_ocl.inductor.reductions import COMBINATIONS

# Loads and stores of vectors, and a value or the identity `e` in lanes behind a row's end: in loops
# over whole vectors, and for the n elements that are left.
WHOLE = """
#define READ(A, p, i) LOAD16(A, p, i)
#define WRITE(A, p, i, v) STORE16(A, p, i, v)
#define READ_WHERE(A, p, i, mask) CAT(part_where_, A)(p, i, mask)
#define LOAD_WHERE(A, p, i, mask) CAT(one_where_, A)(p, i, mask)
#define LIVE1(v, e) (v)
#define LIVE2(v, e) (v)
#define LIVE4(v, e) (v)
#define LIVE8(v, e) (v)
"""
PART = """
#define READ(A, p, i) CAT(part_, A)(p, i, n)
#define WRITE(A, p, i, v) CAT(put_, A)(p, i, v, n)
#define READ_WHERE(A, p, i, mask) CAT(part_where_, A)(p, i, mask & live)
#define LOAD_WHERE(A, p, i, mask) CAT(one_where_, A)(p, i, mask & live)
#define LIVE1(v, e) (convert_char16(live) ? (v) : (e))
#define LIVE2(v, e) (convert_short16(live) ? (v) : (e))
#define LIVE4(v, e) (live ? (v) : (e))
#define LIVE8(v, e) (convert_long16(live) ? (v) : (e))
"""
UNDEFINE = """
#undef READ
#undef WRITE
#undef READ_WHERE
#undef LOAD_WHERE
#undef LIVE1
#undef LIVE2
#undef LIVE4
#undef LIVE8
"""
# math.h is for one type: float, with the fast functions that operators use on CPU drivers.
_MATH = """
typedef float T;
typedef float16 T16;
#define COMPUTE f32
#define FLOATING 1
#define UNSIGNED 0
#include "ocltensor/math.h"
"""
_VECTORS = """
#define VECTORS 1
#define FAST_EXP 1
#define LANES_IF_LARGE 1
"""
_OF_MATH = re.compile(r"\b[a-z]\w*_\(")
_OF_RANDOM = re.compile(r"\b(uniform|normal|integer)_number\(")
_DIVIDES = re.compile(r"\b(floor_)?divided(_rest)?\(")
_DIVIDED = re.compile(r"\bconst (u?)(char|short|int|long)(?:16)? tmp\d+ = .*divided")
_INTEGERS = ("char", "short", "int", "long")


def preamble(
    text: str, has_vectors: bool, combinations: set[tuple[str, str]], moments: set[str]
) -> str:
    """The lines before a kernel. ``combinations``: of which reduction and which type."""
    lines = [_VECTORS] if has_vectors else []
    if "FAULT_PARAMETERS" in text:
        lines.append('#include "ocltensor/faults.h"')
    lines.append('#include "ocltensor/generated.h"')
    if _OF_MATH.search(text):
        lines.append(_MATH)
    if _OF_RANDOM.search(text):
        lines.append('#include "ocltensor/generated_random.h"')
    if has_vectors:
        lines += [f"PARTS({tag})" for tag in _tags(text)]
    lines += [_combination(*row) for row in sorted(combinations)]
    lines += [f"MOMENTS({name})" for name in sorted(moments)]
    if _DIVIDES.search(text):
        lines += _divisions(text, has_vectors)
    return "\n".join(line.strip() for line in lines) + "\n"


def _tags(text: str) -> list[str]:
    """The element types that vectors are loaded and stored in."""
    return sorted(
        set(re.findall(r"\b(?:READ|WRITE|READ_WHERE|LOAD_WHERE)\((\w+), \w+_ptr\d", text))
    )


def _combination(reduction: str, name: str) -> str:
    function, expression = COMBINATIONS[reduction]
    if reduction in ("max", "min") and name not in ("float", "double"):
        expression = f"{reduction}(a, b)"
    return f"COMBINATION({function}, {name}, {expression})"


def _divisions(text: str, has_vectors: bool) -> list[str]:
    found = sorted(set(_DIVIDED.findall(text)))
    lines = []
    for unsigned, name in found:
        kinds = (f"{unsigned}{name}", f"{unsigned}{name}16")
        sign = "UNSIGNED" if unsigned else "SIGNED"
        lines += [f"{sign}_DIVISION({kind})" for kind in kinds[: 2 if has_vectors else 1]]
    return lines
