"""torch.backends.ocl: every switch by what it does."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import torch
import torch_ocl  # noqa: F401
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

ocl = torch.backends.ocl


def printed(body):
    """What the process writes to standard error meanwhile."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        try:
            os.dup2(file.fileno(), 2)
            body()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read().decode()


def run_python(source, *arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments, "-c", source] if source else [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


class Case(unittest.TestCase):
    def setUp(self):
        # By rule means by rule here, whatever was measured on this machine, and what is measured here is not for others.
        self.enterContext(ocl.flags(keep_measurements=False))
        torch.manual_seed(0)
        self.a, self.b = torch.randn(48, 64, device="ocl"), torch.randn(64, 40, device="ocl")
        self.expected = self.a.cpu() @ self.b.cpu()

    def product(self):
        result = (self.a @ self.b).cpu()
        torch.testing.assert_close(result, self.expected)
        return ocl.last_choices()["matmul"]

    def convolution(self):
        torch.nn.functional.conv2d(torch.randn(2, 3, 9, 9, device="ocl"), torch.randn(4, 3, 3, 3, device="ocl"))
        return ocl.last_choices()["conv"]


class Choice(Case):
    def test_enabled(self):
        self.assertTrue(ocl.enabled)
        self.assertNotEqual(self.product(), "matmul.general")
        self.assertNotEqual(self.convolution(), "conv.general")
        with ocl.flags(enabled=False):
            self.assertFalse(torch.backends.ocl.enabled)
            self.assertEqual(self.product(), "matmul.general")
            self.assertEqual(self.convolution(), "conv.general")
        ocl.enabled = False
        self.assertEqual(self.product(), "matmul.general")
        ocl.enabled = True
        self.assertNotEqual(self.product(), "matmul.general")

    def test_benchmark_and_its_limit(self):
        ocl.forget_measurements()
        by_rule = self.product()
        self.assertEqual(ocl.measurements(), [])
        with ocl.flags(benchmark=True):
            chosen = self.product()
            measured = ocl.measurements()
            self.assertEqual([m.id for m in measured if m.is_best], [chosen])
            self.assertGreaterEqual(len(measured), 2)
            self.assertTrue(all(m.microseconds > 0 and "1x48x40x64" in m.problem for m in measured))
            self.product()
            self.assertEqual(ocl.measurements(), measured)  # once per class of shapes
        ocl.forget_measurements()
        with ocl.flags(benchmark=True, benchmark_limit=1):
            self.assertEqual(self.product(), by_rule)
            self.assertEqual(ocl.measurements(), [])
        for switch in ({"immediate": True}, {"deterministic": True}):
            with ocl.flags(benchmark=True, **switch):
                self.assertEqual(self.product(), by_rule)
                self.assertEqual(ocl.measurements(), [])
        torch.use_deterministic_algorithms(True)
        try:
            with ocl.flags(benchmark=True):
                self.product()
            self.assertEqual(ocl.measurements(), [])
        finally:
            torch.use_deterministic_algorithms(False)

    def test_a_measured_training_step_is_right(self):
        def step(device):
            torch.manual_seed(1)
            net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 5))
            net, x = net.to(device), torch.randn(4, 3, 8, 8).to(device)
            net(x).square().sum().backward()
            return [p.grad.cpu() for p in net.parameters()]

        with ocl.flags(benchmark=True):
            for got, wanted in zip(step("ocl"), step("cpu"), strict=True):
                torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
        if torch.ocl.get_device_properties().has_unified_memory:  # GPUs have one algorithm for these
            self.assertTrue(any("conv" in m.problem for m in ocl.measurements()))
        ocl.forget_measurements()

    def test_the_next_algorithm_runs(self):
        first = self.product()
        with ocl.algorithms_disabled(first):
            self.assertNotEqual(self.product(), first)
            self.assertEqual([a.id for a in ocl.algorithms() if a.disabled], [first])
        with ocl.algorithms_disabled("matmul.*"):
            self.assertEqual(self.product(), "matmul.general")
        with self.assertRaisesRegex(RuntimeError, "matmul.packed"), ocl.algorithms_disabled("matmul.pack"):
            pass
        self.assertEqual(self.product(), first)
        x = torch.randn(3, 30)
        with ocl.algorithms_disabled("fft.passes"):
            torch.testing.assert_close(torch.fft.fft(x.to("ocl")).cpu(), torch.fft.fft(x), rtol=1e-4, atol=1e-4)
            self.assertEqual(ocl.last_choices()["fft"], "fft.bluestein")
        torch.fft.fft(x.to("ocl"))
        self.assertEqual(ocl.last_choices()["fft"], "fft.passes")

    def test_verbose(self):
        def one():
            with ocl.verbose(1):
                self.product()

        text = printed(one)
        self.assertIn(f"matmul float32 1 x 48 x 40 x 64 on ocl:0: {self.product()} (by rule); not ", text)
        self.assertNotIn("operator", text)

        @ocl.verbose(2)
        def two():
            self.a + 1

        self.assertIn("operator add.out on ocl:0: portable", printed(two))
        self.assertEqual(printed(self.product), "")

    def test_reduced_precision_permits_split_sums(self):
        x = torch.randn(1, 40000, device="ocl")
        for dtype, name in ((torch.float16, "fp16"), (torch.bfloat16, "bf16")):
            row = x.to(dtype)

            def choice(row=row):
                with ocl.algorithms_disabled("matmul.dots"):  # GPUs' for a row: needs no permission
                    row @ row.T
                return ocl.last_choices()["matmul"]

            attribute = f"allow_{name}_reduced_precision_reduction"
            self.assertFalse(getattr(ocl.matmul, attribute))
            self.assertNotEqual(choice(), "matmul.split")
            setattr(ocl.matmul, attribute, True)
            self.assertTrue(getattr(ocl.matmul, attribute + "_split_k"))
            self.assertEqual(choice(), "matmul.split")
            setattr(ocl.matmul, attribute, (True, False))
            self.assertFalse(getattr(ocl.matmul, attribute + "_split_k"))
            self.assertNotEqual(choice(), "matmul.split")
            setattr(ocl.matmul, attribute, (False, True))
            with self.assertRaises(TypeError):
                setattr(ocl.matmul, attribute, 1)
            with ocl.flags(**{attribute: True}):
                self.assertEqual(choice(), "matmul.split")

    def test_tf32_has_to_be_allowed(self):
        def run():
            with ocl.verbose(1):
                torch.testing.assert_close((self.a @ self.b).cpu(), self.expected, rtol=1e-2, atol=5e-2)

        self.assertFalse(ocl.matmul.allow_tf32)
        self.assertNotIn("tf32", printed(run))
        self.addCleanup(setattr, ocl.matmul, "allow_tf32", False)
        ocl.matmul.allow_tf32 = True
        text = printed(run)
        if ocl.ptx.available:
            self.assertIn("matmul.hopper (by rule)", text)
            self.assertGreater(float(((self.a @ self.b).cpu() - self.expected).abs().max()), 1e-4)
        else:
            self.assertIn("tf32 allowed, no provider offers it", text)
        ocl.matmul.allow_tf32 = False
        self.product()
        with self.assertRaisesRegex(AttributeError, "no switch"):
            ocl.matmul.allow_fp8 = True

    def test_preferred_libraries(self):
        def run():
            with ocl.verbose(1):
                self.product()

        self.assertEqual(ocl.preferred_blas_library(), "default")
        available = "matrix units: yes" if ocl.ptx.available else "the device has no matrix units"
        self.assertIn(available, printed(run))
        self.assertEqual(ocl.preferred_blas_library("portable"), "portable")
        self.assertIn("matrix units: not wanted", printed(run))
        if ocl.ptx.available:
            self.assertEqual(ocl.preferred_blas_library("matrix_unit"), "default")
            ocl.preferred_blas_library("portable")
        else:
            with self.assertRaisesRegex(RuntimeError, "no kernels for Intel's matrix units"):
                ocl.preferred_blas_library("matrix_unit")
        with self.assertRaisesRegex(RuntimeError, "without CLBlast"):
            ocl.preferred_blas_library("clblast")
        with self.assertRaisesRegex(RuntimeError, "Choose from: default, "):
            ocl.preferred_blas_library("cublas")
        self.assertEqual(ocl.preferred_blas_library("default"), "default")
        self.assertEqual(ocl.preferred_linalg_library(), "portable")
        with self.assertRaisesRegex(RuntimeError, "portable"):
            ocl.preferred_linalg_library("magma")


