"""Launches that forget, misspell or swap an argument, or misspell a define, do not compile.

usage: launches.py COMPILER FLAG...     the flags with which the plugin's sources are compiled
"""

import subprocess
import sys

PROGRAM = """
#include "call/op_call.h"
#include "kernels/copy.h"
using namespace ocltensor::opencl;
void launch(const OpCall& call, ocltensor::TensorView out) {{
  Defines d;
  d.type({define}, out.dtype());
  call.launch(kernels::copy::create::eye, d, {{{arguments}}}).run({{1, 1, 1}}, {{1, 1, 1}});
}}
"""
WHOLE = [".out = out", ".rows = 2", ".columns = 3", ".row_stride = 3", ".column_stride = 1"]
SWAPPED = [WHOLE[0], WHOLE[2], WHOLE[1], *WHOLE[3:]]
# One change each to what compiles.
WRONG = {
    "without the memory": ("define::OUT", WHOLE[1:]),
    "without the last number": ("define::OUT", WHOLE[:-1]),
    "two in the wrong order": ("define::OUT", SWAPPED),
    "a misspelt argument": ("define::OUT", [".target = out", *WHOLE[1:]]),
    "a number for memory": ("define::OUT", [".out = 7", *WHOLE[1:]]),
    "a number of another kind": ("define::OUT", [*WHOLE[:4], ".column_stride = 1.5"]),
    "a misspelt define": ("define::OUTT", WHOLE),
    "a define as text": ('"OUT"', WHOLE),
}


def main() -> None:
    compiler = [*sys.argv[1:], "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]

    def compile(define: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        text = PROGRAM.format(define=define, arguments=", ".join(arguments))
        return subprocess.run(compiler, input=text, capture_output=True, text=True)

    right = compile("define::OUT", WHOLE)
    if right.returncode != 0:
        sys.exit(f"a launch with all arguments does not compile\n{right.stderr}")
    if compiled := [name for name, case in WRONG.items() if compile(*case).returncode == 0]:
        sys.exit(f"these launches compile, and should not: {', '.join(compiled)}")
    print(f"1 launch compiles, {len(WRONG)} wrong ones do not")


main()
