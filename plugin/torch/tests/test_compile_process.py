"""torch.compile and its process: what is imported and changed and when, caches, settings, drivers
that refuse, ways into Inductor that make no code."""

from __future__ import annotations

import copy
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from compile_case import CompileCase, launches, to_ocl
from torch._inductor import config, lowering

SAXPY = """
import sys, torch, torch_ocl, warnings
function = lambda x, y: (x * 2 + y).relu().sum(-1)
x = torch.arange(6.0).view(2, 3).to("ocl")
"""


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Process(unittest.TestCase):
    def test_the_first_compile_imports_it(self) -> None:
        code = """
            import sys, torch, torch_ocl
            (torch.ones(3, device="ocl") + 1).cpu()
            names = ("torch._inductor", "torch._dynamo", "torch_ocl.inductor")
            print([name for name in names if name in sys.modules])
        """
        self.assertEqual(python("\n".join(line.strip() for line in code.split("\n"))), "[]\n")

    def test_a_second_process_builds_nothing(self) -> None:
        code = SAXPY + (
            "print(torch.compile(function)(x, x).tolist(), torch.ocl.counters()['program_builds'])"
        )
        with tempfile.TemporaryDirectory() as folder:
            names = ("OCLTENSOR_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
            caches = {name: f"{folder}/{name}" for name in names}
            caches["OCLTENSOR_BUILD_AHEAD"] = "0"  # builds of other processes are not counted
            first, second = python(code, **caches), python(code, **caches)
        self.assertRegex(first, r"^\[9.0, 36.0\] [1-9]")
        self.assertEqual(second, "[9.0, 36.0] 0\n")

    def test_switched_off(self) -> None:
        code = SAXPY + (
            "with warnings.catch_warnings(record=True) as said:\n"
            "    warnings.simplefilter('always')\n"
            "    torch.compile(function)(x, x), torch.compile(lambda x: x + 1)(x)\n"
            "print([str(w.message) for w in said if 'OCLTENSOR' in str(w.message)])\n"
            "print('torch_ocl.inductor' in sys.modules)"
        )
        text = "ocl: OCLTENSOR_COMPILE=0: torch.compile runs graphs of ocl operator by operator"
        self.assertEqual(python(code, OCLTENSOR_COMPILE="0"), f"['{text}']\nFalse\n")

    def test_two_devices_in_a_graph(self) -> None:
        """Their kernels are ready at once, and share no launch. PoCL shows two devices."""
        code = (
            "import torch, torch_ocl\n"
            "x = torch.arange(6.0).view(2, 3)\n"
            "function = torch.compile(lambda x, y: (x * 2, y + 3, x.sum(0), y.sum(1)))\n"
            "last = torch.ocl.device_count() - 1\n"
            "results = function(x.to('ocl:0'), x.to(f'ocl:{last}'))\n"
            "assert torch.ocl.compile_report()[-1].eager is None\n"
            "print([(r.device.index, r.tolist()) for r in results], last)\n"
        )
        text, _, last = python(code, POCL_DEVICES="pthread pthread").strip().rpartition(" ")
        twice, plus = [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]], [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
        sums = [(0, [3.0, 5.0, 7.0]), (int(last), [3.0, 12.0])]
        self.assertEqual(text, str([(0, twice), (int(last), plus), *sums]))


def state() -> list[Any]:
    """All that a compilation for ocl changes while it runs."""
    from torch_ocl.inductor.patches import PATCHES

    patched = [getattr(patch.where, patch.name) for patch in PATCHES]
    return [patched, dict(lowering.lowerings), config.save_config_portable()]


class Others(CompileCase):
    def test_graphs_of_the_cpu_are_compiled_as_without_it(self) -> None:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(4, device="ocl"))
        before = state()
        seen = []

        def compile_fx(graph, inputs, **options):  # needs no C++ compiler, as Inductor does
            seen.append((options.get("inner_compile"), options.get("decompositions"), state()))
            return graph.forward

        compiled = torch.compile(lambda x: x * 2 + 1)
        with mock.patch("torch._inductor.compile_fx.compile_fx", compile_fx):
            self.assertEqual(compiled(torch.ones(3)).tolist(), [3, 3, 3])
        got = compiled(torch.ones(3, device="ocl"))
        self.assertEqual(got.tolist(), [3, 3, 3])
        self.assertEqual(seen, [(None, None, before)])
        self.assertEqual(state(), before)

    def test_it_is_changed_while_it_compiles(self) -> None:
        import torch_ocl.inductor as inductor

        before, seen = state(), []
        inner = inductor.compile_fx_inner

        def compile_fx_inner(*args, **options):
            seen.append(state())
            return inner(*args, **options)

        with mock.patch.object(inductor, "compile_fx_inner", compile_fx_inner):
            torch.compile(lambda x: x.cos() - 1)(torch.ones(4, device="ocl"))
        self.assertNotEqual(seen[0][0], before[0])
        self.assertNotEqual(seen[0][2], before[2])

    def test_it_is_undone_where_a_trace_raises(self) -> None:
        from torch_ocl.inductor import lowerings

        resize = torch.ops.aten.upsample_nearest2d.vec
        before = dict(resize.py_kernels)
        with self.assertRaises(ZeroDivisionError), lowerings.whole_resizes():
            resize._dispatch_cache[lowerings.DispatchKey.Autograd] = lowerings.DispatchKey.CPU
            raise ZeroDivisionError
        self.assertEqual(resize.py_kernels, before)
        self.assertNotIn(lowerings.DispatchKey.Autograd, resize._dispatch_cache)

    def test_formulas_are_in_keys(self) -> None:
        from torch_ocl.inductor import target

        text = target.FORMULAS.read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder) / "expressions.def"
            other.write_bytes(text + b"\n")
            before = target.identity()
            with mock.patch.object(target, "FORMULAS", other):
                target._sources.cache_clear()
                self.assertNotEqual(target.identity(), before)
        target._sources.cache_clear()

    def test_each_patch_finds_its_place(self) -> None:
        """Fails where a version of PyTorch does without one, or names it otherwise."""
        from torch_ocl.inductor.patches import PATCHES

        self.assertEqual([patch.name for patch in PATCHES if not patch.applies()], [])
        self.assertNotIn("ocl", torch._inductor.utils.GPU_TYPES)