class Deterministic(Case):
    ELEMENTS = """
import torch, torch_ocl
ocl = torch.backends.ocl
n = 20000
index = torch.arange(n) ** 2 % 7
wanted = torch.zeros(7)
values = torch.arange(n) + 0.5
for i, v in zip(index.tolist(), values.tolist()): wanted[i] = v
def put():
    x = torch.zeros(7, device="ocl")
    x[index.to("ocl")] = values.to("ocl")
    return x.cpu()
put()
assert ocl.last_choices()["index_put"] == "index_put.unordered"
with ocl.flags(deterministic=True):
    for _ in range(3): assert torch.equal(put(), wanted)
    assert ocl.last_choices()["index_put"] == "index_put.ordered"
torch.use_deterministic_algorithms(True)
put()
assert ocl.last_choices()["index_put"] == "index_put.ordered"
print("right")
"""

    def test_gpus_put_in_order(self):
        outcome = run_python(self.ELEMENTS, OCLTENSOR_KERNEL_STYLE="elements")
        self.assertIn("right", outcome.stdout, outcome.stderr)

    def test_the_same_bits_in_every_run(self):
        index = torch.randint(50, (20000,), device="ocl")
        source = torch.randn(20000, device="ocl")
        image = torch.randn(1, 2, 9, 9, device="ocl", requires_grad=True)
        grid = (torch.rand(1, 400, 3, 2, device="ocl") * 2 - 1).requires_grad_()
        zeros = torch.zeros(50, device="ocl")

        def grid_gradients():
            out = torch.nn.functional.grid_sample(image, grid, align_corners=False)
            return torch.autograd.grad(out.square().sum(), (image, grid))

        def embedding_gradient():
            table = torch.ones(50, 4, device="ocl", requires_grad=True)
            return torch.autograd.grad(torch.nn.functional.embedding(index, table)[:, 0] @ source, table)

        def pooled():
            out = torch.nn.functional.max_pool2d(image, 3, stride=1)
            return torch.autograd.grad(out.sum(), image)

        bodies = {
            "scatter_add": lambda: zeros.scatter_add(0, index, source),
            "scatter": lambda: zeros.scatter(0, index, source),
            "scatter_reduce": lambda: zeros.scatter_reduce(0, index, source, "mean"),
            "index_add": lambda: zeros.index_add(0, index, source),
            "index_put": lambda: zeros.index_put((index,), source),
            "index_put accumulate": lambda: zeros.index_put((index,), source, accumulate=True),
            "index_copy": lambda: zeros.index_copy(0, index, source),
            "put": lambda: zeros.put(index, source),
            "bincount": lambda: torch.bincount(index, source),
            "histc": lambda: torch.histc(source, 20),
            "embedding": embedding_gradient,
            "grid_sample": grid_gradients,
            "max_pool2d": pooled,
            "interpolate": lambda: torch.autograd.grad(
                torch.nn.functional.interpolate(image, scale_factor=2.3, mode="bilinear").square().sum(), image
            ),
            "cumsum": lambda: source.cumsum(0),
            "sum": lambda: source.sum(),
            "matmul": lambda: self.a @ self.b,
            "sort": lambda: index.sort(),
        }
        with ocl.flags(deterministic=True, benchmark=True):
            for name, body in bodies.items():
                with self.subTest(operator=name):
                    first, *others = (body() for _ in range(4))
                    for other in others:
                        for x, y in zip(*((t,) if torch.is_tensor(t) else t for t in (first, other)), strict=True):
                            self.assertTrue(torch.equal(x, y))

    def test_memory_that_nothing_wrote_is_filled(self):
        torch.use_deterministic_algorithms(True)
        try:
            self.assertTrue(torch.empty(100, device="ocl").isnan().all())
            self.assertTrue((torch.empty(5, 2, dtype=torch.int32, device="ocl") == 2**31 - 1).all())
            torch.utils.deterministic.fill_uninitialized_memory = False
            before = torch.ocl.counters()["operators"]
            torch.empty(100, device="ocl")
            self.assertEqual(torch.ocl.counters()["operators"], before)
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = True
            torch.use_deterministic_algorithms(False)


