"""Switches of torch.backends.ocl, each by what it does: which algorithm runs, and who decides
it."""

import unittest

import torch
from backends_case import Case, ocl, printed


class Choice(Case):
    def test_enabled(self) -> None:
        self.assertTrue(ocl.enabled)
        self.assertNotIn("matmul.general", self.product())
        self.assertNotEqual(self.convolution(), "conv.general")
        with ocl.flags(enabled=False):
            self.assertFalse(torch.backends.ocl.enabled)
            self.assertIn("matmul.general", self.product())
            self.assertEqual(self.convolution(), "conv.general")
        ocl.enabled = False
        self.assertIn("matmul.general", self.product())
        ocl.enabled = True
        self.assertNotIn("matmul.general", self.product())

    def test_benchmark_and_its_limit(self) -> None:
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

    def test_a_measured_training_step_is_right(self) -> None:
        def step(device):
            torch.manual_seed(1)
            net = torch.nn.Sequential(
                torch.nn.Conv2d(3, 8, 3),
                torch.nn.ReLU(),
                torch.nn.Flatten(),
                torch.nn.Linear(288, 5),
            )
            net, x = net.to(device), torch.randn(4, 3, 8, 8).to(device)
            net(x).square().sum().backward()
            return [p.grad.cpu() for p in net.parameters()]

        with ocl.flags(benchmark=True):
            for got, wanted in zip(step("ocl"), step("cpu"), strict=True):
                torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
        if (
            torch.ocl.get_device_properties().has_unified_memory
        ):  # GPUs have one algorithm for these
            self.assertTrue(any("conv" in m.problem for m in ocl.measurements()))
        ocl.forget_measurements()

    def test_the_next_algorithm_runs(self) -> None:
        first = self.product()
        with ocl.algorithms_disabled(first):
            self.assertNotEqual(self.product(), first)
            self.assertEqual([a.id for a in ocl.algorithms() if a.disabled], [first])
        with ocl.algorithms_disabled("matmul.*"):
            self.assertIn("matmul.general", self.product())
        with (
            self.assertRaisesRegex(RuntimeError, "matmul.packed"),
            ocl.algorithms_disabled("matmul.pack"),
        ):
            pass
        self.assertEqual(self.product(), first)
        x = torch.randn(3, 30)
        with ocl.algorithms_disabled("fft.passes"):
            torch.testing.assert_close(
                torch.fft.fft(x.to("ocl")).cpu(), torch.fft.fft(x), rtol=1e-4, atol=1e-4
            )
            self.assertEqual(ocl.last_choices()["fft"], "fft.bluestein")
        torch.fft.fft(x.to("ocl"))
        self.assertEqual(ocl.last_choices()["fft"], "fft.passes")

    def test_verbose(self) -> None:
        def one() -> None:
            with ocl.verbose(1):
                self.product()

        text = printed(one)
        self.assertIn(
            f"matmul float32 1 x 48 x 40 x 64 on ocl:0: {self.product()} (by rule); not ", text
        )
        self.assertNotIn("operator", text)

        @ocl.verbose(2)
        def two() -> None:
            self.a + 1

        self.assertIn("operator add.out on ocl:0", printed(two))
        self.assertEqual(printed(self.product), "")

    def test_reduced_precision_permits_split_sums(self) -> None:
        x = torch.randn(1, 40000, device="ocl")
        for dtype, name in ((torch.float16, "fp16"), (torch.bfloat16, "bf16")):
            row = x.to(dtype)

            def choice(row=row):
                with ocl.algorithms_disabled("matmul.dots"):  # GPUs' for a row: needs no permission
                    row @ row.T
                return ocl.last_choices()["matmul"]

            attribute = f"allow_{name}_reduced_precision_reduction"
            self.assertFalse(getattr(ocl.matmul, attribute))
            self.assertNotIn("matmul.split_k", choice())
            setattr(ocl.matmul, attribute, True)
            self.assertTrue(getattr(ocl.matmul, attribute + "_split_k"))
            self.assertIn("matmul.split_k", choice())
            setattr(ocl.matmul, attribute, (True, False))
            self.assertFalse(getattr(ocl.matmul, attribute + "_split_k"))
            self.assertNotIn("matmul.split_k", choice())
            setattr(ocl.matmul, attribute, (False, True))
            with self.assertRaises(TypeError):
                setattr(ocl.matmul, attribute, 1)
            with ocl.flags(**{attribute: True}):
                self.assertIn("matmul.split_k", choice())

    def test_tf32_has_to_be_allowed(self) -> None:
        def run() -> None:
            with ocl.verbose(1):
                torch.testing.assert_close(
                    (self.a @ self.b).cpu(), self.expected, rtol=1e-2, atol=5e-2
                )

        self.assertFalse(ocl.matmul.allow_tf32)
        self.assertNotIn("tf32 allowed", printed(run))
        self.addCleanup(setattr, ocl.matmul, "allow_tf32", False)
        ocl.matmul.allow_tf32 = True
        text = printed(run)
        if ocl.nvidia_hopper.available:
            self.assertIn("matmul.hopper (by rule)", text)
            self.assertGreater(float(((self.a @ self.b).cpu() - self.expected).abs().max()), 1e-4)
        else:
            self.assertIn("; tf32 allowed", text)
        ocl.matmul.allow_tf32 = False
        self.product()
        with self.assertRaisesRegex(AttributeError, "no switch"):
            ocl.matmul.allow_fp8 = True

    def test_preferred_libraries(self) -> None:
        def run() -> None:
            with ocl.verbose(1):
                self.product()

        self.assertEqual(ocl.preferred_blas_library(), "default")
        available = (
            "matmul.hopper (by rule)"
            if ocl.nvidia_hopper.available
            else "the device has no matrix units"
        )
        self.assertIn(available, printed(run))
        self.assertEqual(ocl.preferred_blas_library("portable"), "portable")
        self.assertIn("not matmul.hopper: portable kernels are preferred", printed(run))
        if ocl.nvidia_hopper.available:
            self.assertEqual(ocl.preferred_blas_library("matrix_unit"), "default")
            ocl.preferred_blas_library("portable")
        else:
            with self.assertRaisesRegex(RuntimeError, "no matrix units of the Hopper generation"):
                ocl.preferred_blas_library("matrix_unit")
        with self.assertRaisesRegex(RuntimeError, "Choose from: default, "):
            ocl.preferred_blas_library("cublas")
        self.assertEqual(ocl.preferred_blas_library("default"), "default")
        self.assertEqual(ocl.preferred_linalg_library(), "portable")
        with self.assertRaisesRegex(RuntimeError, "portable"):
            ocl.preferred_linalg_library("magma")


if __name__ == "__main__":
    unittest.main()
