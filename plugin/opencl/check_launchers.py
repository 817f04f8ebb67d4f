"""Fails unless every kernel has a launcher of its stem.

usage: check_launchers.py KERNEL_DIR PLUGIN_DIR STAMP

KERNEL_DIR/family/stem.cl is launched by PLUGIN_DIR/ops/family/stem.cpp, or by one whose stem it
continues: softmax_cpu.cl by softmax.cpp. A vendor's KERNEL_DIR/vendor/family/stem.cl is launched by
PLUGIN_DIR/vendor/family/stem.cpp. STAMP is written where all is well.
"""

import pathlib
import re
import sys


def has_launcher(kernel: pathlib.PurePath, plugin: pathlib.Path) -> bool:
    launchers = plugin if (plugin / kernel.parts[0]).is_dir() else plugin / "ops"
    words = kernel.stem.split("_")
    stems = ("_".join(words[:n]) for n in range(len(words), 0, -1))
    files = (launchers / kernel.parent / f"{stem}.cpp" for stem in stems)
    used = rf"\bkernels::{'::'.join(kernel.with_suffix('').parts)}\b"
    used += rf"|\bkernel_sources::{re.sub(r'[^a-zA-Z0-9]', '_', str(kernel.with_suffix('')))}\b"
    return any(f.is_file() and re.search(used, f.read_text()) for f in files)


def main() -> None:
    kernels, plugin, stamp = map(pathlib.Path, sys.argv[1:4])
    alone = [
        k for k in sorted(kernels.rglob("*.cl")) if not has_launcher(k.relative_to(kernels), plugin)
    ]
    if alone:
        sys.exit(
            "Kernels that no launcher with their stem, or the beginning of it, uses:\n"
            + "\n".join(map(str, alone))
        )
    stamp.write_text("")


main()