class Operations(Case):
    def test_a_disabled_operator_is_an_error_or_falls_back(self):
        with ocl.operations_disabled("add", "linalg_*"):
            self.assertTrue(ocl.is_operation_disabled("add"))
            with self.assertRaisesRegex(NotImplementedError, "add.out is disabled.*OCLTENSOR_ENABLE_FALLBACK=1"):
                self.a + 1
            with self.assertRaisesRegex(NotImplementedError, "disabled"):
                self.a.add_(1)
            self.product()
            ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 1)
            try:
                before = torch.ocl.fallback_counts().get("aten::add.out", 0)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    torch.testing.assert_close((self.a + 1).cpu(), self.a.cpu() + 1)
                self.assertGreater(sum(torch.ocl.fallback_counts().values()), before)
            finally:
                ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 0)
        self.assertEqual(ocl.disabled_operations(), [])
        torch.testing.assert_close((self.a + 1).cpu(), self.a.cpu() + 1)

    def test_composed_operators(self):
        with ocl.operations_disabled("trace", "kthvalue"):
            self.assertEqual(ocl.disabled_operations(), ["kthvalue.values", "trace"])
            for body in (lambda: self.a.trace(), lambda: self.a.kthvalue(2)):
                with self.assertRaisesRegex(NotImplementedError, "disabled"):
                    body()
            ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 1)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    leaf = self.a.clone().requires_grad_()
                    leaf.trace().backward()
                self.assertTrue(torch.equal(leaf.grad.cpu(), torch.eye(48, 64)))
            finally:
                ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 0)
            self.assertIn("aten::trace", torch.ocl.fallback_counts())
        before = torch.ocl.fallback_counts()
        self.a.trace()
        self.assertEqual(torch.ocl.fallback_counts(), before)

    def test_enabling_and_patterns(self):
        ocl.disable_operations("add*", "mul")
        self.assertIn("addmm.out", ocl.disabled_operations())
        ocl.enable_operations("addmm")
        self.assertNotIn("addmm.out", ocl.disabled_operations())
        with self.assertRaises(NotImplementedError):
            self.a * 2
        ocl.enable_operations("*")
        self.assertEqual(ocl.disabled_operations(), [])
        with self.assertRaisesRegex(ValueError, "softmax"):
            ocl.disable_operations("sofmax")
        with self.assertRaisesRegex(ValueError, "fallback"):
            ocl.disable_operations("copy")
        with self.assertRaisesRegex(RuntimeError, "no operator fits 'sofmax'"):
            ocl.set_setting("OCLTENSOR_DISABLED_OPERATIONS", "sofmax")

    def test_everything_disabled_still_copies_and_falls_back(self):
        z = torch.randn(3, 4, dtype=torch.complex64)
        with ocl.operations_disabled("*"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 1)
            try:
                self.assertTrue(torch.equal(z.to("ocl").conj().T.cpu(), z.conj().T))
                torch.testing.assert_close(torch.softmax(self.a, 1).cpu(), torch.softmax(self.a.cpu(), 1))
            finally:
                ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 0)

    def test_dispatch_keys(self):
        ocl.disable_dispatch_keys("PrivateUse1")
        with self.assertRaises(NotImplementedError):
            self.a + 1
        ocl.enable_dispatch_keys("ocl")
        self.a + 1
        with self.assertRaisesRegex(ValueError, "PrivateUse1"):
            ocl.disable_dispatch_keys("CUDA")

    def test_providers(self):
        self.assertEqual(ocl.all_providers, ["ptx", "intel_matrix", "clblast", "vkfft", "portable"])
        hopper = any(chip in torch.ocl.get_device_name(0) for chip in ("H100", "H200"))
        self.assertEqual(ocl.available_providers, ["ptx", "portable"] if hopper else ["portable"])
        self.assertEqual((ocl.portable.name, ocl.portable.version), ("portable", ocl.version()))
        self.assertIn("add.out", ocl.get_provider_operations("portable"))
        self.assertEqual(ocl.get_provider_operations("vkfft"), [])
        if ocl.ptx.available:
            self.assertIn("mm.out", ocl.get_provider_operations("ptx"))
            self.assertNotIn("add.out", ocl.get_provider_operations("ptx"))
        else:
            self.assertIn("matrix units", ocl.ptx.unavailable_reason)
            self.assertIn("unavailable", repr(ocl.ptx))
            self.assertEqual(ocl.get_provider_operations("ptx"), [])
        with ocl.portable.disabled():
            self.assertFalse(ocl.portable.enabled)
            with self.assertRaisesRegex(NotImplementedError, "provider 'portable' is disabled"):
                self.a + 1
        ocl.portable.enabled = False
        self.assertRaises(NotImplementedError, lambda: self.a + 1)
        ocl.portable.enable()
        self.a + 1
        with self.assertRaises(AttributeError):
            ocl.triton  # noqa: B018
        with self.assertRaises(ValueError):
            ocl.get_provider_operations("triton")


