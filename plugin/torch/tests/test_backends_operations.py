"""Switches of torch.backends.ocl, each by what it does: operators, dispatch keys and providers that
are disabled."""

import unittest
import warnings

import torch
from backends_case import Case, ocl


class Operations(Case):
    def test_a_disabled_operator_is_an_error_or_falls_back(self) -> None:
        with ocl.operations_disabled("add", "linalg_*"):
            self.assertTrue(ocl.is_operation_disabled("add"))
            with self.assertRaisesRegex(
                NotImplementedError, "add.out is disabled.*OCLTENSOR_ENABLE_FALLBACK=1"
            ):
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

    def test_composed_operators(self) -> None:
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

    def test_enabling_and_patterns(self) -> None:
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

    def test_everything_disabled_still_copies_and_falls_back(self) -> None:
        z = torch.randn(3, 4, dtype=torch.complex64)
        with ocl.operations_disabled("*"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 1)
            try:
                self.assertTrue(torch.equal(z.to("ocl").conj().T.cpu(), z.conj().T))
                torch.testing.assert_close(
                    torch.softmax(self.a, 1).cpu(), torch.softmax(self.a.cpu(), 1)
                )
            finally:
                ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 0)

    def test_dispatch_keys(self) -> None:
        ocl.disable_dispatch_keys("PrivateUse1")
        with self.assertRaises(NotImplementedError):
            self.a + 1
        ocl.enable_dispatch_keys("ocl")
        self.a + 1
        with self.assertRaisesRegex(ValueError, "PrivateUse1"):
            ocl.disable_dispatch_keys("CUDA")

    def test_providers(self) -> None:
        self.assertEqual(
            ocl.all_providers,
            [
                *("nvidia_hopper", "nvidia_mma", "amd_mfma", "amd_wmma", "intel_xmx", "amd_dot"),
                *("x86_avx512", "lapack", "portable"),
            ],
        )
        hopper = any(chip in torch.ocl.get_device_name(0) for chip in ("H100", "H200"))
        others = [n for n in ocl.available_providers if n not in ("x86_avx512", "lapack")]
        self.assertEqual(others, ["nvidia_hopper", "portable"] if hopper else ["portable"])
        self.assertEqual((ocl.portable.name, ocl.portable.version), ("portable", ocl.version()))
        self.assertIn("add.out", ocl.get_provider_operations("portable"))
        if ocl.nvidia_hopper.available:
            self.assertIn("mm.out", ocl.get_provider_operations("nvidia_hopper"))
            self.assertNotIn("add.out", ocl.get_provider_operations("nvidia_hopper"))
        else:
            self.assertIn("matrix units", ocl.nvidia_hopper.unavailable_reason)
            self.assertIn("unavailable", repr(ocl.nvidia_hopper))
            self.assertEqual(ocl.get_provider_operations("nvidia_hopper"), [])
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


if __name__ == "__main__":
    unittest.main()