class Kernels(CompileCase):
    def test_names_of_drivers_and_styles_are_in_keys(self) -> None:
        from torch_ocl.inductor import target

        name = torch.ocl.get_device_name()
        here = target.identity()
        self.assertIn(name, here)
        style = {"OCLTENSOR_KERNEL_STYLE": "gpu", "OCLTENSOR_CHECK_VALUES": "1"}
        settings = [
            style,
            style | {"OCLTENSOR_KERNEL_STYLE": "cpu"},
            style | {"OCLTENSOR_CHECK_VALUES": "0"},
        ]
        keys = set()
        for values in settings:
            with mock.patch.object(
                target._C, "get_setting", lambda name, v=values: v.get(name, "1")
            ):
                keys.add(target.identity())
        self.assertEqual(len(keys), 3)

    def test_one_that_the_driver_refuses(self) -> None:
        from torch_ocl.inductor import kernel

        made = kernel.OpenCLKernel.codegen_kernel
        x = torch.arange(6.0)
        with (
            mock.patch.object(
                kernel.OpenCLKernel, "codegen_kernel", lambda k, name=None: made(k) + "no C"
            ),
            warnings.catch_warnings(record=True) as said,
        ):
            warnings.simplefilter("always")
            got = torch.compile(lambda x: x.exp() * 3)(x.to("ocl"))
        texts = [str(w.message) for w in said if "operator by operator" in str(w.message)]
        self.assertEqual(len(texts), 1)
        self.assertIn("kernel ocl_fused_exp_mul_0 does not compile on ocl:0", texts[0])
        self.assertIn(torch.ocl.get_device_properties().driver_version, texts[0])
        torch.testing.assert_close(got.cpu(), x.exp() * 3)

    def test_an_index_out_of_range(self) -> None:
        x, good = torch.arange(5.0).to("ocl"), torch.tensor([0, -1]).to("ocl")
        compiled = torch.compile(lambda x, i: x[i] * 2)
        self.assertEqual(compiled(x, good).tolist(), [0, 8])
        for wrong in (5, -6):
            compiled(x, torch.tensor([0, wrong]).to("ocl"))
            with self.assertRaisesRegex(
                IndexError, r"kernel ocl_fused_index_mul_0: index -?\d+ .*of size 5"
            ):
                torch.ocl.synchronize()
            self.assertEqual(compiled(x, good).tolist(), [0, 8])

    def test_launches(self) -> None:
        """Chains, reductions with what precedes and follows them, and views are one launch each."""
        x, w = torch.randn(8, 96).to("ocl"), torch.randn(96).to("ocl")
        functions = {
            lambda x, w: (x * w + x).tanh().mul(0.5).add(w).sigmoid(): 1,
            lambda x, w: torch.nn.functional.gelu(x + w): 1,
            lambda x, w: (x * 0.125 + w).softmax(-1): 1,
            lambda x, w: torch.nn.functional.layer_norm(x + w, (96,), w, w): 1,
            lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w: 1,
            lambda x, w: torch.addmm(w, x, x.new_ones(96, 96)).relu(): 2,
        }
        for number, (function, count) in enumerate(functions.items()):
            with self.subTest(number):
                torch._dynamo.reset()
                compiled = torch.compile(function)
                compiled(x, w)
                self.assertEqual(launches(lambda: compiled(x, w)), count)

    def test_activations_of_products(self) -> None:
        """relu and gelu are applied by the product's kernel, where nothing else reads it."""
        torch.manual_seed(2)
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            layer = torch.nn.Linear(48, 40).to(dtype)
            x = torch.randn(2, 5, 48).to(dtype)
            for function, more in {
                F.relu: 0,
                F.gelu: 0,
                F.silu: 1,
                lambda y: F.gelu(y, approximate="tanh"): 1,
                lambda y: F.gelu(y) + y: 1,
            }.items():
                with self.subTest(dtype=dtype, more=more), torch.no_grad():
                    torch._dynamo.reset()
                    want = function(layer(x).float()).to(dtype)
                    ours = copy.deepcopy(layer).to("ocl")
                    compiled, given = torch.compile(lambda x: function(ours(x))), x.to("ocl")
                    # The sum's rounding, and the CPU's before the activation.
                    bound = 4 * torch.finfo(dtype).eps
                    self.close(compiled(given), want, bound, bound)
                    of_product = launches(lambda: ours(given))
                    self.assertEqual(launches(lambda: compiled(given)), of_product + more)

    def test_what_a_product_adds(self) -> None:
        """What is in memory and alone is added to a product is added by the product's kernel."""
        torch.manual_seed(2)
        for dtype in (torch.float32, torch.bfloat16):
            x, w = torch.randn(2, 5, 48).to(dtype), torch.randn(48, 48).to(dtype) / 7
            for function, more in {
                lambda x, w: x + x @ w: 0,
                lambda x, w: (x.sin() @ w).add(x): 1,
                lambda x, w: x + 2 * (x @ w): 1,
                lambda x, w: x @ w + w[3]: 0,
                lambda x, w: F.relu(w[3] + x @ w): 0,
                lambda x, w: F.gelu(x + x @ w): 0,
                lambda x, w: (x @ w).view(10, 48) + x[0, :1]: 0,
                lambda x, w: (y := x @ w) + x + y: 1,
                lambda x, w: torch.mm(x[0], w).mT + w[:, :5]: 1,
                lambda x, w: torch.add(x, x @ w, alpha=3): 1,
            }.items():
                with self.subTest(dtype=dtype, more=more):
                    torch._dynamo.reset()
                    want = function(x.double(), w.double()).to(dtype)
                    given = to_ocl([x, w])
                    compiled = torch.compile(function)
                    # Sums of 48 products, rounded twice where the product is rounded by itself.
                    bound = 8 * torch.finfo(dtype).eps
                    self.close(compiled(*given), want, bound, bound)
                    of_product = launches(lambda: given[0] @ given[1])
                    self.assertEqual(launches(lambda: compiled(*given)), of_product + more)

    def test_what_a_product_cannot_add(self) -> None:
        """A product that is repeated, and a size."""
        torch.manual_seed(3)
        x, w = torch.randn(5, 48), torch.randn(48, 48) / 7
        for function in (
            lambda x, w: x[:1] @ w + x,
            lambda x, w: (x @ w).view(5, 1, 48) + w[:45].view(5, 9, 48),
            lambda x, w: x @ w + x.shape[0],
            lambda x, w: (x @ w).view(5, 6, 8) + w[0, :8],
            lambda x, w: (x @ w).view(-1, 48, 5) + w[0, :5],
            lambda x, w: x @ w + w[:, :1].sum(0),
        ):
            torch._dynamo.reset()
            want = function(x.double(), w.double()).float()
            got = torch.compile(function, dynamic=True)(*to_ocl([x, w]))
            self.close(got, want, 8 * torch.finfo(torch.float32).eps, 1e-5)

    def test_products_are_rounded_as_in_eager_mode(self) -> None:
        """On request: what ends a product would have its sums without their rounding."""
        torch.manual_seed(4)
        layer, x = torch.nn.Linear(48, 48, dtype=torch.bfloat16), torch.randn(9, 48).bfloat16()
        layer, x = layer.to("ocl"), x.to("ocl")
        with torch.no_grad(), config.patch(emulate_precision_casts=True):
            got, want = torch.compile(lambda x: F.gelu(layer(x)))(x), F.gelu(layer(x))
        torch.testing.assert_close(got, want, rtol=0, atol=0)

    def test_an_activation_and_its_gradient(self) -> None:
        def run(device, call):
            torch.manual_seed(2)
            layer, x = torch.nn.Linear(24, 20), torch.randn(7, 24)
            layer, x = layer.to(device), x.to(device).requires_grad_()
            y = call(lambda x: F.relu(layer(x)))(x)
            return [y.detach(), *torch.autograd.grad(y.square().sum(), (x, *layer.parameters()))]

        self.close(run("ocl", torch.compile), run("cpu", lambda f: f), 2e-5, 2e-5)

    def test_gradients_of_convolutions_get_maps_as_they_are(self) -> None:
        """PyTorch 2.13 copies them to the order of the weight's gradient, by a kernel."""
        model = torch.nn.Sequential(
            torch.nn.Conv2d(16, 16, 3, padding=1, groups=16), torch.nn.Conv2d(16, 24, 1)
        ).to("ocl")
        maps = torch.randn(2, 16, 8, 8, device="ocl").to(memory_format=torch.channels_last)
        eager = torch.autograd.grad(model(maps).sin().sum(), list(model.parameters()))
        compiled = torch.autograd.grad(
            torch.compile(model)(maps).sin().sum(), list(model.parameters())
        )
        for ours, expected in zip(compiled, eager, strict=True):
            torch.testing.assert_close(ours.cpu(), expected.cpu(), rtol=1e-4, atol=1e-4)
        self.assertEqual(torch.ocl.compile_report()[-1].kernels, [])

    def test_the_report(self) -> None:
        torch.compile(lambda x: torch.special.i0e(x.sin()) + 1)(torch.rand(7, device="ocl"))
        last = torch.ocl.compile_report()[-1]
        self.assertEqual(last.calls, {"aten.special_i0e.default": "i0e has no formula in OpenCL C"})
        self.assertEqual((len(last.kernels), last.eager), (2, None))


class Elsewhere(CompileCase):
    def test_other_ways_into_inductor_say_so(self) -> None:
        graph = torch.fx.symbolic_trace(lambda x: x + 1)
        torch.compile(lambda x: x + 1)(torch.ones(4, device="ocl"))
        with self.assertRaisesRegex(Exception, "ocl: Inductor makes code for ocl by torch.compile"):
            torch._inductor.compile(graph, [torch.ones(4, device="ocl")])(
                torch.ones(4, device="ocl")
            )


if __name__ == "__main__":
    unittest.main()