class Attention(Case):
    def params(self, query, mask=None, dropout=0.0):
        return ocl.SDPAParams(query, query, query, mask, dropout, False, False)

    def test_switches_and_reasons(self):
        query = torch.randn(1, 2, 8, 4, device="ocl")
        run = lambda: attention(query, query, query) is not None and ocl.last_choices()["attention"]  # noqa: E731
        self.assertEqual(run(), "attention.fused")
        with ocl.sdp_kernel(enable_flash=False, enable_mem_efficient=False):
            self.assertEqual(run(), "attention.math")
            self.assertFalse(ocl.can_use_efficient_attention(self.params(query)))
        with ocl.sdp_kernel(enable_math=False):
            self.assertFalse(ocl.math_sdp_enabled())
            self.assertEqual(run(), "attention.fused")
            with self.assertRaisesRegex(RuntimeError, "MATH is disabled"):
                attention(query[0], query[0], query[0])
        for get, enable in (
            (ocl.flash_sdp_enabled, ocl.enable_flash_sdp),
            (ocl.mem_efficient_sdp_enabled, ocl.enable_mem_efficient_sdp),
            (ocl.math_sdp_enabled, ocl.enable_math_sdp),
        ):
            enable(False)
            self.assertFalse(get())
            enable(True)
            self.assertTrue(get())
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            self.assertEqual((ocl.mem_efficient_sdp_enabled(), run()), (True, "attention.fused"))
        with ocl.algorithms_disabled("attention.fused"):
            self.assertEqual(run(), "attention.math")
        with ocl.operations_disabled("_scaled_dot_product_fused_attention_overrideable"):
            self.assertEqual(run(), "attention.math")

        def verbose():
            with ocl.verbose(1):
                attention(query[0], query[0], query[0])

        self.assertIn("not attention.fused: tensors that have not 4 dimensions", printed(verbose))
        with ocl.ptx.disabled() if ocl.ptx.available else contextlib.nullcontext(), ocl.verbose(1):
            reason = "the provider ptx is disabled" if ocl.ptx.available else "no matrix units of the Hopper generation"
            text = printed(lambda: attention(*[query.half()] * 3))
        self.assertRegex(text, f"not attention_forward.hopper: [a-z ]*{reason}")

    def test_can_use(self):
        query = torch.randn(1, 2, 8, 4, device="ocl")
        self.assertTrue(ocl.can_use_efficient_attention(self.params(query), debug=True))
        self.assertFalse(ocl.is_flash_attention_available())
        with self.assertWarnsRegex(UserWarning, "no flash kernel"):
            self.assertFalse(ocl.can_use_flash_attention(self.params(query), debug=True))
        for bad, reason in (
            (self.params(query[0]), "4 dimensions"),
            (self.params(query.cpu()), "not on ocl"),
            (self.params(query, dropout=1.0), "dropout of everything"),
            (self.params(query, torch.zeros(8, 8, device="ocl", requires_grad=True)), "mask with a gradient"),
        ):
            with self.assertWarnsRegex(UserWarning, reason):
                self.assertFalse(ocl.can_use_efficient_attention(bad, debug=True))

    def test_reduction_of_16_bit_types(self):
        query = torch.randn(1, 2, 64, 4, device="ocl", dtype=torch.bfloat16)
        results = []
        for allowed in (False, True):
            ocl.allow_fp16_bf16_reduction_math_sdp(allowed)
            self.assertEqual(ocl.fp16_bf16_reduction_math_sdp_allowed(), allowed)
            with sdpa_kernel(SDPBackend.MATH):
                results.append(attention(query, query, query))
        ocl.allow_fp16_bf16_reduction_math_sdp(False)
        exact = attention(*[query.double()] * 3)
        errors = [(r.double() - exact).abs().max().item() for r in results]
        self.assertLess(errors[0], errors[1])

    def test_the_fast_path_of_transformers(self):
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).to("ocl").eval()
        x = torch.randn(2, 5, 16, device="ocl")
        names = []
        for fast in (True, False):
            torch.backends.mha.set_fastpath_enabled(fast)
            with torch.no_grad(), torch.profiler.profile() as profile:
                out = layer(x)
            names.append({event.name for event in profile.events()})
            torch.testing.assert_close(out.cpu(), layer.cpu()(x.cpu()), rtol=1e-4, atol=1e-5)
            layer.to("ocl")
        torch.backends.mha.set_fastpath_enabled(True)
        self.assertIn("aten::_transformer_encoder_layer_fwd", names[0])
        self.assertNotIn("aten::_transformer_encoder_layer_fwd", names[1])


