"""Switches of torch.backends.ocl, each by what it does: plans, scopes of switches, the launcher,
and what is not there yet."""

import os
import pathlib
import re
import threading
import unittest

import torch
from backends_case import Case, ocl, printed, run_python


def multiply(kind: str) -> torch.Tensor:
    x, weight = torch.ones(1, 64, device="ocl"), torch.ones(4, 64, device="ocl").to(torch.int8)
    scale = torch.ones(4, 1, device="ocl")
    return torch.ops.ocl.quantised_mm(x, weight, scale, None, None, kind, 4, 0)


class Rest(Case):
    def test_fft_plan_cache(self) -> None:
        torch.fft.fft(torch.randn(64, device="ocl"))
        self.assertEqual((ocl.fft_plan_cache.size, ocl.fft_plan_cache[0].max_size), (0, 0))
        ocl.fft_plan_cache.clear()
        ocl.fft_plan_cache.max_size = 0
        with self.assertRaisesRegex(RuntimeError, "no plans"):
            ocl.fft_plan_cache[0].max_size = 10
        with self.assertRaises((RuntimeError, IndexError, ValueError)):
            ocl.fft_plan_cache[99].size  # noqa: B018

    def test_what_is_absent_says_so(self) -> None:
        self.assertFalse(hasattr(ocl, "cusparselt"))
        with self.assertRaisesRegex(AttributeError, "there are no kernels for .*sparse matrices"):
            ocl.cusparselt  # noqa: B018
        with self.assertRaisesRegex(AttributeError, "has no attribute 'nosuch'$"):
            ocl.nosuch  # noqa: B018

    def test_quantised_weights(self) -> None:
        """What is told is what runs: the plugin's own formats, and products without a provider."""
        with self.assertRaises(RuntimeError) as error:
            multiply("nosuch")
        named = str(error.exception).partition("there are ")[2].splitlines()[0].split(", ")
        self.assertEqual(ocl.quantized.supported_formats, named)
        self.assertEqual(ocl.quantized.formats_by_provider["portable"], named)
        source = (
            pathlib.Path(__file__).resolve().parents[2] / "opencl/x86_avx512/quantised/decode.cpp"
        )
        units = re.findall(r'{"(\w+)", \d', source.read_text())
        if ocl.x86_avx512.available:
            found = ocl.quantized.formats_by_provider["x86_avx512"]
            self.assertEqual(sorted(found), sorted(units))
        self.assertIn("q4_k", ocl.weight_int4.supported_formats)
        self.assertNotIn("q6_k", ocl.weight_int4.supported_formats)
        self.assertEqual(ocl.weight_int8.supported_formats, ["int8", "int8_zeros", "q8_0"])
        for weights in (ocl.weight_int4, ocl.weight_int8, ocl.quantized):
            self.assertTrue(weights.is_available())
            self.assertEqual(weights.reason, "")
            self.assertIn(weights.supported_formats[0], repr(weights))
        with ocl.operations_disabled("_ocl_quantised_mm"):
            self.assertFalse(ocl.weight_int8.is_available())
            self.assertIn("_ocl_quantised_mm.out is disabled", ocl.weight_int8.reason)
            with self.assertRaisesRegex(NotImplementedError, "disabled"):
                multiply("int8")
        with ocl.portable.disabled():
            self.assertFalse(ocl.weight_int4.is_available())
            self.assertIn("provider 'portable' is disabled", ocl.weight_int4.reason)
            with self.assertRaisesRegex(NotImplementedError, "disabled"):
                multiply("int8")
        self.assertTrue(ocl.weight_int8.is_available())
        multiply("int8")
        self.assertEqual((ocl.quantized.supported_engines, ocl.quantized.engine), ([], "none"))
        with self.assertRaisesRegex(RuntimeError, "no engine 'fbgemm'.*torchao"):
            ocl.quantized.engine = "fbgemm"
        done = run_python(
            "import torch, torch_ocl; o = torch.backends.ocl; print(o.weight_int4.is_available(),"
            " o.weight_int4.reason == torch.ocl.unavailable_reason() != '')",
            OCLTENSOR_PLUGIN_PATH="/nowhere",
        )
        self.assertEqual(done.stdout, "False True\n", done.stderr)

    def test_contexts_nest_restore_and_decorate(self) -> None:
        with ocl.flags(benchmark_limit=3):
            with ocl.flags(benchmark_limit=4, immediate=True):
                ocl.benchmark_limit = 5
                self.assertEqual((ocl.benchmark_limit, ocl.immediate), (5, True))
            self.assertEqual((ocl.benchmark_limit, ocl.immediate), (3, False))
        self.assertEqual(ocl.benchmark_limit, 10)
        with self.assertRaises(KeyError), ocl.flags(deterministic=True):
            raise KeyError
        self.assertFalse(ocl.deterministic)
        with (
            self.assertRaisesRegex(RuntimeError, "0 to 1000"),
            ocl.flags(deterministic=True, benchmark_limit=5000),
        ):
            pass
        self.assertFalse(ocl.deterministic)

        @ocl.flags(benchmark_limit=7)
        def depth(n):
            return [ocl.benchmark_limit] + (depth(n - 1) if n else [])

        self.assertEqual(depth(2), [7, 7, 7])
        self.assertEqual(ocl.benchmark_limit, 10)
        with self.assertRaises(TypeError):
            ocl.benchmark = 1
        with self.assertRaises(AttributeError):
            ocl.bench_mark = True

    def test_contexts_of_several_threads_end_in_any_order(self) -> None:
        entered, leave = threading.Barrier(2), threading.Event()

        def other() -> None:
            with ocl.flags(benchmark_limit=3), ocl.operations_disabled("sin"):
                entered.wait()
                leave.wait()

        thread = threading.Thread(target=other)
        thread.start()
        entered.wait()
        with ocl.flags(benchmark_limit=4), ocl.operations_disabled("cos"):
            self.assertEqual(ocl.disabled_operations(), ["cos.out", "sin.out"])
            leave.set()
            thread.join()
            self.assertEqual(ocl.benchmark_limit, 4)
            self.assertEqual(ocl.disabled_operations(), ["cos.out"])
        self.assertEqual(ocl.benchmark_limit, 10)
        self.assertEqual(ocl.disabled_operations(), [])

        decorated = ocl.flags(immediate=True)(lambda: ocl.immediate)
        seen = []
        threads = [
            threading.Thread(target=lambda: seen.append(all(decorated() for _ in range(200))))
            for _ in range(4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(seen, [True] * 4)
        self.assertFalse(ocl.immediate)

    def test_frozen_flags(self) -> None:
        torch.backends.disable_global_flags()
        try:
            with self.assertRaisesRegex(RuntimeError, "flags"):
                ocl.benchmark = True
            with ocl.flags(benchmark=True):
                self.assertTrue(ocl.benchmark)
        finally:
            setattr(torch.backends, "__allow_nonbracketed_mutation_flag", True)  # noqa: B010
        self.assertFalse(ocl.benchmark)

    def test_the_launcher_chooses_threads_and_cores(self) -> None:
        show = (
            "import os, torch, torch_ocl; p = torch.ocl.get_device_properties(); "
            "print(p.compute_units, sorted(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])"
        )
        core = min(os.sched_getaffinity(0))
        launch = ["-m", "torch_ocl.launch"]
        outcome = run_python("", *launch, "--cores", str(core), "-c", show)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        units, rest = outcome.stdout.split(maxsplit=1)
        self.assertEqual(rest.strip(), f"[{core}] 1")
        if "Portable Computing Language" in torch.ocl.get_device_properties().platform:
            self.assertEqual(units, "1")
        shown = run_python("", *launch, "--print", "--threads", "3", "script.py", "--flag")
        self.assertIn("POCL_MAX_PTHREAD_COUNT=3", shown.stdout)
        self.assertTrue(shown.stdout.rstrip().endswith("script.py --flag"))
        self.assertEqual(run_python("", *launch, "-c", "raise SystemExit(7)").returncode, 7)
        for bad in (
            ["--cores", "x"],
            ["--cores", "99999"],
            ["--instances", "99999"],
            ["--node", "4711"],
            [],
        ):
            outcome = run_python("", *launch, *bad, *(["s.py"] if bad else []))
            self.assertEqual(outcome.returncode, 2, bad)
            self.assertIn("error:", outcome.stderr)

    def test_opt_einsum_is_honoured(self) -> None:
        """The path of a product of three decides which products run."""
        if not torch.backends.opt_einsum.is_available():
            self.skipTest("SKIPPED: opt_einsum is not installed")
        a, b, c = (torch.randn(sizes, device="ocl") for sizes in ((40, 50), (50, 60), (60, 2)))
        texts = []
        for enabled in (True, False):
            with torch.backends.opt_einsum.flags(enabled=enabled):

                def run() -> None:
                    with ocl.verbose(1):
                        torch.einsum("ij,jk,kl->il", a, b, c)

                texts.append(printed(run))
        self.assertNotIn("40 x 60 x 50", texts[0])
        self.assertIn("40 x 60 x 50", texts[1])


if __name__ == "__main__":
    unittest.main()
