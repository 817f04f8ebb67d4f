"""Custom kernels: torch.ocl.compile_kernel."""

import gc
import pathlib
import struct
import tempfile
import time
import unittest

import numpy
import running
import torch
import torch_ocl  # noqa: F401

SOURCE = """
__kernel void saxpy(__global float *y, __global const float *x, float a) {
  const size_t i = get_global_id(0);
  y[i] += a * x[i];
}
__kernel void saxpy_at(__global float *y, ulong y_at, __global const float *x, ulong x_at,
                       float a) {
  const size_t i = get_global_id(0);
  ((__global float *)((__global char *)y + y_at))[i] +=
      a * ((__global const float *)((__global const char *)x + x_at))[i];
}
__kernel void fill(__global int *y, int n, uchar4 bytes) {
  y[get_global_id(1) * get_global_size(0) + get_global_id(0)] = n + bytes.x + bytes.w;
}
__kernel void pick(__global float *y, __global const short *which, __global const float *from) {
  y[get_global_id(0)] = from[which[get_global_id(0)]];
}
"""

TAKE = """
#include "ocltensor/faults.h"
__kernel void take(__global float *y, __global const float *x, long n, FAULT_PARAMETERS) {
  const long i = (long)y[get_global_id(0)];
  if (i < 0 || i >= n) report_fault(faults, fault_site, i, n);
  y[get_global_id(0)] = i < 0 || i >= n ? 0 : x[i];
}
"""


