"""What the machine can do, measured through the plugin: copies beyond the caches, multiply-adds, an
empty launch."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from measure import Timer

if TYPE_CHECKING:
    from tensor_backend import Plugin

GPU_CACHE = 96 << 20  # drivers report other caches than the last one; no GPU's is much larger
CHAINS = 12
# Registers full of independent chains: vectors of 16 suit CPU drivers, scalars and vectors of 4 a
FMA = """
#ifdef HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
__kernel void chains(__global SCALAR* out, float seed) {
  T x[CHAINS];
  const T a = (T)((SCALAR)(0.999f + seed)), b = (T)((SCALAR)(0.001f + seed));
  for (int i = 0; i < CHAINS; ++i) x[i] = (T)((SCALAR)(i + (int)get_global_id(0) % 7));
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) x[i] = fma(x[i], a, b);
  }
  T sum = x[0];
  for (int i = 1; i < CHAINS; ++i) sum += x[i];
  out[get_global_id(0)] = LAST(sum);
}
__kernel void nothing(__global float* out) { if (get_global_id(0) > 1000000000) out[0] = 1; }
"""
# GPU.
VARIANTS = {  # width of the vector: its type and how one number is taken out of it
    1: ("", "(s)"),
    4: ("4", "(s).x + (s).y + (s).z + (s).w"),
    16: ("16", "(s).s0 + (s).s5 + (s).sa + (s).sf"),
}


def cache_bytes(plugin: Plugin) -> int:
    """The last-level cache of the device."""
    if plugin.properties()["kind"] != 1:
        return GPU_CACHE
    sizes = [0]
    for path in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(
            int(text[:-1]) << {"K": 10, "M": 20}[text[-1]] if text[-1] in "KM" else int(text)
        )
    return max(sizes) or 32 << 20


def measure(plugin: Plugin, cache: int) -> dict[str, float]:
    """copy_gbytes (read plus written), float32_gflops, float16_gflops where it has such arithmetic,
    launch_us."""
    properties = plugin.properties()
    result = {
        "copy_gbytes": _copy(plugin, cache),
        "float32_gflops": _flops(plugin, properties, "float"),
    }
    if properties["features"] & 2:
        result["float16_gflops"] = _flops(plugin, properties, "half")
    result["launch_us"] = _launch(plugin, properties)
    return result


def _best(
    body: Callable[[], None], plugin: Plugin, seconds: float = 0.05, samples: int = 5
) -> float:
    timer = Timer([body], plugin.synchronize)
    timer.warm()
    return min(timer.sample(seconds) for _ in range(samples))


def _copy(plugin: Plugin, cache: int) -> float:
    """The better of the driver's copy and the plugin's."""
    count = max(256 << 20, 4 * cache) // 4
    source, target = plugin.empty((count,)), plugin.empty((count,))
    plugin.poison(source)
    run = plugin.prepare("copy.out", [target, source, False], [target])
    best = min(_best(body, plugin) for body in (run, lambda: plugin.copy(target, source)))
    plugin.free(source, target)
    return 8e-9 * count / best


def _flops(plugin: Plugin, properties: dict, scalar: str) -> float:
    cpu = properties["kind"] == 1
    widths = (16,) if cpu else (1, 4)
    groups, local = (
        (properties["compute_units"] * 4, 1) if cpu else (properties["compute_units"] * 16, 256)
    )
    out = plugin.empty((groups * local,), "float16" if scalar == "half" else "float32")
    steps = 1 << 17 if cpu else 1 << 12  # about a millisecond
    best = 0.0
    for width in widths:
        suffix, last = VARIANTS[width]
        # OpenCL compilers take no macro with arguments from their options.
        source = f"#define LAST(s) ({last})\n" + FMA
        half = " -DHALF" if scalar == "half" else ""
        options = f"-DT={scalar}{suffix} -DSCALAR={scalar} -DCHAINS={CHAINS} -DSTEPS={steps}{half}"
        body = plugin.kernel(source, options, "chains", [out, 0.0], groups * local, local)
        flops = 2.0 * width * CHAINS * steps * groups * local
        best = max(best, flops / _best(body, plugin) * 1e-9)
    plugin.free(out)
    return best


def _launch(plugin: Plugin, properties: dict) -> float:
    out = plugin.empty((1,))
    options = f"-DT=float -DSCALAR=float -DCHAINS={CHAINS} -DSTEPS=1"
    body = plugin.kernel(
        "#define LAST(s) (s)\n" + FMA,
        options,
        "nothing",
        [out],
        64,
        64 if properties["kind"] != 1 else 1,
    )
    best = _best(body, plugin)
    plugin.free(out)
    return best * 1e6
