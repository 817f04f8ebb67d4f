"""Environment variables, each by what it does in a process of its own."""

import os
import re
import shutil
import tempfile
import unittest

import forked


class Environment(unittest.TestCase):
    """tests/README.md lists where the others are tested."""

    SHOW = """
import torch, torch_ocl
ocl = torch.backends.ocl
x = torch.ones(48, 64, device="ocl")
"""

    def outcome(self, source, **environment):
        names = {"OCLTENSOR_" + name: value for name, value in environment.items()}
        result = forked.run(
            self.SHOW + source, env={**os.environ, "OCLTENSOR_KEEP_MEASUREMENTS": "0", **names}
        )
        return result.stdout + result.stderr

    def test_switches(self) -> None:
        self.assertIn(
            "matmul.general", self.outcome("x @ x.T; print(ocl.last_choices())", TUNED_KERNELS="0")
        )
        measured = "x @ x.T; print(len(ocl.measurements()), 'measured')"
        self.assertNotIn("0 measured", self.outcome(measured, BENCHMARK="1"))
        for off in ({"BENCHMARK_LIMIT": "1"}, {"IMMEDIATE": "1"}, {"DETERMINISTIC": "1"}):
            self.assertIn("0 measured", self.outcome(measured, BENCHMARK="1", **off))
        self.assertIn("tf32 allowed", self.outcome("x @ x.T", VERBOSE="1", ALLOW_TF32="1"))
        product = (
            "w = torch.ones(8, 64, dtype=torch.int8, device='ocl'); "
            "torch._weight_int8pack_mm(x[:2], w, x[0, :8])"
        )
        refused = "activations of 8 bits are not allowed"
        self.assertIn(refused, self.outcome(product, VERBOSE="1"))
        allowed = self.outcome(product, VERBOSE="1", ALLOW_INT8_ACTIVATIONS="1")
        self.assertIn("_ocl_quantised_mm", allowed)
        self.assertNotIn(refused, allowed)
        self.assertIn(
            "portable kernels are preferred",
            self.outcome("x @ x.T", VERBOSE="1", PREFER_OPENCL="1"),
        )
        self.assertIn("operator add.out", self.outcome("x + 1", VERBOSE="2"))
        split = (
            "y = torch.ones(1, 40000, device='ocl', dtype=torch.{}); y @ y.T; "
            "print(ocl.last_choices())"
        )
        # What GPUs take for a row needs no permission: partial sums stay in float.
        rest = {"DISABLED_ALGORITHMS": "matmul.dots"}
        for dtype, name in (("float16", "FP16_REDUCTION"), ("bfloat16", "BF16_REDUCTION")):
            self.assertIn(
                "matmul.split_k", self.outcome(split.format(dtype), **{name: "3"}, **rest)
            )
            self.assertNotIn(
                "matmul.split_k", self.outcome(split.format(dtype), **{name: "1"}, **rest)
            )

    def test_lists(self) -> None:
        self.assertIn("add.out is disabled", self.outcome("x + 1", DISABLED_OPERATIONS="add*,mul"))
        self.assertIn(
            "no operator fits 'sofmax'", self.outcome("x + 1", DISABLED_OPERATIONS="sofmax")
        )
        self.assertIn(
            "matmul.general",
            self.outcome("x @ x.T; print(ocl.last_choices())", DISABLED_ALGORITHMS="matmul.*"),
        )
        self.assertIn(
            "no algorithm fits 'matmul.fast'",
            self.outcome("x @ x.T", DISABLED_ALGORITHMS="matmul.fast"),
        )
        self.assertIn(
            "'portable' is disabled", self.outcome("x + 1", DISABLED_PROVIDERS="portable")
        )
        self.assertIn("no kernel provider 'mkl'", self.outcome("x + 1", DISABLED_PROVIDERS="mkl"))
        # Known at start, and by the variable's name: tests/runtime/process_test.cpp has the others.
        self.assertIn(
            "OCLTENSOR_DISABLED_PROVIDERS='abc'",
            self.outcome("print(torch.ocl.unavailable_reason())", DISABLED_PROVIDERS="abc"),
        )

    def test_fallback(self) -> None:
        # PyTorch's test of such operators: the CPU alone has it.
        body = "x[0, 0].item(); print(torch._test_functorch_fallback(x @ x.T, x @ x.T).device)"
        self.assertIn("OCLTENSOR_ENABLE_FALLBACK=1", self.outcome(body))
        text = self.outcome(body, ENABLE_FALLBACK="1")
        self.assertIn("runs on the CPU instead of ocl", text)
        self.assertIn("ocl:0", text)

    def test_watermarks(self) -> None:
        show = (
            "s = torch.ocl.memory_stats(); print(*(round(s[k] / s['recommended_bytes'], 2) for k "
            "in ('limit_bytes', 'low_limit_bytes')))"
        )
        self.assertIn(
            "0.5 0.25", self.outcome(show, HIGH_WATERMARK_RATIO="0.5", LOW_WATERMARK_RATIO="0.25")
        )
        self.assertIn("0.5 0.5", self.outcome(show, HIGH_WATERMARK_RATIO="0.5"))

    def test_logs(self) -> None:
        self.assertIn("[info] loader: loaded", self.outcome("", LOG_LEVEL="info"))
        self.assertNotIn("loader: loaded", self.outcome(""))
        self.assertIn("choice: matmul", self.outcome("x @ x.T", LOG_LEVEL="debug"))
        self.assertNotIn("allocator:", self.outcome(""))
        for bit, word in (
            ("1", "reserved|limits"),
            ("2", "allocated"),
            ("4", "recycled"),
            ("8", "released"),
        ):
            text = self.outcome(
                "del x; torch.ocl.synchronize(); torch.ocl.empty_cache()", DEBUG_ALLOCATOR=bit
            )
            lines = [line for line in text.splitlines() if "allocator:" in line]
            self.assertTrue(lines, bit)
            self.assertTrue(all(re.search(word, line) for line in lines), (bit, lines))
        large = "y = torch.ones(1 << 22, device='ocl')"
        self.assertNotIn("allocator:", self.outcome("", DEBUG_ALLOCATOR="18"))
        self.assertIn("allocator:", self.outcome(large, DEBUG_ALLOCATOR="18"))

    def test_kernels(self) -> None:
        kernels = os.path.join(os.path.dirname(__file__), "..", "..", "..", "kernels")
        with tempfile.TemporaryDirectory() as folder:
            built = "x + 1; print(torch.ocl.counters()['program_builds'] > 0)"
            places = {"CACHE_DIR": folder, "BUILD_AHEAD": "0"}
            self.assertIn("True", self.outcome(built, **places))
            self.assertIn("False", self.outcome(built, **places))
            self.assertIn("True", self.outcome(built, FAST_MATH="1", **places))
            copy = os.path.join(folder, "kernels")
            shutil.copytree(kernels, copy)
            self.outcome(built, KERNEL_DIR=copy, **places)  # the build outlines its own alone
            self.assertIn("False", self.outcome(built, KERNEL_DIR=copy, **places))
            for name in ("elementwise_cpu.cl", "elementwise_gpu.cl"):
                with open(os.path.join(copy, "elementwise", name), "a") as file:
                    file.write("// another\n")
            self.assertIn("True", self.outcome(built, KERNEL_DIR=copy, **places))
            self.assertIn(
                "has no readable file", self.outcome("x + 1", KERNEL_DIR=folder + "/none", **places)
            )


if __name__ == "__main__":
    unittest.main()