class Square(torch.autograd.Function):
    library = None

    @staticmethod
    def forward(ctx, x):
        y = torch.zeros_like(x)
        ctx.save_for_backward(x)
        Square.library.square(y, x)
        return y

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class CustomKernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.library = torch.ocl.compile_kernel(SOURCE)

    def test_arguments(self) -> None:
        x, y = torch.randn(100), torch.randn(100)
        on_device = y.to("ocl")
        self.library.saxpy(on_device, x.to("ocl"), 2.5)
        torch.testing.assert_close(on_device.cpu(), y + 2.5 * x)
        on_device = y.to("ocl")
        self.library.saxpy(on_device, x.to("ocl"), 3, threads=64, group_size=16)
        self.assertTrue(torch.equal(on_device.cpu()[64:], y[64:]))
        on_device = y.to("ocl")
        self.library.saxpy_at(on_device[1:], x.to("ocl")[3:], -1.0, threads=90)
        torch.testing.assert_close(on_device.cpu()[1:91], y[1:91] - x[3:93])
        self.assertEqual(on_device[0].item(), y[0].item())
        numbers = torch.empty(2, 3, dtype=torch.int32, device="ocl")
        self.library.fill(numbers, 7, struct.pack("4B", 1, 2, 3, 4), threads=(3, 2))
        self.assertEqual(numbers.tolist(), [[12] * 3] * 2)
        picked = torch.empty(4, device="ocl")
        self.library.pick(picked, [2, 0, 1, 2], [0.5, 0.25, 8])
        self.assertEqual(picked.tolist(), [8, 0.5, 0.25, 8])

    def test_faults(self) -> None:
        library = torch.ocl.compile_kernel(TAKE)
        x, right, wrong = torch.tensor([5.0, 6]), torch.tensor([1.0, 0]), torch.tensor([1.0, 2])
        y = right.to("ocl")
        self.assertEqual(library.take.parameter_count, 3)
        library.take(y, x.to("ocl"), 2)
        self.assertEqual(y.tolist(), [6, 5])
        y = wrong.to("ocl")
        library.take.prepare(threads=2)(y, x.to("ocl"), 2)
        with self.assertRaisesRegex(IndexError, "kernel take: index 2 is out of range .* size 2"):
            y.tolist()
        self.assertEqual(y.tolist(), [6, 0])
        with self.assertRaisesRegex(RuntimeError, "has 3 parameters, 4 arguments"):
            library.take(y, x.to("ocl"), 2, 1)

    def test_casts(self) -> None:
        half = torch.ocl.compile_kernel(
            "__kernel void f(__global ushort *y, ushort bits) { y[get_global_id(0)] = bits; }"
        )
        y = torch.zeros(3, dtype=torch.float16, device="ocl")
        half.f(y, 1.5, arg_casts={1: "fp16"})
        self.assertEqual(y.tolist(), [1.5] * 3)
        half.f(y, 0x4000, arg_casts="int16")
        self.assertEqual(y.tolist(), [2.0] * 3)
        with self.assertRaisesRegex(ValueError, "not a value of type int16"):
            half.f(y, 1 << 20, arg_casts="int16")
        with self.assertRaisesRegex(ValueError, "unknown cast 'int13'"):
            half.f(y, 1, arg_casts="int13")

    def test_properties(self) -> None:
        self.assertEqual(
            [n for n in dir(self.library) if not n.startswith("_")],
            ["fill", "pick", "saxpy", "saxpy_at"],
        )
        kernel = self.library.saxpy
        self.assertIs(kernel, self.library.saxpy)
        self.assertEqual((kernel.name, kernel.parameter_count), ("saxpy", 3))
        self.assertGreater(kernel.max_work_group_size, 0)
        self.assertGreater(kernel.preferred_work_group_multiple, 0)
        self.assertGreaterEqual(kernel.local_memory, 0)
        self.assertFalse(hasattr(self.library, "sax"))
        with self.assertRaisesRegex(AttributeError, "it has: fill, pick, saxpy, saxpy_at"):
            _ = self.library.sax

    def test_headers_of_the_plugin(self) -> None:
        library = torch.ocl.compile_kernel(
            """#define A bf16
            // an indented include is a file's
#include "ocltensor/types.h"
            __kernel void twice(__global ushort *x) {
              const size_t i = get_global_id(0);
              STORE(A, x, i, 2 * LOAD(A, x, i));
            }"""
        )
        x = torch.randn(50).bfloat16()
        y = x.to("ocl")
        library.twice(y)
        self.assertTrue(torch.equal(y.cpu(), 2 * x))
        with self.assertRaisesRegex(SyntaxError, "line 2: there is no header nothing.h"):
            torch.ocl.compile_kernel('\n#include "ocltensor/nothing.h"\n')
        with self.assertRaisesRegex(SyntaxError, "line 3:   int i = undeclared;"):
            torch.ocl.compile_kernel(
                '#include "ocltensor/types.h"\n__kernel void f(void) {\n  int i = undeclared;\n}\n'
            )

    def test_files_that_a_source_includes_are_read_each_time(self) -> None:
        source = '#include "scale.h"\n__kernel void f(__global float *x) { x[0] = SCALE; }'
        x = torch.zeros(1, device="ocl")
        with tempfile.TemporaryDirectory() as folder:
            for value in (2.0, 3.0):
                pathlib.Path(folder, "scale.h").write_text(f"#define SCALE {value}f\n")
                torch.ocl.compile_kernel(source, options=f"-I {folder}").f(x)
                self.assertEqual(x.item(), value)

    def test_the_same_source_is_compiled_once(self) -> None:
        source = f"__kernel void f(__global float *x) {{ x[0] = {time.time()}f; }}"
        before = torch.ocl.counters()["program_builds"]
        for _ in range(3):
            torch.ocl.compile_kernel(source)
        torch.ocl.compile_kernel(source, options="-D OTHER")
        self.assertEqual(torch.ocl.counters()["program_builds"], before + 2)

    def test_requests(self) -> None:
        sources = [
            f"__kernel void f(__global float *x) {{ x[0] = {time.time() + i}f; }}" for i in range(5)
        ]
        self.assertIn(torch.ocl.request_kernels(sources), (0, 5))
        for source in reversed(sources):
            torch.ocl.compile_kernel(source)
        self.assertEqual(torch.ocl.request_kernels(sources), 0)
        self.assertEqual(torch.ocl.request_kernels([]), 0)
        with self.assertRaisesRegex(RuntimeError, "no device ocl:99|out of range|invalid"):
            torch.ocl.request_kernels(sources, device="ocl:99")

    def test_errors(self) -> None:
        with self.assertRaisesRegex(SyntaxError, "line 3:   int i = undeclared;"):
            torch.ocl.compile_kernel(
                "__kernel void f(__global int *x)\n{\n  int i = undeclared;\n}\n"
            )
        x, ints = torch.zeros(8, device="ocl"), torch.zeros(8, dtype=torch.int32, device="ocl")
        for message, call in {
            "has 3 parameters, 2 arguments": lambda: self.library.saxpy(x, x),
            "argument 1 .int n.: 1.5 is not a value": lambda: self.library.fill(ints, 1.5, b"1234"),
            "a number cannot be passed": lambda: self.library.fill(ints, 1, 2),
            "argument 0 .int. y.: the tensor is float32": lambda: self.library.fill(x, 1, b"1234"),
            "4 bytes past an address": lambda: self.library.saxpy(x[1:], x, 1.0, threads=7),
            "no multiple of the group size 3": lambda: self.library.saxpy(x, x, 1.0, group_size=3),
            "given a tensor on cpu": lambda: self.library.saxpy(x, x.cpu(), 1.0),
        }.items():
            with self.subTest(message=message), self.assertRaisesRegex(RuntimeError, message):
                call()
        with self.assertRaisesRegex(ValueError, "without tensors"):
            torch.ocl.compile_kernel("__kernel void f(int x) {}").f(1)
        with self.assertRaisesRegex(ValueError, "group_size has 1 dimensions"):
            self.library.saxpy(x, x, 1.0, threads=(2, 4), group_size=2)
        self.assertTrue((x == 0).all() and (ints == 0).all())

    def test_prepared(self) -> None:
        x, y = torch.randn(100), torch.randn(100)
        on_device, from_device = y.to("ocl"), x.to("ocl")
        launch = self.library.saxpy.prepare(threads=64, group_size=16)
        self.assertEqual(repr(launch), "<prepared kernel saxpy>")
        for a in (2.5, 3, True, -1.25):  # the parameter is a float, whatever Python has
            launch(on_device, from_device, a)
            y[:64] += a * x[:64]
        torch.testing.assert_close(on_device.cpu(), y)
        fill = self.library.fill.prepare(threads=(3, 2))
        numbers = torch.empty(2, 3, dtype=torch.int32, device="ocl")
        for n in (7, 7, -2):
            fill(numbers, n, struct.pack("4B", 1, 2, 3, 4))
            self.assertEqual(numbers.tolist(), [[n + 5] * 3] * 2)
        pick = self.library.pick.prepare()  # a work-item for each element of the first tensor
        for count in (4, 2):
            picked = torch.zeros(count, device="ocl")
            pick(picked, [2, 0, 1, 2], [0.5, 0.25, 8])
            self.assertEqual(picked.tolist(), [8, 0.5, 0.25, 8][:count])

    def test_prepared_at_offsets(self) -> None:
        """Arguments that a kernel remembers, and those that only look the same."""
        base = torch.zeros(8, 128, device="ocl")  # rows can be bound as buffers
        x = torch.arange(128.0).to("ocl")
        whole = self.library.saxpy.prepare()
        pairs = self.library.saxpy_at.prepare(threads=100)
        expected = torch.zeros(8, 128)
        for i in (0, 3, 3, 1, 0, 7, 3, 1):
            whole(base[i], x, float(i))
            expected[i] += i * torch.arange(128.0)
        for i in (0, 3, 3, 1):
            pairs(base[i, 5:], x[2:], 0.5)
            expected[i, 5:105] += 0.5 * torch.arange(128.0)[2:102]
        torch.testing.assert_close(base.cpu(), expected)

    def test_prepared_errors(self) -> None:
        x, ints = torch.zeros(8, device="ocl"), torch.zeros(8, dtype=torch.int32, device="ocl")
        saxpy, fill = self.library.saxpy.prepare(threads=8), self.library.fill.prepare()
        for message, call in {
            "has 3 parameters, 2 arguments": lambda: saxpy(x, x),
            "argument 1 .int n.: 1.5 is not a value": lambda: fill(ints, 1.5, b"1234"),
            "argument 0 .int. y.: the tensor is float32": lambda: fill(x, 1, b"1234"),
            "argument 1 .* a pointer takes a tensor": lambda: saxpy(x, 1, 1.0),
            "argument 2 .float a.: .* is no pointer": lambda: saxpy(x, x, x),
            "4 bytes past an address": lambda: self.library.saxpy.prepare(threads=7)(x[1:], x, 1.0),
            "given a tensor on cpu": lambda: saxpy(x, x.cpu(), 1.0),
            "negated tensors are not supported": lambda: saxpy(x, torch._neg_view(x), 1.0),
        }.items():
            with self.subTest(message=message), self.assertRaisesRegex(RuntimeError, message):
                call()
            saxpy(x, x, 0.0)  # after a refusal the kernel works as before
        with self.assertRaisesRegex(TypeError, "argument 2: .*not NoneType"):
            saxpy(x, x, None)
        with self.assertRaisesRegex(TypeError, "by position alone"):
            saxpy(x, x, a=1.0)
        with self.assertRaises(OverflowError):
            fill(ints, 1 << 70, b"1234")
        for sizes in (-1, (), (1, 2, 3, 4), (2, 1.5), "ab"):
            with self.assertRaisesRegex(ValueError, "threads must be one to three sizes"):
                self.library.saxpy.prepare(threads=sizes)
        with self.assertRaisesRegex(ValueError, "group_size has 2 dimensions, threads has 1"):
            self.library.saxpy.prepare(threads=4, group_size=(2, 2))
        with self.assertRaisesRegex(ValueError, "without tensors"):
            torch.ocl.compile_kernel("__kernel void f(int x) {}").f.prepare()(1)
        self.assertTrue((x == 0).all() and (ints == 0).all())

    def test_prepared_outlives_its_library(self) -> None:
        launch = torch.ocl.compile_kernel(
            "__kernel void one(__global float *y) { y[get_global_id(0)] += 1; }"
        ).one.prepare()
        gc.collect()
        y = torch.zeros(16, device="ocl")
        for _ in range(3):
            launch(y)
        del launch  # its launches may still wait
        gc.collect()
        self.assertEqual(y.tolist(), [3.0] * 16)

    def test_numbers_of_other_libraries(self) -> None:
        y, x = torch.zeros(4, device="ocl"), torch.ones(4, device="ocl")
        for number in (numpy.float32(1.5), numpy.float64(1.5), numpy.int64(2), numpy.bool_(True)):
            y.zero_()
            self.library.saxpy(y, x, number)
            self.assertEqual(y.tolist(), [float(number)] * 4)
        self.library.pick(y, numpy.array([3, 2, 1, 0]), numpy.array([1.0, 2.0, 4.0, 8.0]))
        self.assertEqual(y.tolist(), [8.0, 4.0, 2.0, 1.0])

    def test_options_and_autograd(self) -> None:
        Square.library = torch.ocl.compile_kernel(
            "__kernel void square(__global T *y, __global const T *x) { y[get_global_id(0)] = "
            "x[get_global_id(0)] * x[get_global_id(0)]; }",
            options="-D T=float",
        )
        x = torch.randn(10).to("ocl").requires_grad_()
        Square.apply(x * 3).sum().backward()
        torch.testing.assert_close(x.grad.cpu(), 18 * x.detach().cpu())

    def test_streams_and_threads(self) -> None:
        wrong = []
        prepared = self.library.saxpy.prepare(threads=64)

        def work(seed) -> None:
            with torch.ocl.stream(torch.ocl.Stream()):
                for i in range(30):
                    x = torch.full((64,), float(seed), device="ocl")
                    y = torch.full((64,), float(i), device="ocl")
                    (prepared if i % 2 else self.library.saxpy)(y, x, 2.0)
                    if not (y.cpu() == i + 2 * seed).all():
                        wrong.append((seed, i))

        running.in_threads(work, range(4))
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