class Rest(Case):
    def test_fft_plan_cache(self):
        torch.fft.fft(torch.randn(64, device="ocl"))
        self.assertEqual((ocl.fft_plan_cache.size, ocl.fft_plan_cache[0].max_size), (0, 0))
        ocl.fft_plan_cache.clear()
        ocl.fft_plan_cache.max_size = 0
        with self.assertRaisesRegex(RuntimeError, "no plans"):
            ocl.fft_plan_cache[0].max_size = 10
        with self.assertRaises((RuntimeError, IndexError, ValueError)):
            ocl.fft_plan_cache[99].size  # noqa: B018

    def test_what_comes_later_says_so(self):
        for part in (ocl.cusparselt, ocl.quantized, ocl.weight_int8, ocl.weight_int4):
            self.assertFalse(part.is_available())
            self.assertIn("yet", part.unavailable_reason())
        self.assertEqual(ocl.quantized.supported_engines, ["none"])
        with self.assertRaisesRegex(RuntimeError, "fbgemm"):
            ocl.quantized.engine = "fbgemm"

    def test_contexts_nest_restore_and_decorate(self):
        with ocl.flags(benchmark_limit=3):
            with ocl.flags(benchmark_limit=4, immediate=True):
                ocl.benchmark_limit = 5
                self.assertEqual((ocl.benchmark_limit, ocl.immediate), (5, True))
            self.assertEqual((ocl.benchmark_limit, ocl.immediate), (3, False))
        self.assertEqual(ocl.benchmark_limit, 10)
        with self.assertRaises(KeyError), ocl.flags(deterministic=True):
            raise KeyError
        self.assertFalse(ocl.deterministic)
        with self.assertRaisesRegex(RuntimeError, "0 to 1000"), ocl.flags(deterministic=True, benchmark_limit=5000):
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

    def test_contexts_of_several_threads_end_in_any_order(self):
        entered, leave = threading.Barrier(2), threading.Event()

        def other():
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
        threads = [threading.Thread(target=lambda: seen.append(all(decorated() for _ in range(200)))) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(seen, [True] * 4)
        self.assertFalse(ocl.immediate)

    def test_frozen_flags(self):
        torch.backends.disable_global_flags()
        try:
            with self.assertRaisesRegex(RuntimeError, "flags"):
                ocl.benchmark = True
            with ocl.flags(benchmark=True):
                self.assertTrue(ocl.benchmark)
        finally:
            setattr(torch.backends, "__allow_nonbracketed_mutation_flag", True)  # noqa: B010
        self.assertFalse(ocl.benchmark)

    def test_the_launcher_chooses_threads_and_cores(self):
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
        for bad in (["--cores", "x"], ["--cores", "99999"], ["--instances", "99999"], ["--node", "4711"], []):
            outcome = run_python("", *launch, *bad, *(["s.py"] if bad else []))
            self.assertEqual(outcome.returncode, 2, bad)
            self.assertIn("error:", outcome.stderr)

    def test_opt_einsum_is_honoured(self):
        """The path of a product of three decides which products run."""
        if not torch.backends.opt_einsum.is_available():
            self.skipTest("SKIPPED: opt_einsum is not installed")
        a, b, c = (torch.randn(sizes, device="ocl") for sizes in ((40, 50), (50, 60), (60, 2)))
        texts = []
        for enabled in (True, False):
            with torch.backends.opt_einsum.flags(enabled=enabled):
                def run():
                    with ocl.verbose(1):
                        torch.einsum("ij,jk,kl->il", a, b, c)

                texts.append(printed(run))
        self.assertNotIn("40 x 60 x 50", texts[0])
        self.assertIn("40 x 60 x 50", texts[1])


if __name__ == "__main__":
    unittest.main()
