"""Switches of torch.backends.ocl, each by what it does: which attention runs."""

import contextlib
import unittest

import torch
from backends_case import Case, ocl, printed
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention


class Attention(Case):
    def params(self, query, mask=None, dropout=0.0):
        return ocl.SDPAParams(query, query, query, mask, dropout, False, False)

    def test_switches_and_reasons(self) -> None:
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
                attention(query[0, 0], query[0, 0], query[0, 0])
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

        def verbose() -> None:
            with ocl.verbose(1):
                attention(query[0, 0], query[0, 0], query[0, 0])

        self.assertIn("not attention.fused: tensors of other than 4 dimensions", printed(verbose))
        with (
            ocl.nvidia_hopper.disabled()
            if ocl.nvidia_hopper.available
            else contextlib.nullcontext(),
            ocl.verbose(1),
        ):
            reason = (
                "its provider is disabled"
                if ocl.nvidia_hopper.available
                else "no matrix units of the Hopper generation"
            )
            text = printed(lambda: attention(*[query.half()] * 3))
        self.assertRegex(text, f"not attention_forward.hopper: [a-z ]*{reason}")

    def test_can_use(self) -> None:
        query = torch.randn(1, 2, 8, 4, device="ocl")
        self.assertTrue(ocl.can_use_efficient_attention(self.params(query), debug=True))
        self.assertFalse(ocl.is_flash_attention_available())
        with self.assertWarnsRegex(UserWarning, "no flash kernel"):
            self.assertFalse(ocl.can_use_flash_attention(self.params(query), debug=True))
        for bad, reason in (
            (self.params(query[0, 0]), "4 dimensions"),
            (self.params(query.cpu()), "not on ocl"),
            (self.params(query, dropout=1.0), "dropout of everything"),
            (
                self.params(query, torch.zeros(8, 8, device="ocl", requires_grad=True)),
                "mask with a gradient",
            ),
        ):
            with self.assertWarnsRegex(UserWarning, reason):
                self.assertFalse(ocl.can_use_efficient_attention(bad, debug=True))

    def test_reduction_of_16_bit_types(self) -> None:
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

    def test_the_fast_path_of_transformers(self) -> None:
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

    def test_the_fast_path_makes_transposed_input_contiguous(self) -> None:
        for norm_first in (False, True):
            layer = torch.nn.TransformerEncoderLayer(
                16, 2, 32, batch_first=True, norm_first=norm_first
            ).eval()
            x = torch.randn(2, 16, 5)
            with torch.no_grad():
                expected = layer(x.mT)
                given = x.to("ocl")
                out = layer.to("ocl")(given.mT)
            torch.testing.assert_close(out.cpu(), expected, rtol=1e-4, atol=1e-5)
            self.assertTrue(out.is_contiguous())
            self.assertTrue(torch.equal(given.cpu(), x))


if __name__ == "__main__":
    unittest.main()
